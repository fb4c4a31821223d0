from __future__ import annotations

import hashlib
import json
import struct
import sys
import tarfile
from pathlib import Path
from typing import IO, Any

import pytest

from conformance.clusters.local.images import (
    SANDBOX_IMAGE,
    SCENARIO_IMAGE,
    is_static,
    write_archive,
)


def read(archive: tarfile.TarFile, name: str) -> bytes:
    file: IO[bytes] | None = archive.extractfile(name)
    assert file is not None
    return file.read()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"program")
    write_archive(tmp_path / "images.tar", busybox, ["sh", "env"])
    return tmp_path / "images.tar"


def test_archive_has_both_images_on_one_layer_of_the_right_digest(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        manifest: list[dict[str, Any]] = json.loads(read(tar, "manifest.json"))
        layer = read(tar, "layer.tar")
        configs = [json.loads(read(tar, entry["Config"])) for entry in manifest]
    assert [entry["RepoTags"] for entry in manifest] == [[SCENARIO_IMAGE], [SANDBOX_IMAGE]]
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    assert [config["rootfs"]["diff_ids"] for config in configs] == [[digest], [digest]]


def test_sandbox_sleeps_and_scenario_has_a_shell(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        scenario = json.loads(read(tar, "config-0.json"))["config"]
        sandbox = json.loads(read(tar, "config-1.json"))["config"]
    assert scenario["Cmd"] == ["/bin/sh"]
    assert "sleep" in sandbox["Entrypoint"]


def test_layer_has_the_program_and_a_link_for_each_command(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        (archive.parent / "layer.tar").write_bytes(read(tar, "layer.tar"))
    with tarfile.open(archive.parent / "layer.tar") as layer:
        program = layer.getmember("bin/busybox")
        assert program.mode == 0o755
        assert read(layer, "bin/busybox") == b"program"
        for command in ("sh", "env"):
            link = layer.getmember(f"bin/{command}")
            assert (link.issym(), link.linkname) == (True, "busybox")
        assert layer.getmember("tmp").mode == 0o1777


def test_same_busybox_gives_the_same_archive(archive: Path) -> None:
    other = archive.parent / "again.tar"
    write_archive(other, archive.parent / "busybox", ["env", "sh"])
    assert other.read_bytes() == archive.read_bytes()


def elf(*program_header_types: int) -> bytes:
    header = bytearray(b"\x7fELF\x02\x01\x01" + bytes(9))
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 0, 0, 0, 0)
    struct.pack_into("<HH", header, 54, 56, len(program_header_types))
    return bytes(header) + b"".join(struct.pack("<I52x", kind) for kind in program_header_types)


def test_program_without_interpreter_is_static(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(elf(1, 1))
    assert is_static(program)
    program.write_bytes(elf(1, 3))
    assert not is_static(program)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at an ELF program of Linux")
def test_dynamically_linked_program_of_this_machine_is_not_static() -> None:
    assert not is_static(Path(sys.executable).resolve())


def test_script_is_no_static_program(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n" + "#" * 100)
    assert not is_static(script)
    script.write_text("")
    assert not is_static(script)
