"""ci/kind/runc-allowed: what it leaves out of what runc is asked for, and what it leaves alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "ci/kind/runc-allowed"


@pytest.fixture
def program() -> Any:
    loader = SourceFileLoader("runc_allowed", str(PROGRAM))
    spec = spec_from_loader("runc_allowed", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def process() -> dict[str, Any]:
    names = ["CAP_KILL", "CAP_SYS_RESOURCE"]
    return {
        "capabilities": {"bounding": list(names), "effective": list(names)},
        "rlimits": [{"type": "RLIMIT_NOFILE"}],
        "oomScoreAdj": -999,
    }


def test_nothing_is_taken_from_a_machine_that_has_all(program: Any) -> None:
    asked = process()
    program.restrict(asked, {"CAP_KILL", "CAP_SYS_RESOURCE"})
    assert asked == process()


def test_what_the_machine_lacks_is_not_asked_for(program: Any) -> None:
    asked = process()
    program.restrict(asked, {"CAP_KILL"})
    assert asked == {"capabilities": {"bounding": ["CAP_KILL"], "effective": ["CAP_KILL"]}}


def test_the_files_of_create_and_exec_are_changed_and_runc_gets_the_same_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runc").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n')
    (tmp_path / "runc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    asked = {"capabilities": {"bounding": ["CAP_NEVER_HEARD_OF"]}}
    (tmp_path / "config.json").write_text(json.dumps({"process": asked}))
    (tmp_path / "process").write_text(json.dumps(asked))
    python = shutil.which("python3")
    for arguments in (
        ["create", "--bundle", str(tmp_path), "x"],
        ["exec", "--process", str(tmp_path / "process"), "x"],
        ["state", "x"],
    ):
        subprocess.run([str(python), str(PROGRAM), *arguments], check=True, timeout=60)
    none: dict[str, Any] = {"capabilities": {"bounding": []}}
    assert json.loads((tmp_path / "config.json").read_text()) == {"process": none}
    assert json.loads((tmp_path / "process").read_text()) == none
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"create --bundle {tmp_path} x",
        f"exec --process {tmp_path / 'process'} x",
        "state x",
    ]
