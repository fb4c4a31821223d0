"""Options from dra-conformance.toml and pyproject.toml; completion in bash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.results.read import load_results
from tests.cli.conftest import Call

OWN = Path("dra-conformance.toml")


def test_a_file_has_the_defaults_the_command_line_wins_and_the_result_says_so(run: Call) -> None:
    OWN.write_text('k = ["core/two-requests"]\nretries = 1\ndurations = 1\n')
    code, out, err = run()
    assert (code, "slowest of 1 scenario" in out) == (0, True)
    assert "options of dra-conformance.toml: k, retries, durations" in err
    header = load_results(Path("dra-conformance-results/results.ndjson")).run
    assert (header.options["retries"], header.options["config"]["file"]) == (1, OWN.name)
    assert [item.id for item in header.planned] == ["core/two-requests-two-devices"]
    _, out, _ = run("-k", "core/exact", "--dry-run")
    assert "two-requests" not in out
    assert "core/exact" in out


def test_pyproject_has_a_table_and_another_file_can_be_named_or_none(run: Call) -> None:
    Path("pyproject.toml").write_text('[tool.dra-conformance]\nk = "core/two-requests"\n')
    assert "would run 1 scenario " in run("--dry-run")[1]
    Path("other.toml").write_text('k = ["core/exact-count-four", "core/two-requests"]\n')
    assert "would run 2 scenarios" in run("--dry-run", "--config", "other.toml")[1]
    assert "would run 1 scenario " not in run("--dry-run", "--no-config", "--level", "core")[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "k = 'x'\n\nretrys = 1\n",
            "toml:3: retrys: is not an option of `run`; did you mean retries?",
        ),
        ("verbose = 'yes'", "toml:1: verbose: must be true or false"),
        ("retries = true", "toml:1: retries: must be a string or a number"),
        ("output = ['a', 'b']", "toml:1: output: must be one string, number or boolean"),
        ("k = [['x']]", "toml:1: k: must be a list of strings"),
        ("config = 'other.toml'", "toml:1: config: is not an option of `run`"),
        ("retries = 99", "--retries 99: must be between 0 and 10"),
        ("k = ", "dra-conformance.toml: is not valid TOML"),
        ("\x00", "dra-conformance.toml: is not valid TOML"),
        ("k = " + "[" * 5000, "dra-conformance.toml: is not valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_one_message(run: Call, text: str, says: str) -> None:
    OWN.write_text(text)
    code, _, err = run("--dry-run")
    assert code == 2
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["--config", "/dev/zero"], "/dev/zero: cannot be read: it is not a regular file"),
        (["--no-config", "--config", "x"], "--config and --no-config exclude each other"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(run: Call, given: list[str], says: str) -> None:
    code, _, err = run(*given, "--dry-run")
    assert (code, says in err) == (2, True), err


def test_bash_completes_commands_and_options() -> None:
    program = [str(Path(sys.executable).parent / "dra-conformance")]

    def completed(words: str) -> list[str]:
        about = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        about["_DRA_CONFORMANCE_COMPLETE"] = "complete_bash"
        env = os.environ | about
        done = subprocess.run(
            program, env=env, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.split()

    assert completed("dra-conformance ver") == ["verify"]
    assert completed("dra-conformance run --retr") == ["--retries"]
