"""A file that a user names is written whole, and what stands there is what stood there."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from conformance.cli.output import write_named
from kube.base.errors import UsageError


def test_folders_are_made_and_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "a/b/file", tmp_path / "link"
    write_named(file, b"one")
    link.symlink_to(file)
    write_named(link, b"two")
    assert link.is_symlink()
    assert file.read_bytes() == b"two"
    assert list(file.parent.iterdir()) == [file]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_named(pipe, b"text")
    reader.join(20)
    assert got == [b"text"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["folder", "file/below", "x" * 300, "/dev/full"])
def test_what_cannot_be_written_is_one_message(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="cannot be written: "):
        write_named(tmp_path / name, b"text")
    assert (tmp_path / "file").read_text() == "mine"
    assert not list(tmp_path.glob("*.tmp"))
