"""``metrics``: what a component counts, and by how much that has grown since a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.lint.files import lint_documents
from kube.observations import Sample
from tests.engine.miniature import Miniature, pod, scenario, setup, write

NAME = "dynamic_resource_allocation_resourceclaim_creates_total"
GAUGE = "dra_resource_claims_in_use"
GOOD = {"status": "success", "admin_access": "false"}


def asks(**bounds: Any) -> dict[str, Any]:
    of = {"component": "kube-controller-manager", "name": NAME, "labels": {"status": "success"}}
    return {"metrics": of | bounds, "eventually": "5s"}


def run(target: Miniature, **bounds: Any) -> ScenarioFinished:
    """Each object that is created is one more; 7 were before."""
    target.samples = [Sample(GOOD, 7.0), Sample({"status": "failure"}, 100.0)]

    def created(_obj: object) -> None:
        if target.samples is not None:
            target.samples[0] = Sample(GOOD, target.samples[0].value + 1)

    target.on_create = created
    steps = (
        {"apply": [pod("before")]},
        {"name": "made", "apply": [pod("one"), pod("two")]},
        {"expect": [asks(**bounds)]},
    )
    [finished] = run_suite([scenario(*steps)], setup(target), ()).finished
    return finished


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ({"grownSince": "made", "atLeast": 2}, ""),
        ({"grownSince": "made", "exactly": 2}, ""),
        ({"grownSince": "made", "atLeast": 1, "atMost": 2}, ""),
        ({"grownSince": "made", "atLeast": 3}, "it has grown by 2"),
        ({"grownSince": "made", "atMost": 1}, "it has grown by 2"),
        ({"grownSince": "made", "exactly": 1}, "it has grown by 2"),
        ({"atLeast": 11}, ""),  # with the namespace that the scenario is in
        ({"exactly": 2}, "it is 11"),
    ],
)
def test_a_value_or_its_growth_is_compared(bounds: dict[str, Any], found: str) -> None:
    finished = run(Miniature(), **bounds)
    assert finished.outcome is (Outcome.FAILED if found else Outcome.PASSED)
    assert found in finished.message


def test_who_does_not_tell_before_the_step_is_no_failure_of_the_target() -> None:
    target = Miniature()
    finished = run_suite(
        [
            scenario(
                {"name": "made", "apply": [pod("one")]},
                {"expect": [asks(grownSince="made", atLeast=1)]},
            )
        ],
        setup(target),
        (),
    ).finished[0]
    assert finished.outcome is Outcome.ERROR
    assert "did not report" in finished.message


def test_who_does_not_tell_later_fails_the_expectation() -> None:
    [finished] = run_suite(
        [scenario({"expect": [asks(atMost=1)]})], setup(Miniature()), ()
    ).finished
    assert finished.outcome is Outcome.FAILED
    assert "cannot be asked" in finished.message


STEPS = """\
- name: made
  apply: [{claim: one}, {pod: pod0, resourceClaims: [{name: gpu, resourceClaimName: one}]}]
- expect:
"""
ABILITIES = ["kubelet-metrics", "metrics:kube-scheduler"]


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ("component: kubelet, nodeOf: pod0, name: dra_resource_claims_in_use, atLeast: 1", ""),
        (f"component: kube-scheduler, name: {NAME}, grownSince: made, atLeast: 1", ""),
        (f"component: kube-scheduler, name: {NAME}", "give atLeast, atMost or exactly"),
        (f"component: kube-scheduler, node: n, name: {NAME}, atLeast: 1", "by neither"),
        ("component: kubelet, name: dra_resource_claims_in_use, atLeast: 1", "by node or nodeOf"),
        (f"component: kubelet, nodeOf: pod0, name: {NAME}, atLeast: 1", "has no metric"),
        (
            "component: kubelet, nodeOf: pod0, name: dra_resource_claims_in_us, atLeast: 1",
            "did you mean dra_resource_claims_in_use?",
        ),
        (
            f"component: kubelet, node: n, atMost: 1, labels: {{x: y}}, name: {GAUGE}",
            "not every minor has the label 'x'",
        ),
        (
            "component: kubelet, nodeOf: podd, name: dra_resource_claims_in_use, atLeast: 1",
            "did you mean pod0?",
        ),
        (
            f"component: kube-scheduler, name: {NAME}, grownSince: mode, atLeast: 1",
            "no earlier step is called 'mode'; did you mean made?",
        ),
        (
            f"component: kube-controller-manager, name: {NAME}, atLeast: 1",
            "add requires: {abilities: ['metrics:kube-controller-manager']}",
        ),
        (f"component: etcd, name: {NAME}, atLeast: 1", "'kube-scheduler'"),
    ],
)
def test_a_mistake_in_it_is_found_before_anything_runs(
    metrics: str, told: str, tmp_path: Path
) -> None:
    requires = {"devices": 1, "abilities": ABILITIES}
    steps = f"{STEPS}  - metrics: {{{metrics}}}\n"
    file = write(tmp_path, steps, level="core", requires=requires)
    said = "\n".join(map(str, lint_documents(read_documents(file))))
    assert told in said if told else not said
