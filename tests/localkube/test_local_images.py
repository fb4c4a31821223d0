from __future__ import annotations

import hashlib
import json
import re
import tarfile
from pathlib import Path
from typing import IO, Any

import pytest

from localkube.binaries.images import (
    COMMANDS,
    SANDBOX_IMAGE,
    SCENARIO_IMAGE,
    c_library,
    write_archive,
)
from localkube.data import local_cluster_modules_dir


def read(archive: tarfile.TarFile, name: str) -> bytes:
    file: IO[bytes] | None = archive.extractfile(name)
    assert file is not None
    return file.read()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "pod-shell").write_bytes(b"program")
    write_archive(tmp_path / "images.tar", tmp_path / "pod-shell")
    return tmp_path / "images.tar"


def test_archive_has_both_images_on_one_layer_of_the_right_digest(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        manifest: list[dict[str, Any]] = json.loads(read(tar, "manifest.json"))
        layer = read(tar, "layer-0.tar")
        configs = [json.loads(read(tar, entry["Config"])) for entry in manifest]
    assert [entry["RepoTags"] for entry in manifest] == [[SCENARIO_IMAGE], [SANDBOX_IMAGE]]
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    assert [config["rootfs"]["diff_ids"] for config in configs] == [[digest], [digest]]


def test_sandbox_pauses_and_scenario_has_a_shell(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        scenario = json.loads(read(tar, "config-0.json"))["config"]
        sandbox = json.loads(read(tar, "config-1.json"))["config"]
    assert scenario["Cmd"] == ["/bin/sh"]
    assert sandbox["Entrypoint"] == ["/bin/pause"]


def test_layer_has_the_program_and_a_link_for_each_command(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        (archive.parent / "layer-0.tar").write_bytes(read(tar, "layer-0.tar"))
    with tarfile.open(archive.parent / "layer-0.tar") as layer:
        program = layer.getmember("bin/pod-shell")
        assert program.mode == 0o755
        assert read(layer, "bin/pod-shell") == b"program"
        for command in ("sh", "env", "find", "pause"):
            link = layer.getmember(f"bin/{command}")
            assert (link.issym(), link.linkname) == (True, "pod-shell")
        assert layer.getmember("tmp").mode == 0o1777


def test_same_program_gives_the_same_archive(archive: Path) -> None:
    other = archive.parent / "again.tar"
    write_archive(other, archive.parent / "pod-shell")
    assert other.read_bytes() == archive.read_bytes()


def test_tools_of_a_driver_find_the_c_library_of_this_machine(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libc.so.6").write_bytes(b"c")
    (folder / "libm.so.6").symlink_to("libm-2.so")
    (folder / "libm-2.so").write_bytes(b"m")
    assert c_library(tmp_path) == {}, "a machine without the loader runs no such tool"
    for loader in ("lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"):
        (tmp_path / loader).parent.mkdir()
        (tmp_path / loader).write_bytes(b"loader")
    found = c_library(tmp_path)
    assert sorted(found.values()) == [b"c", b"loader", b"m"]

    (tmp_path / "pod-shell").write_bytes(b"program")
    write_archive(tmp_path / "images.tar", tmp_path / "pod-shell", found)
    with tarfile.open(tmp_path / "images.tar") as tar:
        scenario = json.loads(read(tar, "config-0.json"))["config"]
        (tmp_path / "layer.tar").write_bytes(read(tar, "layer-0.tar"))
    with tarfile.open(tmp_path / "layer.tar") as layer:
        assert {name: read(layer, name) for name in found} == found
    searched = dict(one.split("=") for one in scenario["Env"])["LD_LIBRARY_PATH"].split(":")
    assert "/usr/lib/x86_64-linux-gnu" in searched


def test_program_knows_exactly_the_commands_that_are_linked_to_it() -> None:
    source = (local_cluster_modules_dir() / "node/pod-shell/main.go").read_text()
    table = source.partition("var commands = ")[2].partition("\n}")[0]
    assert tuple(re.findall(r'^\t"(\w+)":', table, re.MULTILINE)) == COMMANDS
