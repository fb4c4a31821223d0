"""What is tried again, what becomes of it in every report, and what is never tried again."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conformance.certify.contradictions import find_contradictions
from conformance.compare.conclude import conclude_run, explain_uncertified
from conformance.engine.run import steps
from conformance.engine.run.ending import Divergence
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.report.allure import AllureResults
from conformance.report.ci import junit_xml
from conformance.report.pages import render_html, render_markdown
from conformance.report.terminal import TerminalReporter
from conformance.results.events.comparison import Judgement, ScenarioCompared, Verdict
from conformance.results.events.result import RunResult
from conformance.results.events.scenario import Outcome
from conformance.results.read import load_results
from conformance.results.write import ResultFile
from conformance.scenario.selection import Selection, select
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from kube.base.errors import ExitCode

NAME = "core/two-requests-two-devices"
Fail = Callable[[int], None]


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Have so many attempts fail at their first step."""

    def first(attempts: int) -> None:
        left = [attempts]
        perform = steps.perform

        def broken(step: Any, context: Any) -> Any:
            if left[0]:
                left[0] -= 1
                raise Divergence("a pod", f"none ({left[0]} to come)")
            return perform(step, context)

        monkeypatch.setattr(steps, "perform", broken)

    return first


def _run(retries: int, *reporters: Any, **changes: Any) -> RunResult:
    with open_reference(TargetOptions()) as opened:
        setup = replace(Setup("r1", opened, retries=retries), **changes)
        return run_suite(select((), Selection(only=(NAME,))), setup, reporters)


def test_what_passes_when_tried_again_is_flaky_and_no_pass(fail: Fail, tmp_path: Path) -> None:
    fail(2)
    result = _run(2, ResultFile(tmp_path / "r.ndjson"))
    assert result.outcomes[Outcome.FLAKY] == (NAME,)
    assert conclude_run(result).code is ExitCode.INCONCLUSIVE
    assert "flaky" in conclude_run(result).reasons[0]
    [event] = load_results(tmp_path / "r.ndjson").finished
    assert [item.outcome for item in event.attempts] == [Outcome.FAILED, Outcome.FAILED]
    assert event.message.splitlines()[0] == "passed at attempt 3"
    assert "attempt 2: expected a pod; found none (0 to come)" in event.message
    names = load_results(tmp_path / "r.ndjson").diagnostics[NAME]
    assert {name.split("-", 2)[1] for name in names} == {"1", "2"}
    assert find_contradictions(load_results(tmp_path / "r.ndjson"), ()) == ()


def test_every_report_says_flaky(fail: Fail, tmp_path: Path) -> None:
    fail(1)
    console = Console(file=io.StringIO(), width=200)
    allure = AllureResults(tmp_path / "allure")
    terminal = TerminalReporter(console, live=False)
    result = _run(1, ResultFile(tmp_path / "r.ndjson"), allure, terminal)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[1/1] flaky" in said
    assert "1 flaky in" in said
    assert "inconclusive: 1 scenario flaky: passed only when tried again" in said
    case = junit_xml(result).find("testsuite/testcase/error")
    assert case is not None
    assert case.get("type") == "flaky"
    [file] = (tmp_path / "allure").glob("*-result.json")
    written = json.loads(file.read_text())
    assert (written["status"], written["statusDetails"]["flaky"]) == ("broken", True)
    loaded = load_results(tmp_path / "r.ndjson")
    assert "passed at attempt 2" in render_html(loaded)
    assert "**flaky**" in render_markdown(loaded)


def test_what_fails_each_time_has_failed(fail: Fail) -> None:
    fail(9)
    result = _run(2)
    [event] = result.finished
    assert (event.outcome, len(event.attempts)) == (Outcome.FAILED, 2)
    assert conclude_run(result).code is ExitCode.NOT_CONFORMANT


def test_without_retries_nothing_is_tried_again(fail: Fail) -> None:
    fail(1)
    [event] = _run(0).finished
    assert (event.outcome, event.attempts) == (Outcome.FAILED, ())


def test_an_allocation_against_the_rules_is_not_tried_away(fail: Fail) -> None:
    fail(1)
    verdict = ScenarioCompared(NAME, (Judgement(Verdict.INADMISSIBLE, "a taint"),))
    [event] = _run(3, compare=lambda _: verdict).finished
    assert (event.outcome, event.attempts) == (Outcome.FAILED, ())


@pytest.mark.parametrize(("outcome", "attempts"), [("passed", 1), ("flaky", 0)])
def test_a_flaky_scenario_cannot_be_called_passed(
    outcome: str, attempts: int, fail: Fail, tmp_path: Path
) -> None:
    fail(1)
    _run(1, ResultFile(tmp_path / "r.ndjson"))
    result = load_results(tmp_path / "r.ndjson")
    [event] = result.finished
    forged = replace(event, outcome=Outcome(outcome), attempts=event.attempts[:attempts])
    found = "\n".join(map(str, find_contradictions(replace(result, finished=(forged,)), ())))
    assert f"is {outcome}, and {attempts} earlier attempts failed" in found


def test_time_limits_are_multiplied_and_such_a_run_certifies_nothing(tmp_path: Path) -> None:
    scenario = tmp_path / "two-requests-two-devices.yaml"
    text = select((), Selection(only=(NAME,)))[0].document.file.read_text()
    wrong = text.replace("phase: Running", "phase: Failed, eventually: 2s", 1)
    assert wrong != text
    scenario.write_text(wrong)
    with open_reference(TargetOptions()) as opened:
        result = run_suite(select([scenario]), Setup("r1", opened, time_factor=3.0), [])
    assert "within 6 s" in result.finished[0].message
    assert "time limits were multiplied by 3" in explain_uncertified(result)


def test_a_run_ends_at_its_timeout_and_removes_what_it_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = threading.Event()

    def endless(_: Any, context: Any) -> Any:
        started.set()
        while True:
            context.stop.wait(0.05)
            context.wait(lambda: None, 0.0)  # raises once the run is to end

    monkeypatch.setattr(steps, "perform", endless)
    with open_reference(TargetOptions()) as opened:
        scenarios = select((), Selection(only=("core/two-requests", "core/exact")))
        result = run_suite(scenarios, Setup("r1", opened), [], timeout=0.5)
        assert opened.target.owned("r1") == []
    assert started.is_set()
    assert result.interrupted
    assert len(result.outcomes[Outcome.LOST]) == len(scenarios)
    assert conclude_run(result).code is ExitCode.INCONCLUSIVE
