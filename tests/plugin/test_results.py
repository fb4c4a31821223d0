"""The pytest door writes what the command line writes, with xdist's workers and without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.data import scenarios_dir
from conformance.resultfile.read import load_results

CORE = scenarios_dir() / "core"
FILES = (CORE / "two-requests-two-devices.yaml", CORE / "retired-flat-request-refused-in-v1.yaml")


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--rootdir", str(scenarios_dir()), "--dra-target", "reference", *arguments),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_session_writes_a_complete_result_file(tmp_path: Path, workers: str) -> None:
    done = run(tmp_path, "-n", workers, "--dra-output", "out", *map(str, FILES))
    assert done.returncode == 0, done.stdout + done.stderr
    result = load_results(tmp_path / "out/results.ndjson")
    assert sorted(event.scenario.id for event in result.finished) == sorted(
        f"core/{file.stem}" for file in FILES
    )
    assert {str(event.outcome) for event in result.finished} == {"passed"}
    assert not result.interrupted
    assert not result.left
    assert (tmp_path / "out/report.html").exists()


def test_a_scenario_that_fails_is_in_it_with_its_diagnostics(tmp_path: Path) -> None:
    text = FILES[0].read_text().replace("count: 2", "count: 1", 1)
    (tmp_path / FILES[0].name).write_text(text)
    done = run(tmp_path, "--dra-output", "out", FILES[0].name)
    assert done.returncode == 1, done.stdout
    result = load_results(tmp_path / "out/results.ndjson")
    [event] = result.finished
    assert str(event.outcome) == "failed"
    assert result.diagnostics[event.scenario.id]


def test_both_doors_give_allure_the_same_ids(tmp_path: Path) -> None:
    done = run(tmp_path, "--alluredir", "pytest", *map(str, FILES))
    assert done.returncode == 0, done.stdout
    subprocess.run(
        [*(sys.executable, "-m", "conformance", "run", "-o", "out"), *map(str, FILES)],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=True,
    )

    def ids(folder: Path) -> dict[str, tuple[str, list[str]]]:
        results = [json.loads(file.read_text()) for file in folder.glob("*-result.json")]
        assert len(results) == len(FILES)
        return {
            item["historyId"]: (
                item["fullName"],
                sorted(one["value"] for one in item["labels"] if "uite" in one["name"]),
            )
            for item in results
        }

    assert ids(tmp_path / "pytest") == ids(tmp_path / "out/allure-results")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--dra-compare"], "--dra-compare judges a cluster"),
        (["--dra-name", "x"], "--name goes with"),
        (["--dra-feature-gate", "Nope=true"], "has no DRA feature gate Nope"),
        (["--dra-output", ""], "the path is empty"),
    ],
)
def test_a_mistake_is_one_message(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = run(tmp_path, *arguments, str(FILES[0]))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert says in done.stderr
    assert "Traceback" not in done.stderr
