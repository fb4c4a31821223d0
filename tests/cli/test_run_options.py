"""Options of ``run`` about what runs, in which order it ends, and what is said of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.data import scenarios_dir
from conformance.results.events.scenario import Outcome
from conformance.results.read import load_results
from tests.cli.conftest import Call

GOOD = scenarios_dir() / "core/two-requests-two-devices.yaml"
RESULTS = Path("dra-conformance-results/results.ndjson")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A folder with two scenarios that fail, and one that passes after them."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    good = GOOD.read_text()
    wrong = good.replace("count: 2", "count: 1", 1)
    assert wrong != good
    for name, text in (("a-wrong", wrong), ("b-wrong", wrong), ("c-good", good)):
        text = text.replace("name: two-requests-two-devices", f"name: {name}", 1)
        (folder / f"{name}.yaml").write_text(text)
    return folder


def _outcomes() -> dict[str, str]:
    rows = load_results(RESULTS).scenarios
    return {row.scenario.id: str(row.outcome) for row in rows}


@pytest.mark.parametrize(
    ("given", "lost"), [(["-x"], 2), (["--maxfail", "2"], 1), (["--maxfail", "3"], 0), ([], 0)]
)
def test_a_run_ends_after_so_many_failures_and_calls_the_rest_lost(
    given: list[str], lost: int, run: Call, mixed: Path
) -> None:
    code, out, _ = run(str(mixed), *given)
    assert code == 1
    assert list(_outcomes().values()).count(Outcome.LOST) == lost
    assert ("the limit of --maxfail" in out) is bool(lost)


def test_only_what_failed_in_the_last_run_runs_again(run: Call, mixed: Path) -> None:
    run(str(mixed))
    assert run(str(mixed), "--lf")[0] == 1
    assert set(_outcomes()) == {"a-wrong", "b-wrong"}
    wrong = mixed / "a-wrong.yaml"
    wrong.write_text(GOOD.read_text().replace("name: two-requests-two-devices", "name: a-wrong", 1))
    run(str(mixed), "--lf", "-o", str(RESULTS.parent))
    assert _outcomes() == {"a-wrong": "passed", "b-wrong": "failed"}
    run(str(mixed), "--failed-in", str(RESULTS), "-o", "again", "-k", "b-")
    assert [row.scenario.id for row in load_results(Path("again/results.ndjson")).scenarios] == [
        "b-wrong"
    ]


def test_where_nothing_failed_nothing_is_run_again_and_the_results_stay(run: Call) -> None:
    assert run(str(GOOD))[0] == 0
    before = RESULTS.read_bytes()
    code, _, err = run(str(GOOD), "--lf")
    assert code == 2
    assert "nothing failed in that run" in err
    assert RESULTS.read_bytes() == before


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("--lf", "cannot be read"),
        ("--lf --failed-in x", "--lf and --failed-in exclude each other"),
        ("--maxfail -1", "--maxfail"),
        ("--kep 481", "unknown enhancement 481; did you mean 4815"),
        ("--gate DRADeviceTaint", "did you mean DRADeviceTaintRules or DRADeviceTaints?"),
        ("--since 1.33", "known minors are 1.34"),
        ("-k core/two --exclude two", "matches -k core/two and without --exclude two below"),
        ("--tier allocation --kep 4815 --since 1.35", "0 with --since 1.35"),
    ],
)
def test_a_mistake_is_one_message(run: Call, given: str, says: str) -> None:
    code, _, err = run(*given.split())
    assert code == 2
    assert says in " ".join(err.split())
    assert "Traceback" not in err


def test_the_slowest_scenarios_are_named_with_their_slowest_step(run: Call, mixed: Path) -> None:
    _, out, _ = run(str(mixed), "--durations", "2")
    lines = out.splitlines()
    at = lines.index("slowest of 3 scenarios:")
    assert len([line for line in lines[at + 1 : at + 5] if " s  " in line]) == 4
    assert re.match(r" +[\d.]+ s    (apply|expect) ", lines[at + 2])
    assert lines[at + 5] == ""


def test_a_debug_log_names_what_each_scenario_waits_for(run: Call) -> None:
    assert run(str(GOOD), "--debug")[0] == 0
    log = (RESULTS.parent / "debug.log").read_text()
    assert "core/two-requests-two-devices: attempt 1 begins" in log
    assert "up to" in log
