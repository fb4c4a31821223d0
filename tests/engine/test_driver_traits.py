"""What is not said of a driver in its profile is not asked of it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.engine.events import Outcome
from conformance.engine.scenario_run import Setup
from conformance.engine.suite import run_suite
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.profile import DriverProfile, Probe, load_profile
from conformance.targets.opening import Opened, open_reference
from conformance.targets.options import TargetOptions
from conformance.targets.reference.target import ReferenceTarget
from tests.scenario.shipped import ROOT, shipped

OWN: DriverProfile = load_profile("nvml-dra-driver", ROOT / "drivers")
CDI = "extended/device-cleanup/cleanup-cdi-spec-removed"
LOCAL = "extended/resource-slice/claim-bound-to-node-of-local-device"
CLAIM = "extended/opaque-configuration/claim-config-reaches-container"
CLASS = "extended/opaque-configuration/class-config-reaches-container"


def named(*names: str) -> list[LoadedScenario]:
    return [loaded for loaded in shipped() if loaded.id in names]


def ran(profile: DriverProfile, name: str) -> tuple[Outcome, str]:
    with ReferenceTarget() as target:
        setup = Setup("traits", Opened.of(target, profile, "image"))
        [finished] = run_suite(named(name), setup, ()).finished
    return finished.outcome, finished.message


@pytest.mark.parametrize(
    ("name", "changed", "why"),
    [
        (CDI, {"traits": ("nodeLocal",)}, "does not say that the driver has the trait cdiPerClaim"),
        (LOCAL, {"traits": ()}, "does not say that the driver has the trait nodeLocal"),
        (CLAIM, {"config": {}}, "has no config timeSlicing"),
        (CLAIM, {"probe": Probe(env=OWN.spec.probe.env)}, "does not say how config timeSlicing"),
    ],
)
def test_it_is_skipped_with_the_reason(name: str, changed: dict[str, Any], why: str) -> None:
    assert ran(OWN, name) == (Outcome.PASSED, "")
    profile = OWN.model_copy(update={"spec": OWN.spec.model_copy(update=changed)})
    outcome, message = ran(profile, name)
    assert (outcome, why in message) == (Outcome.SKIPPED, True), message


def test_nvidias_driver_is_not_asked_for_what_needs_a_gate_of_its_own() -> None:
    with open_reference(TargetOptions(driver="gpu.nvidia.com")) as opened:
        finished = run_suite(named(CLAIM, CLASS), Setup("nvidia", opened), ()).finished
    assert [item.outcome for item in finished] == [Outcome.SKIPPED, Outcome.SKIPPED]


@pytest.mark.parametrize(
    ("options", "profile"),
    [
        (TargetOptions(), "nvml-dra-driver"),
        (TargetOptions(target="cluster", cluster="local"), "nvml-dra-driver"),
        (TargetOptions(target="cluster", cluster="local", driver_command=("x",)), "gpu.nvidia.com"),
        (TargetOptions(target="cluster", cluster="kubeconfig"), "gpu.nvidia.com"),
        (TargetOptions(target="cluster", cluster="kind"), "gpu.nvidia.com"),
        (TargetOptions(driver="gpu.example.com"), "gpu.example.com"),
    ],
)
def test_the_profile_is_that_of_the_driver_that_runs(options: TargetOptions, profile: str) -> None:
    assert options.profile().metadata.name == profile
