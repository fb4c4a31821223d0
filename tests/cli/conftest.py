"""The command line as a user calls it, in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from conformance.cli import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call ``dra-conformance``: its exit code, its output and its errors, none a traceback."""

    def called(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dra-conformance", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return int(ended.value.code or 0), out, err

    return called


@pytest.fixture
def run(command: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Call its ``run`` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return partial(command, "run")
