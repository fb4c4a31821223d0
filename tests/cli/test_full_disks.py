"""A disk that is full: one message, what was there stays, and nothing is claimed that is not there.

Each command runs on a file system of its own, in a mount namespace that ends with it.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.app import app
from conformance.report import pages
from kube.base.errors import ExitCode
from tests import programs

RUN = ["run", "--target", "reference", "-k", "core/exact", "-k", "core/two"]
OUTPUT = ["-o", "DISK/out"]
ABOUT = ["--organization", "o", "--project", "p", "--url", "https://example.com", "--version", "1"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports of a small run."""
    folder = tmp_path_factory.mktemp("recorded") / "out"
    assert CliRunner().invoke(app, [*RUN, "-o", str(folder)]).exit_code == 0
    return folder


def test_reports_are_not_announced_before_the_last_is_there(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))

    monkeypatch.setattr(pages, "write_whole", full)
    for command in (RUN, ["render", str(recorded)]):
        ended = CliRunner().invoke(app, [*command, "-o", str(tmp_path / command[0])])
        assert "report.html: cannot be written: No space left" in str(ended.exception)
        assert "`dra-conformance render " in str(ended.exception)
        assert "reports in" not in ended.output


@pytest.mark.everything
@pytest.mark.needs_root
@pytest.mark.parametrize(
    ("command", "kilobytes", "code", "says"),
    [
        ([*RUN, *OUTPUT], 40, ExitCode.USAGE, "choose another folder with -o"),
        ([*RUN, *OUTPUT], 68, ExitCode.INCONCLUSIVE, "report.html: cannot be written"),
        (
            ["run", "--target", "reference", "-k", "core/", *OUTPUT],
            300,
            ExitCode.INCONCLUSIVE,
            "the run was ended early",
        ),
        (["render", "RECORDED", *OUTPUT], 40, ExitCode.USAGE, "choose another folder with -o"),
        (
            ["report", "RECORDED/results.ndjson", *ABOUT, "-o", "DISK/old"],
            4,
            ExitCode.USAGE,
            "old: cannot be written",
        ),
        (
            ["submit", "RECORDED/results.ndjson", *ABOUT, "--into", "DISK"],
            20,
            ExitCode.USAGE,
            "o-p: cannot be written",
        ),
    ],
)
def test_a_full_disk_is_one_message(
    recorded: Path, tmp_path: Path, command: list[str], kilobytes: int, code: int, says: str
) -> None:
    places = {"DISK": str(tmp_path), "RECORDED": str(recorded)}
    for name, place in places.items():
        command = [word.replace(name, place) for word in command]
    script = (
        f"mount -t tmpfs -o size={kilobytes}k none {tmp_path} && echo old > {tmp_path}/old &&"
        f' {{ "$@"; code=$?; cat {tmp_path}/old; exit $code; }}'
    )
    suite = [sys.executable, "-m", "conformance", *command]
    ended = programs.ended(["unshare", "--mount", "sh", "-c", script, "sh", *suite])
    assert ended.returncode == code, ended.stderr
    [error] = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert "No space left" in error
    assert says in error
    assert "Traceback" not in ended.stderr
    assert "reports in" not in ended.stdout
    assert ended.stdout.endswith("old\n")
