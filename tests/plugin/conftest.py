"""Pytest sessions in this process: to start another one takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done

Session = Callable[..., Done]


@pytest.fixture
def session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Session:
    """Run pytest with arguments, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    common = ("-p", "no:cacheprovider", "-p", "no:faulthandler", "--import-mode", "importlib")

    def run(*arguments: str) -> Done:
        code = pytest.main([*common, *arguments])
        return Done(code, *capsys.readouterr())

    return run
