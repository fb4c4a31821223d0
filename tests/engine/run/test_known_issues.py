"""A failure is a known issue only on a version that has it, and only if nothing else is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from conformance.compare.conclude import conclude_run
from conformance.results import knownissues
from conformance.results.events.comparison import Judgement, ScenarioCompared, Verdict
from conformance.results.events.result import RunResult, by_outcome
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.results.knownissues import with_known_issues
from conformance.scenario.registry import KnownIssue, KnownIssues, load_known_issues
from conformance.seam.overlaps import Overlap
from kube.base.errors import ExitCode
from tests.report.builders import all_of, ended, finished, started

OVERLAP = Overlap("d", "p", "gpu-0", "ns/b", "ns/a", 7, "ns")
HALF_BOUND = "scheduler-frees-device-of-half-bound-pod"


def run_of(*events: ScenarioFinished) -> RunResult:
    planned = [event.scenario for event in events]
    return RunResult(run=started(planned), finished=events, footer=ended(events))


def twice(**changes: object) -> ScenarioFinished:
    """A scenario that failed by a device in two claims alone."""
    given = {"overlaps": (OVERLAP,), "namespace": "ns", **changes}
    return replace(finished("core/one", Outcome.FAILED, str(OVERLAP)), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("1.37.1", [HALF_BOUND]),
        ("v1.37.1-gke.5", [HALF_BOUND]),
        ("1.36.3", []),
        ("1.34.0", ["scheduler-allocates-twice-in-a-hurry"]),
        ("1.34.4", []),
        ("unknown", []),
    ],
)
def test_the_version_decides(version: str, names: list[str]) -> None:
    found = with_known_issues(twice(), "cluster", all_of(version))
    assert [item.name for item in found.known_issues] == names
    assert found.outcome is (Outcome.KNOWN if names else Outcome.FAILED)


@pytest.mark.parametrize("version", ["1.34.4", "1.35.4", "1.36.3", "1.37.1"])
def test_the_release_of_one_of_two_claims_is_known_of_every_minor_and_in_its_scenario_alone(
    version: str,
) -> None:
    text = "kube-scheduler allocated gpu-0 of pool p to ns/other while ns/first has it"
    name = "regressions/device-of-two-claims-stays-taken"
    found = with_known_issues(finished(name, Outcome.FAILED, text), "cluster", all_of(version))
    assert [item.name for item in found.known_issues] == ["scheduler-frees-device-of-two-claims"]
    other = finished("core/one", Outcome.FAILED, text)
    assert with_known_issues(other, "cluster", all_of(version)).outcome is Outcome.FAILED


def test_anything_else_that_is_wrong_is_a_failure() -> None:
    failed = tuple(replace(step, outcome=Outcome.FAILED) for step in twice().steps)
    others = [
        twice(steps=failed),
        twice(overlaps=()),
        twice(namespace="elsewhere"),
        twice(cleanup=Outcome.FAILED, left=("Pod p",)),
        twice(outcome=Outcome.ERROR),
    ]
    assert failed
    for other in others:
        assert with_known_issues(other, "cluster", all_of("1.37.1")) == other


def test_the_reference_has_no_known_issues() -> None:
    assert with_known_issues(twice(), "reference", all_of("1.37.1")) == twice()


def test_a_failure_of_a_named_scenario_is_known_by_what_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    issue = {
        "summary": "something goes wrong",
        "link": "https://github.com/kubernetes/kubernetes/issues/1",
        "affected": [{"from": "1.35.0", "fixedIn": "1.35.2"}],
        "shownBy": [{"scenario": "core/one", "message": "two of them"}],
    }
    listed = {"apiVersion": "dra-conformance/v1", "kind": "KnownIssues", "issues": {"it": issue}}
    issues = KnownIssues.model_validate(listed)
    monkeypatch.setattr(knownissues, "load_known_issues", lambda: issues)
    known = finished("core/one", Outcome.FAILED, "there are two of them")
    outcomes = {
        version: with_known_issues(known, "cluster", all_of(version)).outcome
        for version in ("1.34.9", "1.35.1", "1.35.2")
    }
    assert [*outcomes.values()] == [Outcome.FAILED, Outcome.KNOWN, Outcome.FAILED]
    for other in (
        replace(known, message="timeout"),
        finished("core/two", Outcome.FAILED, "two of them"),
    ):
        assert with_known_issues(other, "cluster", all_of("1.35.1")).outcome is Outcome.FAILED


def test_a_known_issue_is_no_failure_and_no_pass() -> None:
    known = with_known_issues(twice(), "cluster", all_of("1.37.1"))
    assert conclude_run(run_of(known)).code is ExitCode.INCONCLUSIVE  # nothing passed
    passed = finished("core/two", Outcome.PASSED)
    assert conclude_run(run_of(known, passed)).code is ExitCode.CONFORMANT
    failed = finished("core/three", Outcome.FAILED, "x")
    assert conclude_run(run_of(known, passed, failed)).code is ExitCode.NOT_CONFORMANT
    left = replace(known, cleanup=Outcome.FAILED)
    assert by_outcome((left.scenario,), (left,))[Outcome.FAILED] == ("core/one",)


def test_an_allocation_counts_unless_a_step_failed_by_the_known_issue() -> None:
    wrong = Judgement(Verdict.INADMISSIBLE, "a device is missing")
    passed = finished("core/two", Outcome.PASSED)
    by_overlap = with_known_issues(twice(), "cluster", all_of("1.37.1"))
    steps = tuple(replace(step, outcome=Outcome.FAILED) for step in by_overlap.steps)
    in_a_step = replace(by_overlap, steps=steps)
    codes = []
    for known in (by_overlap, in_a_step):
        compared = (ScenarioCompared(known.scenario.id, (wrong,), (), ()),)
        codes.append(conclude_run(replace(run_of(known, passed), compared=compared)).code)
    assert codes == [ExitCode.NOT_CONFORMANT, ExitCode.CONFORMANT]


def test_an_issue_needs_a_link_that_can_be_followed_and_a_release() -> None:
    good = load_known_issues().issues[HALF_BOUND].model_dump(by_alias=True)
    assert KnownIssue.model_validate(good)
    wrongs: list[dict[str, object]] = [
        {"link": "see there"},
        {"affected": [{"from": "1.37"}]},
        {"affected": []},
    ]
    for wrong in wrongs:
        with pytest.raises(ValidationError):
            KnownIssue.model_validate(good | wrong)
