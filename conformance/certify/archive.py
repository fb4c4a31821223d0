"""Archives of several files in one: written the same way each time, read without trusting them.

An archive is a tar compressed by xz. Those of strangers may be made to hurt: each limit here is far
above what a run gives, and whatever is not a plain file with a plain name is refused.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path

from conformance.errors import UsageError
from conformance.files import read_regular, write_whole
from conformance.text import one_line

MAX_PACKED = 64 << 20
"""Bytes of an archive."""
MAX_BYTES = 256 << 20
"""Bytes of all that is in it, unpacked."""
MAX_FILES = 5000
MAX_MEMORY = 128 << 20
"""Bytes that unpacking may use: xz's own presets need at most 65 MiB."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_LONGEST_NAME = 250
_CHUNK = 1 << 20


class ArchiveError(UsageError):
    """An archive is not as the suite writes one; says the archive and what is wrong in it."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(f"{path}: {text}; `dra-conformance submit` writes such a file")


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """Write an archive; the same files give the same bytes, whoever writes them and when.

    Raises:
        OSError: it cannot be written.
        UsageError: it would be refused for its size when it is read.
        ValueError: likewise, for a name.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            if (wrong := _wrong_name(name)) is not None:
                raise ValueError(wrong)
            member = tarfile.TarInfo(name)  # of nobody, at time 0
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    content = lzma.compress(packed.getvalue(), preset=9) if packed.tell() <= MAX_BYTES else b""
    if not content or len(content) > MAX_PACKED:
        raise UsageError(
            f"{path}: would hold {packed.tell() >> 20} MiB, which is more than anybody reads"
            f" ({MAX_BYTES >> 20} MiB, packed {MAX_PACKED >> 20} MiB); run fewer scenarios"
        )
    write_whole(path, content)


def read_archive(path: Path) -> dict[str, bytes]:
    """The files in an archive by their names.

    Raises:
        UsageError: it cannot be read.
        ArchiveError: it is no such archive, is too large, or has something else than plain files.
    """
    try:
        packed = read_regular(path, MAX_PACKED)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    try:
        with tarfile.open(fileobj=io.BytesIO(_unpacked(path, packed)), mode="r:") as archive:
            return _files(path, archive)
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise ArchiveError(path, f"is no whole tar archive ({one_line(error, 100)})") from None


def _unpacked(path: Path, packed: bytes) -> bytes:
    """What xz has in it, which may be nothing but a bomb."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY)
    found = bytearray()
    source = packed
    try:
        while not unpacker.eof:
            found += unpacker.decompress(source, max_length=_CHUNK)
            source = b""
            if len(found) > MAX_BYTES:
                raise ArchiveError(path, f"holds more than {MAX_BYTES >> 20} MiB")
            if unpacker.needs_input:
                raise ArchiveError(path, "was cut off")
    except lzma.LZMAError as error:
        raise ArchiveError(path, f"is not compressed by xz ({one_line(error, 100)})") from None
    if unpacker.unused_data:
        raise ArchiveError(path, "has more after its end")
    return bytes(found)


def _files(path: Path, archive: tarfile.TarFile) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for member in archive:
        name = member.name
        if (wrong := _wrong_name(name)) is not None:
            raise ArchiveError(path, wrong)
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.sparse is not None:
            raise ArchiveError(path, f"{name} is no plain file")
        if name in found:
            raise ArchiveError(path, f"has {name} twice")
        if len(found) == MAX_FILES:
            raise ArchiveError(path, f"holds more than {MAX_FILES} files")
        content = archive.extractfile(member)
        assert content is not None, "a plain file has content"
        found[name] = content.read()
        if len(found[name]) != member.size:
            raise ArchiveError(path, f"was cut off in {name}")
    for name in found:
        for parent in Path(name).parents:
            if str(parent) in found:
                raise ArchiveError(path, f"{parent} is a file and a folder")
    return found


def _wrong_name(name: str) -> str | None:
    """What is wrong with the name of a file; it is never shown as it is."""
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        return f"has a file with the name {one_line(ascii(name), 80)}, which is no plain name"
    return None
