"""``stimulate``: who cannot be told is not asked; what was made unhealthy gets healthy again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.engine.plan import plan
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.driver.profile import DriverProfile, load_profile
from conformance.scenario.driver.simulated import Stimulus
from conformance.scenario.loader import LoadedScenario, load_scenarios
from conformance.targets.opening.target import Opened
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from tests.engine.miniature import write
from tests.mutants.replacing import replace as replace_method
from tests.scenario.shipped import ROOT, shipped

OWN: DriverProfile = load_profile("nvml-dra-driver", ROOT / "drivers")
SHOWN = "extended/device-health/pod-status-shows-health"
OFFERED = "extended/device-health/unhealthy-device-gets-no-new-pod"
NEVER = "{pod: pod0, phase: Succeeded, eventually: 3s}"
"""What a pod that holds its device does not do."""


STEPS = """\
- apply:
  - claim: one
  - {pod: pod0, resourceClaims: [{name: gpu, resourceClaimName: one}]}
- expect: [{pod: pod0, phase: Running}]
"""
SPEC = {
    "feature": "DeviceHealth",
    "requires": {"devices": 1, "abilities": ["device-health", "fault:driver"]},
    "timeouts": {"cleanup": "20s"},
}


@pytest.fixture
def given(tmp_path: Path) -> Callable[..., list[LoadedScenario]]:
    def load(*steps: str) -> list[LoadedScenario]:
        text = STEPS + "".join(f"- {step}\n" for step in steps)
        return load_scenarios([write(tmp_path, text, **SPEC)])

    return load


def ran(
    target: ReferenceTarget, chosen: Sequence[LoadedScenario], profile: DriverProfile = OWN
) -> ScenarioFinished:
    [finished] = run_suite(chosen, Setup("told", Opened.of(target, profile, "image")), ()).finished
    return finished


def named(name: str) -> list[LoadedScenario]:
    return [loaded for loaded in shipped() if loaded.id == name]


def unhealthy(target: ReferenceTarget) -> set[str]:
    """Devices that are not healthy, or are published with a taint."""
    [kubelet] = target.world.kubelets
    assert kubelet.driver is not None
    found = {name for name in kubelet.driver.devices if kubelet.driver.health(name)[0] != "Healthy"}
    for item in target.world.cluster.store.all("ResourceSlice"):
        found |= {each["name"] for each in item["spec"]["devices"] if each.get("taints")}
    return found


UNHEALTHY = "stimulate: {claim: one, health: Unhealthy}"


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        pytest.param([UNHEALTHY], Outcome.PASSED, id="nothing else"),
        pytest.param([UNHEALTHY, f"expect: [{NEVER}]"], Outcome.FAILED, id="a failure"),
        pytest.param(
            [UNHEALTHY, "delete: [{kind: Pod, name: pod0}]", "expect: [{none: {kind: Pod}}]"],
            Outcome.PASSED,
            id="its pod goes",
        ),
        pytest.param(
            [UNHEALTHY, "fault: {component: driver, action: stop}"],
            Outcome.PASSED,
            id="its driver is stopped",
        ),
    ],
)
def test_what_was_made_unhealthy_is_healthy_at_the_end(
    steps: list[str], outcome: Outcome, given: Callable[..., list[LoadedScenario]]
) -> None:
    seen: list[set[str]] = []
    with ReferenceTarget() as target:
        [kubelet] = target.world.kubelets
        assert kubelet.driver is not None

        def set_health(original: Callable[..., None], device: str, health: str) -> None:
            original(device, health)
            seen.append({device} if health == "Unhealthy" else set())

        replace_method(kubelet.driver.set_health, set_health)
        finished = ran(target, given(*steps))
        assert finished.outcome is outcome, finished.message
        assert len(seen) == 2
        assert seen[0]
        assert unhealthy(target) == set()


def test_a_device_that_does_not_get_healthy_is_an_error(
    given: Callable[..., list[LoadedScenario]],
) -> None:
    with ReferenceTarget() as target:
        [kubelet] = target.world.kubelets
        assert kubelet.driver is not None

        def set_health(original: Callable[..., None], device: str, health: str) -> None:
            if health != "Healthy":
                original(device, health)

        replace_method(kubelet.driver.set_health, set_health)
        finished = ran(target, given(UNHEALTHY))
    assert finished.outcome is Outcome.ERROR
    assert "not offered as before 20 s after it was made healthy" in finished.message


def test_a_claim_without_a_device_is_a_failure(given: Callable[..., list[LoadedScenario]]) -> None:
    chosen = given("apply: [{claim: two}]", "stimulate: {claim: two, health: Unhealthy}")
    with ReferenceTarget() as target:
        finished = ran(target, chosen)
    assert finished.outcome is Outcome.FAILED
    assert "to make the devices of claim two Unhealthy; found none" in finished.message


def with_stimulus(**changed: Any) -> DriverProfile:
    return OWN.model_copy(update={"spec": OWN.spec.model_copy(update=changed)})


TO_HEALTHY = Stimulus(file="control", health={"Healthy": ("get well {device}",)})


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        (with_stimulus(stimulus=None), "has no stimulus that makes a device Unhealthy"),
        (with_stimulus(stimulus=TO_HEALTHY), "has no stimulus that makes a device Unhealthy"),
        (
            with_stimulus(traits=("nodeLocal",)),
            "does not declare the driver trait taintsUnhealthyDevices",
        ),
    ],
    ids=["not at all", "not of that", "no taints"],
)
def test_a_driver_that_cannot_be_told_is_not_asked(profile: DriverProfile, why: str) -> None:
    with ReferenceTarget() as target:
        assert ran(target, named(OFFERED)).outcome is Outcome.PASSED
        finished = ran(target, named(OFFERED), profile)
    assert (finished.outcome, why in finished.message) == (Outcome.SKIPPED, True), finished.message


def test_a_target_whose_driver_nobody_can_tell_is_not_asked() -> None:
    with ReferenceTarget() as target:
        opened = Opened.of(target, OWN, "image")
        lacking = replace(
            opened.capabilities,
            abilities=opened.capabilities.abilities - {"device-health"},
            lacking={"device-health": "devices get unhealthy on local clusters only"},
        )
        setup = Setup("told", replace(opened, capabilities=lacking))
        [finished] = run_suite(named(SHOWN), setup, ()).finished
    assert finished.outcome is Outcome.SKIPPED
    assert finished.message.endswith("device-health: devices get unhealthy on local clusters only")


def test_where_the_gate_is_off_it_is_skipped() -> None:
    gates = {"ResourceHealthStatus": False, "ResourceHealthStatusMessage": False}
    with ReferenceTarget(ReferenceOptions(feature_gates=gates)) as target:
        finished = ran(target, named(SHOWN))
    assert (finished.outcome, finished.message) == (
        Outcome.SKIPPED,
        "feature gate ResourceHealthStatus is off",
    )


def test_a_plan_tells_of_it() -> None:
    with ReferenceTarget() as target:
        [planned] = plan(named(SHOWN), Setup("told", Opened.of(target, OWN, "image")))
    assert planned.disturbed == (
        "make the devices of claim one Unhealthy",
        "make the devices of claim one Healthy",
    )
