"""One scenario: its outcome, its cleanup, and what is told when it fails."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.engine.run.scenario_run import run_scenario
from conformance.engine.run.verbs import ADMISSION_SECONDS
from conformance.results.events.dispatch import Event
from conformance.results.events.scenario import Diagnostics, Outcome, ScenarioFinished
from conformance.scenario.base import PodSelector
from conformance.scenario.loader import LoadedScenario
from kube.base.errors import TargetError
from kube.errors import ApiError
from kube.values import Obj
from tests.engine.miniature import Miniature, attempt_in, pod, refusing, scenario, setup

SCHEDULED = {"expect": [{"pod": "p", "scheduled": True}]}
PENDING = {"expect": [{"pod": "pending", "scheduled": True, "eventually": "5s"}]}


def run(
    target: Miniature, loaded: LoadedScenario, events: list[Event] | None = None
) -> ScenarioFinished:
    return run_scenario(loaded, setup(target), (events if events is not None else []).append)


def test_a_scenario_that_holds_passes_and_leaves_nothing() -> None:
    target = Miniature()
    finished = run(target, scenario({"apply": [pod("p")]}, SCHEDULED))
    assert (finished.outcome, finished.cleanup) == (Outcome.PASSED, Outcome.PASSED)
    assert target.objects == {}
    assert finished.steps[1].observed == ({"pod": "p", "scheduled": True},)


def test_everything_made_has_the_runs_label() -> None:
    target = Miniature()
    made: list[Obj] = []
    target.on_create = made.append
    run(target, scenario({"apply": [pod("p")]}, SCHEDULED, nodes=["a"]))
    assert [obj["kind"] for obj in made] == ["Namespace", "Node", "Pod"]
    assert {obj["metadata"]["labels"]["dra-conformance.dev/run"] for obj in made} == {"run0"}


def test_the_scenarios_own_namespace_has_a_variable() -> None:
    labelled = {
        "kind": "Namespace",
        "name": "${namespace}",
        "patch": {"metadata": {"labels": {"a": "b"}}},
    }
    expected = {
        "object": {"kind": "Namespace", "name": "${namespace}"},
        "cel": "object.metadata.labels.a == 'b'",
    }
    target = Miniature()
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dra-of-another-run"}}
    target.scope("any").create(other)
    finished = run(target, scenario({"patch": labelled}, {"expect": [expected]}))
    assert finished.outcome is Outcome.PASSED, finished.message


def test_a_failed_pod_that_its_job_replaced_does_not_count() -> None:
    target = Miniature()
    labels = {"batch.kubernetes.io/job-name": "j"}
    scope = target.scope("ns")
    for name, phase in (("j-a", "Failed"), ("j-b", "Succeeded")):
        scope.create({**pod(name, labels=labels, namespace="ns"), "status": {"phase": phase}})
    pods = attempt_in(scope, scenario(SCHEDULED), target).find_pods(PodSelector(job="j"))
    assert [one["metadata"]["name"] for one in pods] == ["j-b"]


def test_the_first_expectation_that_never_holds_fails_with_what_was_found() -> None:
    events: list[Event] = []
    target = Miniature()
    steps = ({"apply": [pod("pending")]}, PENDING, {"apply": [pod("q")]})
    finished = run(target, scenario(*steps), events)
    assert finished.outcome is Outcome.FAILED
    assert "expected pod pending scheduled within 5 s; found" in finished.message
    assert "not scheduled" in finished.message
    assert target.time == 5.0
    assert len(finished.steps) == 2
    assert not any(line.startswith("create Pod q") for line in target.log)
    [diagnostics] = [event for event in events if isinstance(event, Diagnostics)]
    assert "Pod pending" in diagnostics.items["objects.txt"]  # taken before the cleanup


def test_an_object_that_is_forbidden_for_a_moment_is_created_all_the_same() -> None:
    target = Miniature()
    refusals = [ApiError(403, "Forbidden", "node a does not support it")] * 2

    def refuse(obj: Obj) -> None:
        if obj["kind"] == "Pod" and refusals:
            raise refusals.pop()

    target.on_create = refuse
    assert run(target, scenario({"apply": [pod("p")]}, SCHEDULED)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("refusal", "seconds"),
    [
        (ApiError(403, "Forbidden", "never"), ADMISSION_SECONDS),
        (ApiError(422, "Invalid", "spec is wrong"), 0.0),
    ],
)
def test_an_object_that_must_be_accepted_and_is_refused_is_a_failure(
    refusal: ApiError, seconds: float
) -> None:
    target = refusing(refusal)
    finished = run(target, scenario({"apply": [pod("p")]}, SCHEDULED))
    assert finished.outcome is Outcome.FAILED
    assert f"expected Pod p to be accepted; found {refusal.code} " in finished.message
    assert refusal.message in finished.message
    assert target.time == seconds


def test_what_cannot_be_removed_fails_the_scenario_and_is_named() -> None:
    target = Miniature()
    stuck = pod("p", finalizers=["example.com/never"])
    loaded = scenario({"apply": [stuck]}, SCHEDULED, timeouts={"cleanup": "3s"})
    finished = run(target, loaded)
    assert (finished.outcome, finished.cleanup) == (Outcome.FAILED, Outcome.FAILED)
    assert finished.left == ("Pod p (finalizers example.com/never) is still there after 3 s",)


@pytest.mark.parametrize("raised", [TargetError("no answer"), ValueError("a bug")])
def test_a_broken_target_and_a_broken_suite_are_errors_not_failures(raised: Exception) -> None:
    finished = run(refusing(raised), scenario({"apply": [pod("p")]}, SCHEDULED))
    assert finished.outcome is Outcome.ERROR
    assert str(raised) in finished.message


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"requires": {"kubernetes": ">=1.99"}}, "needs Kubernetes >=1.99, this is 1.37.1"),
        ({"requires": {"apis": ["x/v1"]}}, "API x/v1 is not served"),
        ({"requires": {"abilities": ["cdi"]}}, "not supported by this target: cdi"),
        ({"requires": {"featureGates": ["DRAx"]}}, "gate DRAx is on is not known"),
        ({"requires": {"featureGates": ["DRAOff"]}}, "feature gate DRAOff is off"),
        ({"tier": "node"}, "no driver profile for the driver"),
        ({"tier": "device"}, "tier device is not served"),
    ],
)
def test_unmet_needs_skip_with_the_reason(spec: dict[str, Any], reason: str) -> None:
    finished = run(Miniature(), scenario({"apply": [pod("p")]}, SCHEDULED, **spec))
    assert finished.outcome is Outcome.SKIPPED
    assert reason in finished.message


def test_a_stop_ends_the_waiting_and_still_cleans_up() -> None:
    target = Miniature()
    given = setup(target)
    given.stop.set()
    finished = run_scenario(
        scenario({"apply": [pod("pending")]}, PENDING), given, lambda event: None
    )
    assert finished.outcome is Outcome.LOST
    assert target.objects == {}


REFUSED = {"rejected": {"object": pod("p"), "code": 422, "field": "spec.x", "message": "bad"}}


def test_a_rejection_that_does_not_come_is_a_failure_and_cleaned_up() -> None:
    target = Miniature()
    finished = run(target, scenario({"expect": [REFUSED]}))
    assert finished.outcome is Outcome.FAILED
    assert "it was accepted as p" in finished.message
    assert target.objects == {}


def test_a_rejection_for_another_reason_is_a_failure() -> None:
    finished = run(refusing(ApiError(403, "Forbidden", "no")), scenario({"expect": [REFUSED]}))
    assert finished.message == (
        "expected Pod rejected with code 422, naming spec.x, saying 'bad';"
        " found code 403, it names no field, another message: no"
    )


def test_consistently_fails_when_it_changes_meanwhile() -> None:
    target = Miniature()
    loaded = scenario(
        {"apply": [pod("pending")]},
        {"expect": [{"pod": "pending", "scheduled": False, "consistently": "10s"}]},
    )
    given = setup(target)
    real = target.scope

    class Late(type(real("x"))):  # type: ignore[misc]
        def get(self, ref: Any) -> Any:
            found = super().get(ref)
            if found is not None and ref.kind == "Pod" and target.time > 4:
                found["spec"]["nodeName"] = "late"
            return found

    target.scope = lambda namespace: Late(target, namespace)  # type: ignore[method-assign]
    finished = run_scenario(loaded, given, lambda event: None)
    assert "expected pod pending not scheduled, for 10 s; found" in finished.message
    assert "bound to late" in finished.message
