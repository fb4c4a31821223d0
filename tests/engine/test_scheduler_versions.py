"""A scheduler of another minor than the API server's is judged by the rules of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.engine.requirements import reason_to_skip
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.results.knownissues import versions_of_kubernetes, with_known_issues
from conformance.scenario.loader import load_scenarios
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from tests.engine.miniature import write
from tests.report.builders import finished
from tests.scenario.shipped import ROOT

NEXT = "1.38.0-beta.0"
SINCE_1_38 = Path(__file__).parents[1] / "scenario/since_1_38"
OF_THE_SERVER = {"empty-effect-tolerates-noexecute", "wrong-names-and-amounts-are-refused"}
COMPARED = "regressions/build-metadata-is-compared"
ONE_OF_TWO = """\
- apply:
  - class: ${class.gpu}
  - slice: ${name.slice}
    nodeName: ${node.a}
    devices:
    - {name: dev-0, attributes: {firmware: {version: 1.0.0+a}}}
    - {name: dev-1, attributes: {firmware: {version: 1.0.0+b}}}
    - {name: dev-2, attributes: {firmware: {version: 2.0.0+a}}}
    - {name: dev-3, attributes: {firmware: {version: 2.0.0+b}}}
  - &claim
    claim: first
    requests: [{name: gpu, exactly: {count: 2}}]
    constraints: [{matchAttribute: "${driver}/firmware"}]
  - {pod: first, resourceClaims: [{name: gpu, resourceClaimName: first}]}
  - {<<: *claim, claim: second}
  - pod: second
    schedulerName: default-scheduler
    resourceClaims: [{name: gpu, resourceClaimName: second}]
- expect:
  - {pod: first, scheduled: true}
  - {pod: second, pending: {reason: Unschedulable}}
"""


def run(options: TargetOptions, *paths: Path) -> dict[str, ScenarioFinished]:
    with open_reference(options) as opened:
        result = run_suite(load_scenarios(paths), Setup("scheduler", opened), ())
    return {item.scenario.id: item for item in result.finished}


@pytest.mark.parametrize("scheduler", ["", "acme"])
def test_what_the_scheduler_decides_is_asked_and_judged_by_its_minor(scheduler: str) -> None:
    options = TargetOptions(scheduler=scheduler, scheduler_kubernetes=NEXT, record=True)
    came = run(options, SINCE_1_38, ROOT / f"{COMPARED}.yaml")
    skipped = {name: item.message for name, item in came.items() if item.outcome != Outcome.PASSED}
    assert skipped.pop(COMPARED) == f"needs a scheduler of Kubernetes <1.38, this is {NEXT}"
    assert skipped == dict.fromkeys(OF_THE_SERVER, "needs Kubernetes >=1.38, this is 1.37.2")
    judged = [each["snapshot"] for item in came.values() for each in item.decisions]
    assert judged
    assert {snapshot["kubernetes"] for snapshot in judged} == {NEXT}
    assert all(snapshot["features"]["fractionalCapacityRange"] for snapshot in judged)


def test_without_another_scheduler_its_scenarios_are_those_of_the_cluster() -> None:
    came = run(TargetOptions(), SINCE_1_38, ROOT / f"{COMPARED}.yaml")
    passed = {name for name, item in came.items() if item.outcome is Outcome.PASSED}
    assert passed == {COMPARED}


def test_the_default_scheduler_beside_it_has_the_rules_of_the_cluster(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        ONE_OF_TWO,
        tier="allocation",
        nodes=["a"],
        requires={"abilities": ["another-scheduler"]},
    )
    options = TargetOptions(scheduler="acme", scheduler_kubernetes=NEXT)
    [came] = run(options, file).values()
    assert came.outcome is Outcome.PASSED, came.message


def test_what_an_older_scheduler_lacks_is_a_reason_to_skip_where_it_has_pods(
    tmp_path: Path,
) -> None:
    gate = "DRADeviceTaintRules"
    with_pod = "- apply: [{pod: pod0}]\n- expect: [{pod: pod0, scheduled: true}]\n"
    without = "- apply: [{claim: c}]\n- expect: [{claim: c, allocated: false}]\n"
    with open_reference(TargetOptions(scheduler_kubernetes="1.36.3")) as opened:
        able, profile = opened.capabilities, opened.profile
    assert able.scheduler_gates[gate] is False  # 1.37 has it on by default
    for requires, reason in (
        ({}, None),
        ({"kubernetes": ">=1.37"}, "needs Kubernetes >=1.37, the scheduler is 1.36.3"),
        (
            {"scheduler": ">=1.37"},
            "needs a scheduler of Kubernetes >=1.37, this is 1.36.3",
        ),
        ({"kubernetes": ">=1.37", "scheduler": ">=1.36"}, None),
        ({"featureGates": [gate]}, f"feature gate {gate} is off in the scheduler, 1.36.3"),
    ):
        [loaded] = load_scenarios([write(tmp_path, with_pod, tier="allocation", requires=requires)])
        assert reason_to_skip(loaded.scenario.spec, able, profile) == reason
    newer = {"kubernetes": ">=1.37"}
    [loaded] = load_scenarios([write(tmp_path, without, tier="allocation", requires=newer)])
    assert reason_to_skip(loaded.scenario.spec, able, profile) is None


@pytest.mark.parametrize(
    ("scheduler", "kubelet", "outcome"),
    [
        ("", "v1.37.2", Outcome.KNOWN),
        (NEXT, "v1.37.2", Outcome.FAILED),  # 1.38 has it no more
        ("1.36.3", "v1.37.2", Outcome.KNOWN),
    ],
)
def test_an_issue_of_kube_scheduler_is_known_by_the_schedulers_version_alone(
    scheduler: str, kubelet: str, outcome: Outcome
) -> None:
    with open_reference(TargetOptions()) as opened:
        cluster = replace(
            opened.capabilities, scheduler_version=scheduler, versions={"kubelet": kubelet}
        )
    versions = versions_of_kubernetes(cluster)
    text = "expected pod without-it scheduled within 60 s"
    failed = finished("regressions/class-that-stays-serves", Outcome.FAILED, text)
    assert with_known_issues(failed, "cluster", versions).outcome is outcome
    of_the_controller = finished(
        "regressions/ended-pod-is-not-reserved-again",
        Outcome.FAILED,
        "expected reserved for stays, it is for ends",
    )
    assert with_known_issues(of_the_controller, "cluster", versions).outcome is Outcome.KNOWN


def test_an_older_kubelet_excuses_no_scheduler() -> None:
    with open_reference(TargetOptions()) as opened:
        cluster = replace(opened.capabilities, versions={"kubelet": "v1.34.0"})
    text = "expected old-0, old-1, old-2, it is new"
    failed = finished("regressions/all-devices-of-a-later-alternative", Outcome.FAILED, text)
    assert with_known_issues(failed, "cluster", versions_of_kubernetes(cluster)) == failed
