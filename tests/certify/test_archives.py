"""Archives of strangers: whatever is not a small tar of plain files is refused with a message."""

from __future__ import annotations

import io
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.certify import archive
from conformance.certify.archive import ArchiveError, read_archive, write_archive
from conformance.errors import UsageError


def packed(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as made:
        for member, content in members:
            member.size = len(content) if member.isreg() else member.size
            made.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def plain(name: str, content: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def special(kind: bytes, name: str = "report.yaml") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member, b""


def test_what_was_written_is_read(tmp_path: Path) -> None:
    files = {"b/c.json": b"1", "a": b"\0\n", "empty": b""}
    write_archive(tmp_path / "x", files)
    assert read_archive(tmp_path / "x") == files


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    write_archive(tmp_path / "x", {"a": b"1", "b": b"2"})
    write_archive(tmp_path / "y", {"b": b"2", "a": b"1"})
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/x",
        "a/../x",
        "a//b",
        ".hidden",
        "a\nb",
        "a\x1b[2J",
        "-" * 251,
        "",
        "a/",
        "~/x?",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no plain name"):
        write_archive(tmp_path / "x", {name: b""})
    (tmp_path / "x").write_bytes(lzma.compress(packed(plain(name))))
    with pytest.raises(ArchiveError, match=r"no plain|no whole tar") as caught:
        read_archive(tmp_path / "x")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.DIRTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.CONTTYPE,
        b"Z",
    ],
)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    (tmp_path / "x").write_bytes(lzma.compress(packed(special(kind))))
    with pytest.raises(ArchiveError, match=r"report\.yaml is no plain file"):
        read_archive(tmp_path / "x")


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(lzma.compress(packed(plain("a", b"1"), plain("a", b"2"))))
    with pytest.raises(ArchiveError, match="has a twice"):
        read_archive(tmp_path / "x")


def test_a_file_that_is_a_folder_too_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(lzma.compress(packed(plain("a"), plain("a/b"))))
    with pytest.raises(ArchiveError, match="a is a file and a folder"):
        read_archive(tmp_path / "x")


@pytest.mark.parametrize("limit", ["MAX_BYTES", "MAX_PACKED"])
def test_what_would_be_refused_for_its_size_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(archive, limit, 20_000)
    write_archive(tmp_path / "x", {"a": os.urandom(8_000)})
    assert len(read_archive(tmp_path / "x")["a"]) == 8_000
    with pytest.raises(UsageError, match="more than anybody reads"):
        write_archive(tmp_path / "y", {"a": os.urandom(30_000)})
    assert not (tmp_path / "y").exists()


def sized(kind: bytes, size: int) -> bytes:
    """A member whose header claims a size in base 256, as GNU tar writes large ones."""
    member = tarfile.TarInfo("a")
    member.type, member.size = kind, 1
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = (b"\x80" if size >= 0 else b"\xff") + (size % (1 << 88)).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + b"x" * 512 + packed(plain("b"))


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
@pytest.mark.parametrize("size", [1 << 40, 1 << 64, -512, -(1 << 70)])
def test_a_size_that_no_file_has_is_refused(tmp_path: Path, kind: bytes, size: int) -> None:
    (tmp_path / "x").write_bytes(lzma.compress(sized(kind, size)))
    with pytest.raises(ArchiveError):
        read_archive(tmp_path / "x")


def sparse() -> bytes:
    member = tarfile.TarInfo("a")
    member.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "a",
        "GNU.sparse.realsize": str(1 << 40),
    }
    return packed((member, b"1\n0\n512\n".ljust(512, b"\0") + b"x" * 512))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lambda: lzma.compress(b"\0" * (archive.MAX_BYTES + 1), preset=0), "more than 256 MiB"),
        (lambda: lzma.compress(packed(plain("a")))[:-9], "was cut off"),
        (lambda: lzma.compress(packed(plain("a"))) + b"more", "has more after its end"),
        (lambda: packed(plain("a")), "is not compressed by xz"),
        (lambda: b"", "was cut off"),
        (
            lambda: lzma.compress(packed(plain("a", b"x" * 5000))[:2000]),
            r"no whole tar|was cut off",
        ),
        (lambda: lzma.compress(b"no tar at all" * 99), "is no whole tar archive"),
        (lambda: lzma.compress(sparse()), "no plain file|no whole tar"),
    ],
)
def test_bombs_and_scraps_are_refused(
    tmp_path: Path, content: Callable[[], bytes], said: str
) -> None:
    (tmp_path / "x").write_bytes(content())
    with pytest.raises(ArchiveError, match=said):
        read_archive(tmp_path / "x")


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 3)
    write_archive(tmp_path / "x", dict.fromkeys("abcd", b""))
    with pytest.raises(ArchiveError, match="more than 3 files"):
        read_archive(tmp_path / "x")


def test_what_needs_much_memory_to_unpack_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_archive(tmp_path / "x", {"a": b"x"})
    monkeypatch.setattr(archive, "MAX_MEMORY", 32 << 20)
    with pytest.raises(ArchiveError, match="Memory usage limit"):
        read_archive(tmp_path / "x")


@pytest.mark.parametrize("what", ["missing", "folder", "pipe"])
def test_what_cannot_be_read_is_told(tmp_path: Path, what: str) -> None:
    if what == "folder":
        (tmp_path / "x").mkdir()
    if what == "pipe":
        os.mkfifo(tmp_path / "x")
    with pytest.raises(UsageError, match="cannot be read"):
        read_archive(tmp_path / "x")
