"""What is not said of a driver in its profile is not asked of it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.engine.plan import recorded_options
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome
from conformance.scenario.driver.probing import Probe
from conformance.scenario.driver.profile import DriverOption, DriverProfile, load_profile
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened, open_reference
from conformance.targets.reference.nvml import NvmlDriver
from conformance.targets.reference.target import ReferenceTarget
from kube.base.errors import UsageError
from kube.values import Obj
from kubesim.nodes.driver import DriverError
from tests.scenario.shipped import ROOT, shipped

OWN: DriverProfile = load_profile("nvml-dra-driver", ROOT / "drivers")
CDI = "extended/device-cleanup/cleanup-cdi-spec-removed"
LOCAL = "extended/resource-slice/driver-publishes-its-devices"
PREPARED = "extended/opaque-configuration/claim-config-is-prepared"
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
        (CDI, {"traits": ("nodeLocal",)}, "does not declare the driver trait cdiPerClaim"),
        (LOCAL, {"traits": ()}, "does not declare the driver trait nodeLocal"),
        (CLAIM, {"config": {}}, "has no config timeSlicing"),
        (
            CLAIM,
            {"probe": Probe(env=OWN.spec.probe.env)},
            "does not define how containers show config timeSlicing",
        ),
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


def of_nvidias_driver(*options: str) -> tuple[Outcome, str]:
    given = TargetOptions(driver="gpu.nvidia.com", driver_options=options)
    with open_reference(given) as opened:
        [finished] = run_suite(named(PREPARED), Setup("nvidia", opened), ()).finished
    return finished.outcome, finished.message


def test_what_needs_an_option_of_the_driver_is_asked_where_the_option_is_on() -> None:
    outcome, message = of_nvidias_driver()
    assert outcome is Outcome.SKIPPED
    assert "has no config timeSlicing; it has with --driver-option TimeSlicingSettings" in message
    assert "featureGates.TimeSlicingSettings=true" in message
    assert of_nvidias_driver("TimeSlicingSettings") == (Outcome.PASSED, "")


def test_a_driver_that_has_not_the_option_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's refuses the configuration then, as ours refuses any here."""

    def refuse(_driver: NvmlDriver, claim: Obj) -> Any:
        if claim["status"]["allocation"]["devices"].get("config"):
            raise DriverError("feature gate TimeSlicingSettings is not enabled")
        raise AssertionError("the claim has a configuration")

    monkeypatch.setattr(NvmlDriver, "prepare", refuse)
    outcome, message = of_nvidias_driver("TimeSlicingSettings")
    assert outcome is Outcome.FAILED
    assert "feature gate TimeSlicingSettings is not enabled" in message


def test_a_trait_may_come_with_an_option() -> None:
    option = DriverOption(description="a gate of the driver", traits=("cdiPerClaim",))
    changed = {"traits": ("nodeLocal",), "options": {"Cdi": option}}
    profile = OWN.model_copy(update={"spec": OWN.spec.model_copy(update=changed)})
    _, message = ran(profile, CDI)
    assert (
        "the driver trait cdiPerClaim; it has with --driver-option Cdi: a gate of the driver"
        in message
    )
    assert ran(profile.with_options(["Cdi"]), CDI) == (Outcome.PASSED, "")


def test_an_option_that_the_profile_does_not_name_is_refused() -> None:
    options = TargetOptions(driver="gpu.nvidia.com", driver_options=("TimeSlicing",))
    with pytest.raises(UsageError, match=r"--driver-option TimeSlicing.*TimeSlicingSettings"):
        options.profile()


def test_the_result_file_says_which_options_were_on() -> None:
    given = TargetOptions(driver="gpu.nvidia.com", driver_options=("TimeSlicingSettings",))
    assert recorded_options(given)["driverOptions"] == ("TimeSlicingSettings",)


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
