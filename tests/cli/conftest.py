"""The command line as a user calls it, in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.cli import main


class Done(NamedTuple):
    """What a command ended with."""

    code: int
    out: str
    err: str


Call = Callable[..., Done]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call ``dra-conformance``; none of its output is a traceback."""

    def called(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["dra-conformance", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Done(int(ended.value.code or 0), out, err)

    return called


@pytest.fixture
def call(command: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Call it in a folder of its own, with a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return command


@pytest.fixture
def run(call: Call) -> Call:
    """Call its ``run``."""
    return partial(call, "run")
