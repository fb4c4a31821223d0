"""A device in two claims fails the scenario in which it happened, with and without a comparison."""

from __future__ import annotations

import pytest

from conformance.compare.compare_scenarios import compare_scenario
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.comparison import Verdict
from conformance.results.events.result import count_verdicts
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from tests.engine.miniature import scenario
from tests.mutants import mutant

PARTS = {
    "DeviceClass": (
        "${class.gpu}",
        {"selectors": [{"cel": {"expression": "device.driver == '${driver}'"}}]},
    ),
    "ResourceSlice": (
        "${name.slice}",
        {
            "driver": "${driver}",
            "nodeName": "${node.a}",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    ),
}
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "${class.gpu}"}}


def three_pods() -> LoadedScenario:
    """A scenario that is content as soon as all are scheduled, which only one can be."""
    objects = [
        {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, (name, spec) in PARTS.items()
    ]
    for name in ("x", "y", "z"):
        objects += [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name},
                "spec": {"devices": {"requests": [REQUEST]}},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "c", "image": "${image}"}],
                    "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                },
            },
        ]
    scheduled = [{"pod": name, "scheduled": True} for name in ("x", "y", "z")]
    return scenario({"apply": objects}, {"expect": scheduled}, nodes=["a"])


def ran(*faults: str, record: bool) -> ScenarioFinished:
    with mutant(*faults) as target:
        options = TargetOptions(record=record)
        opened = Opened(target, target.capabilities(), None, "image", options)
        return run_suite([three_pods()], Setup("run", opened), ()).finished[0]


@pytest.mark.parametrize("record", [False, True])
def test_a_scheduler_that_allocates_a_device_twice_is_named(record: bool) -> None:
    ended = ran("double-allocation", record=record)
    assert ended.outcome is Outcome.FAILED
    assert {step.outcome for step in ended.steps} == {Outcome.PASSED}
    (found,) = ended.overlaps
    names = [item.rpartition("/")[2] for item in (found.holder, found.claim)]
    assert [*names, len(found.follows)] == ["x", "y", 1]
    assert ended.message == str(found)
    assert "kube-scheduler allocated gpu-0 of pool p to" in ended.message


def test_a_scheduler_that_does_not_is_not() -> None:
    ended = ran(record=False)
    assert ended.overlaps == ()
    assert "kube-scheduler" not in ended.message


def test_what_the_judge_says_of_the_same_overlap_does_not_count_again() -> None:
    ended = ran("double-allocation", record=True)
    compared = compare_scenario(ended)
    counts = count_verdicts([compared])
    assert (counts[Verdict.IDENTICAL], counts[Verdict.OVERLAPPING]) == (1, 2)
    assert sum(counts.values()) == 3
    assert compared.conformant  # the overlap itself has failed the scenario
    assert [item.reason for item in compared.judgements[1:]] == [str(ended.overlaps[0])] * 2
