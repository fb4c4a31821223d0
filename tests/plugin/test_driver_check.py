"""The checks of a driver as tests of its own repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import sys
import pytest

@pytest.fixture(scope="module")
def dra_driver_command():
    return [sys.executable, "-m", "nvml_driver", "run", "--simulate", "t4x4", *{options}]

def test_contract(dra_driver_check):
    dra_driver_check()
"""


def run(folder: Path, tests: str, *arguments: str) -> str:
    (folder / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_each_check_is_a_test(tmp_path: Path) -> None:
    chosen = "answers-exactly-the-claim or no-dns or dns-subdomain"
    said = run(tmp_path, TESTS.format(options=[]), "-k", chosen)
    assert "PASSED test_it.py::test_contract[registration/name-is-a-dns-subdomain]" in said
    assert "PASSED test_it.py::test_contract[prepare/answers-exactly-the-claim]" in said
    assert "3 passed" in said


def test_a_driver_that_does_not_start_fails_with_its_last_words(tmp_path: Path) -> None:
    said = run(tmp_path, TESTS.format(options=["--no-such-option"]), "-k", "socket-appears")
    assert "the driver has ended: its log ends: " in said
    assert "1 failed" in said


def test_the_command_must_be_said(tmp_path: Path) -> None:
    tests = "def test_contract(dra_driver_check):\n    dra_driver_check()\n"
    said = run(tmp_path, tests, "-k", "socket-appears")
    assert "define a fixture dra_driver_command" in said
