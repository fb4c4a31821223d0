"""Drivers whose devices show in a way of their own: right ones pass core, defects are noticed.

A network interface, a set of CPUs, a share of a device and a mount; profiles in `drivers/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace as changed

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from kube.cdi.edits import ContainerEdits
from kube.values import Obj
from kubesim.world import World
from tests.mutants import DEFECTS
from tests.mutants.allocation.inputs import results
from tests.mutants.allocation.inputs import writes as allocates
from tests.mutants.driver.preparation import drivers, first_devices, prepares
from tests.mutants.replacing import Mutation, replace
from tests.scenario.shapes import OWN_WAYS
from tests.scenario.shipped import shipped

CORE = [
    each
    for each in shipped()
    if each.scenario.spec.level == "core" and each.scenario.spec.tier == "node"
]
TWO_TOGETHER = {
    "core/container-sees-only-its-request",
    "core/job-separate-and-shared-claims",
    "core/two-requests-two-devices",
}
"""They need two devices on one node."""


ONE_EACH = {"network", "single"}  # Of these drivers a node has one device, so there are two nodes.


def run(
    shape: str, scenarios: Sequence[LoadedScenario], defect: Mutation | None = None
) -> tuple[ScenarioFinished, ...]:
    options = TargetOptions(driver=OWN_WAYS[shape], nodes=2 if shape in ONE_EACH else 1)
    with open_reference(options) as opened:
        if defect is not None:
            world = opened.target.world  # type: ignore[attr-defined]
            defect(world)
        return tuple(run_suite(scenarios, Setup("ways", opened), ()).finished)


@pytest.mark.parametrize("shape", sorted(OWN_WAYS))
def test_a_right_driver_passes_core_whatever_its_devices_are(shape: str) -> None:
    finished = run(shape, CORE)
    wrong = {item.scenario.id: item.message for item in finished if item.outcome is Outcome.FAILED}
    assert wrong == {}
    skipped = {item.scenario.id for item in finished if item.outcome is Outcome.SKIPPED}
    assert skipped == (TWO_TOGETHER if shape in ONE_EACH else set())


OF_SHARES = {
    "extended/device-cleanup/prepared-is-allocated-under-churn": Outcome.PASSED,
    "extended/extended-resource/two-devices-in-a-container": Outcome.SKIPPED,
}
"""Of a driver with one device that claims share: its capacity is counted, and it is one device."""


def test_shares_are_counted_as_shares_and_not_as_devices_of_one_request() -> None:
    finished = run("shared", [each for each in shipped() if each.id in OF_SHARES])
    assert {item.scenario.id: item.outcome for item in finished} == OF_SHARES
    messages = " ".join(item.message for item in finished)
    assert "needs 2 different devices on one node, no node has more than 1 free" in messages


def shows(pattern: str, new: str) -> Mutation:
    """Containers get something else than what the driver's CDI specs say, as NAME=value."""

    def mutate(world: World) -> None:
        for driver in drivers(world):

            def edits(original: Callable[..., ContainerEdits], ids: list[str]) -> ContainerEdits:
                found = original(ids)
                lines = (re.sub(pattern, new, f"{key}={env}") for key, env in found.env.items())
                return changed(found, env=dict(line.split("=", 1) for line in lines))

            replace(driver.edits, edits)

    return mutate


def same_share(allocation: Obj) -> None:
    for result in results(allocation):
        result["shareID"] = "11111111-1111-1111-1111-111111111111"


@pytest.mark.parametrize(
    ("shape", "defect", "scenario", "says"),
    [
        pytest.param(
            "network",
            shows("net0", "net9"),
            "core/isolation-pod-without-claim",
            "ifName=net9",
            id="another interface",
        ),
        pytest.param(
            "network",
            shows(":00:01", ":00:02"),
            "core/isolation-pod-without-claim",
            "mac=02:00:00:00:00:02 by its mac",
            id="the MAC of another interface",
        ),
        pytest.param(
            "cpu",
            prepares(first_devices),
            "core/template-gives-each-pod-a-device",
            "cpudev000",
            id="CPUs of another claim",
        ),
        pytest.param(
            "cpu",
            shows("( shows .*)=.*", r"\1=0-7"),
            "core/two-requests-two-devices",
            "cpudev007 by its kernel",
            id="CPUs that nobody keeps it to",
        ),
        pytest.param(
            "shared",
            allocates(same_share),
            "core/template-gives-each-pod-a-device",
            "(a share)",
            id="the same share twice",
        ),
        pytest.param(
            "shared",
            shows("first", "second"),
            "core/isolation-pod-without-claim",
            "'second' (not in the table)",
            id="a device that is not in the table",
        ),
        pytest.param(
            "single",
            DEFECTS["leaks-to-other-pods"],
            "core/isolation-pod-without-claim",
            "without-claim/ctr0 sees",
            id="the device of another pod",
        ),
    ],
)
def test_a_defect_is_noticed(shape: str, defect: Mutation, scenario: str, says: str) -> None:
    [finished] = run(shape, [each for each in CORE if each.id == scenario], defect)
    assert finished.outcome is Outcome.FAILED, finished.message
    assert says in finished.message
