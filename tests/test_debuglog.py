"""The debug log of a run: written where it is asked for, and without credentials."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from conformance.debuglog import debug_log

LOG = logging.getLogger("conformance.test")


def test_a_file_gets_all_lines_redacted_and_standard_error_warnings_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with debug_log(tmp_path / "debug.log"):
        LOG.debug("watching with token: SECRETXYZ")
        LOG.warning("password: hunter2 is old")
    LOG.warning("after it")
    written = (tmp_path / "debug.log").read_text()
    assert [line.split(": ", 1)[1] for line in written.splitlines()] == [
        "watching with token: <redacted>",
        "password: <redacted> is old",
    ]
    assert capsys.readouterr().err.count("password: <redacted> is old") == 1


def test_without_a_file_warnings_are_shown_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with debug_log(None):
        LOG.info("quiet")
        LOG.warning("loud")
    err = capsys.readouterr().err
    assert ("WARNING: loud" in err, "quiet" in err) == (True, False)
