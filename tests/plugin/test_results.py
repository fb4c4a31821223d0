"""A pytest session writes what the command line writes, with xdist's workers and without."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.cli.app import app
from conformance.data import scenarios_dir
from conformance.engine.run.scenario_run import run_scenario
from conformance.plugin import items
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.results.read import load_results
from tests.plugin.conftest import Session

CORE = scenarios_dir() / "core"
FILES = (CORE / "two-requests-two-devices.yaml", CORE / "pod-claim-with-both-sources-rejected.yaml")


@pytest.fixture
def run(session: Session) -> Session:
    where = ("--rootdir", str(scenarios_dir()), "--dra-target", "reference")
    return partial(session, "-q", *where)


def test_the_help_names_its_own_options_and_those_of_commands(run: Session) -> None:
    help_ = " ".join(run("--help").out.split())
    assert "see `list --features`" in help_
    assert "Allow --dra-churn-time on a cluster" in help_


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_session_writes_a_complete_result_file(
    run: Session, tmp_path: Path, workers: str
) -> None:
    done = run("-n", workers, "--dra-output", "out", *map(str, FILES))
    assert done.code == 0, done.out + done.err
    result = load_results(tmp_path / "out/results.ndjson")
    assert sorted(event.scenario.id for event in result.finished) == sorted(
        f"core/{file.stem}" for file in FILES
    )
    assert {str(event.outcome) for event in result.finished} == {"passed"}
    assert not result.interrupted
    assert not result.left
    assert (tmp_path / "out/report.html").exists()


def test_a_scenario_that_fails_is_in_it_with_its_diagnostics(run: Session, tmp_path: Path) -> None:
    text = FILES[0].read_text().replace("count: 2", "count: 1", 1)
    (tmp_path / FILES[0].name).write_text(text)
    done = run("--dra-output", "out", FILES[0].name)
    assert done.code == 1, done.out
    result = load_results(tmp_path / "out/results.ndjson")
    [event] = result.finished
    assert str(event.outcome) == "failed"
    assert result.diagnostics[event.scenario.id]


def test_allure_gets_the_same_ids_from_pytest_and_from_the_command_line(
    run: Session, tmp_path: Path
) -> None:
    done = run("--alluredir", "pytest", *map(str, FILES))
    assert done.code == 0, done.out + done.err
    ran = CliRunner().invoke(app, ["run", "-o", "out", *map(str, FILES)])
    assert ran.exit_code == 0, ran.output

    def results(folder: Path) -> dict[str, object]:
        results = [json.loads(file.read_text()) for file in folder.glob("*-result.json")]
        assert len(results) == len(FILES)
        same = ("fullName", "testCaseId", "titlePath", "name", "description", "links", "status")
        pytests = ("framework", "host", "language", "package", "thread")
        return {
            item["historyId"]: [
                *(item.get(field) for field in same),
                [one["name"] for one in item["steps"]],
                sorted(
                    (one["name"], one["value"])
                    for one in item["labels"]
                    if one["name"] not in pytests
                ),
            ]
            for item in results
        }

    by_pytest = results(tmp_path / "pytest")
    assert by_pytest == results(tmp_path / "out/allure-results")
    for name in ("environment.properties", "categories.json"):
        files = [(tmp_path / folder / name) for folder in ("pytest", "out/allure-results")]
        assert files[0].read_text() == files[1].read_text()
    assert (tmp_path / "pytest/executor.json").exists()


RERUNNING = ("-p", "tests.plugin.rerunning")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_a_plugin_runs_again_is_one_more_attempt(
    run: Session, tmp_path: Path, workers: str
) -> None:
    failing = FILES[0].read_text().replace("count: 2", "count: 1", 1)
    (tmp_path / FILES[0].name).write_text(failing)
    done = run(*RERUNNING, "-n", workers, "--dra-output", "out", FILES[0].name, str(FILES[1]))
    assert done.code == 1, done.out + done.err
    result = load_results(tmp_path / "out/results.ndjson")
    ended = {event.scenario.name: event for event in result.finished}
    assert [str(item.outcome) for item in ended[FILES[0].stem].attempts] == ["failed", "failed"]
    assert ended[FILES[1].stem].attempts == ()
    assert (tmp_path / "out/report.html").exists()


def test_what_passes_at_another_attempt_is_flaky(
    run: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_first(*args: Any, **named: Any) -> ScenarioFinished:
        if named["earlier"]:
            return run_scenario(*args, **named)
        finished = replace(run_scenario(args[0], args[1], lambda _: None), outcome=Outcome.FAILED)
        args[2](finished)
        return finished

    monkeypatch.setattr(items, "run_scenario", fail_first)
    done = run(*RERUNNING, "--dra-output", "out", str(FILES[0]))
    assert done.code == 1, done.out + done.err  # as with --dra-retries
    [event] = load_results(tmp_path / "out/results.ndjson").finished
    assert (str(event.outcome), len(event.attempts)) == ("flaky", 1)


def test_what_a_plugin_repeats_is_said_and_the_first_result_stays(
    run: Session, tmp_path: Path
) -> None:
    done = run(*RERUNNING, "--again", "all", "--dra-output", "out", str(FILES[0]))
    assert done.code == pytest.ExitCode.INTERNAL_ERROR
    assert f"core/{FILES[0].stem}: run again after the end, by another plugin" in done.err
    [event] = load_results(tmp_path / "out/results.ndjson").finished
    assert str(event.outcome) == "passed"
    assert (tmp_path / "out/report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--dra-compare"], "--dra-compare judges a cluster"),
        (["--dra-name", "x"], "--name goes with"),
        (["--dra-feature-gate", "Nope=true"], "has no DRA feature gate Nope"),
        (["--dra-shard", "1/9"], "cannot be dealt to 9 shards"),
        (["--tx", "2*popen", "--dist", "each"], "--dist each runs each scenario in every worker"),
    ],
)
def test_a_mistake_is_one_message(run: Session, arguments: list[str], says: str) -> None:
    done = run(*arguments, str(FILES[0]))
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert says in done.err
    assert "Traceback" not in done.err


def test_shards_of_sessions_make_one_result(run: Session, tmp_path: Path) -> None:
    for index, workers in (("1", "0"), ("2", "1")):
        shard = ("--dra-shard", f"{index}/2", "--dra-output", f"part-{index}")
        done = run("-n", workers, *shard, *map(str, FILES))
        assert done.code == 0, done.out + done.err
        assert "1 passed" in done.out
    merged = CliRunner().invoke(app, ["merge", "part-1", "part-2", "-o", "all"])
    assert merged.exit_code == 0, merged.output
    result = load_results(tmp_path / "all/results.ndjson")
    assert [str(row.outcome) for row in result.scenarios] == ["passed", "passed"]
    assert {file.name for file in (tmp_path / "all").iterdir()} >= {"junit.xml", "report.html"}
