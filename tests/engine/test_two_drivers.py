"""A second driver is there while a scenario needs it, and nothing of it afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.engine.requirements import reason_to_skip
from conformance.engine.schedule.model import Running, Waiting, may_begin
from conformance.engine.schedule.needs import Needs
from conformance.engine.schedule.pools import NodePool
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.loader import LoadedScenario, load_scenarios
from conformance.scenario.steps import Step
from conformance.seam.values import Capabilities, FreeDevices
from conformance.targets.opening.offer import with_devices
from conformance.targets.opening.options import DEFAULT_VERSION, TargetOptions
from conformance.targets.opening.target import Opened, open_reference
from conformance.targets.reference import ReferenceTarget
from kube.base.errors import UsageError
from kube.values import Obj
from tests.engine.miniature import write
from tests.kubesim import kit
from tests.scenario.shipped import ROOT, shipped

OWN = load_profile("nvml-dra-driver", ROOT / "drivers")
OTHER = load_profile("other-nvml-dra-driver", ROOT / "drivers")
NODE = "reference-node-0"
GIVEN = """\
- apply:
  - {claim: other, requests: [{name: gpu, exactly: {deviceClassName: "${other.class.gpu}"}}]}
  - {pod: pod0, resourceClaims: [{name: gpu, resourceClaimName: other}]}
- expect:
  - {pod: pod0, phase: Running}
  - {devices: {seenBy: [pod0/ctr0], count: 0}}
  - {devices: {seenBy: [pod0/ctr0], driver: "${other.driver}", count: 1}}
"""
ABILITIES = ["fault:other-driver", "fault:node"]


def load(folder: Path, steps: str = GIVEN, **spec: Any) -> list[LoadedScenario]:
    requires = {"devicesOnOneNode": 1, "otherDevices": 1, "abilities": ABILITIES}
    given = {"feature": "SeveralDrivers", "requires": requires, **spec}
    return load_scenarios([write(folder, steps, **given)])


def run(opened: Opened, scenarios: list[LoadedScenario]) -> ScenarioFinished:
    return run_suite(scenarios, Setup("both", opened), ()).finished[-1]


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ("", Outcome.PASSED),
        ("- fault: {component: other-driver, action: stop}\n", Outcome.PASSED),
        ("- fault: {component: other-driver, action: kill}\n", Outcome.PASSED),
        ("- fault: {component: node, nodeOf: pod0}\n", Outcome.PASSED),
        ("- expect: [{pod: pod0, phase: Failed}]\n", Outcome.FAILED),
    ],
    ids=["untouched", "stopped", "killed", "rebooted", "failed"],
)
def test_nothing_of_it_is_left(steps: str, outcome: Outcome, tmp_path: Path) -> None:
    chosen = load(tmp_path, GIVEN + steps)
    with open_reference(TargetOptions()) as opened:
        assert isinstance(opened.target, ReferenceTarget)
        for _ in range(2):  # and it can be had again
            finished = run(opened, chosen)
            assert (finished.outcome, finished.left) == (outcome, ()), finished.message
            world = opened.target.world
            drivers = {item["spec"]["driver"] for item in world.cluster.store.all("ResourceSlice")}
            assert drivers == {OWN.driver}
            assert [one.other for one in world.kubelets] == [None]
            assert world.components.down == {f"{NODE}/other-driver"}
            assert opened.target.scope("x").observe.cdi_specs() == []


def test_a_node_that_boots_starts_no_driver_that_was_not_there(tmp_path: Path) -> None:
    with open_reference(TargetOptions()) as opened:
        assert isinstance(opened.target, ReferenceTarget)
        opened.target.scope("x").faults.disturb("node", "restart")
        assert [one.other for one in opened.target.world.kubelets] == [None]


def test_while_it_is_there_nobody_uses_devices_of_a_driver(tmp_path: Path) -> None:
    [given] = load(tmp_path)
    synthetic = next(one for one in shipped() if one.scenario.spec.tier == "allocation")
    plain = next(one for one in shipped() if one.id.endswith("/init-container-sees-device"))
    able = Capabilities("1.37.1", frozenset(), frozenset(), free=FreeDevices(4, {NODE: 4}))
    pool, own = NodePool(able), Needs.of(given.scenario.spec)
    running = Running(Waiting("given", own), pool, disruptive=True)
    assert may_begin(own, pool, [])
    assert may_begin(Needs.of(synthetic.scenario.spec), pool, [running])
    assert not may_begin(Needs.of(plain.scenario.spec), pool, [running])
    ended = replace(running, disruptive=False)
    assert may_begin(Needs.of(plain.scenario.spec), pool, [ended])


def test_where_there_is_no_second_driver_it_is_skipped_and_says_so(tmp_path: Path) -> None:
    [given] = load(tmp_path)
    spec = given.scenario.spec
    with open_reference(TargetOptions()) as opened:
        able, profile = opened.capabilities, opened.profile
        assert reason_to_skip(spec, able, profile, OTHER) is None
        assert "--other-driver" in (reason_to_skip(spec, able, profile, None) or "")
        elsewhere = replace(able, free=replace(able.free, other_by_node={"elsewhere": 4}))
        assert reason_to_skip(spec, elsewhere, profile, OTHER) == (
            "needs a node with 1 free device of gpu.other.test beside 1 of gpu.nvidia.com;"
            " there is none"
        )
        local = spec.model_copy(
            update={"requires": spec.requires.model_copy(update={"traits": ("rollingUpdate",)})}
        )
        assert "other-nvml-dra-driver does not declare" in (
            reason_to_skip(local, able, profile, OTHER) or ""
        )


def test_what_older_kubelets_lack_is_a_reason_to_skip(tmp_path: Path) -> None:
    spec = load(tmp_path, GIVEN)[0].scenario.spec
    with open_reference(TargetOptions()) as opened:
        able, profile = opened.capabilities, opened.profile
    gate = "DRAExtendedResource"
    old = replace(able, kubelet_version="1.34.4", kubelet_gates={gate: False})
    for requires, reason in (
        ({}, None),
        ({"kubernetes": ">=1.36"}, "needs Kubernetes >=1.36, the oldest kubelet is 1.34.4"),
        ({"feature_gates": (gate,)}, f"feature gate {gate} is off in the oldest kubelet, 1.34.4"),
    ):
        changed = spec.requires.model_copy(update=requires)
        wanted = spec.model_copy(update={"requires": changed})
        assert reason_to_skip(wanted, old, profile, OTHER) == reason
        of_scheduler = wanted.model_copy(update={"tier": "allocation"})
        assert reason_to_skip(of_scheduler, old, profile, OTHER) is None


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        (
            "DRAExtendedResource",
            f"feature gate DRAExtendedResource is locked in Kubernetes {DEFAULT_VERSION}",
        ),
        ("DRADeviceTaints", None),
    ],
)
def test_a_locked_gate_that_would_be_turned_off_is_a_reason_to_skip(
    gate: str, reason: str | None, tmp_path: Path
) -> None:
    fault = {"component": "kubelet", "featureGates": {gate: False}}
    able = load(tmp_path, GIVEN)[0].scenario.spec
    spec = able.model_copy(update={"steps": (Step.model_validate({"fault": fault}),)})
    with open_reference(TargetOptions()) as opened:
        assert reason_to_skip(spec, opened.capabilities, opened.profile, OTHER) == reason


def test_the_worker_has_devices_of_both(tmp_path: Path) -> None:
    chosen = load(tmp_path, GIVEN + '- expect: [{pod: pod0, node: "${worker.name}"}]\n')
    with open_reference(TargetOptions(nodes=3)) as opened:
        free = replace(opened.capabilities.free, other_by_node={"reference-node-1": 1})
        able = replace(opened.capabilities, free=free)
        setup = Setup("both", replace(opened, capabilities=able))
        variables = setup.make_variables(chosen[0])
        assert variables.look_up("worker.name") == "reference-node-1"
        assert setup.make_variables(shipped()[0]).look_up("namespace")


def test_devices_of_a_driver_that_is_installed_are_counted() -> None:
    with ReferenceTarget() as target:
        scope = target.scope("default")
        devices: list[Obj] = [
            {"name": "gpu-0"},
            {"name": "gpu-1"},
            {"name": "gpu-2", "taints": [{"key": "broken", "effect": "NoSchedule"}]},
        ]
        scope.create(kit.resource_slice("other", NODE, OTHER.driver, *devices))
        found = with_devices(target, OWN, OTHER)
        assert found.free.other_by_node == {NODE: 2}
        assert with_devices(target, OWN).free.other_by_node == {}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (TargetOptions(), "other-nvml-dra-driver"),
        (TargetOptions(target="cluster", cluster="local"), "other-nvml-dra-driver"),
        (TargetOptions(target="cluster", cluster="local", nodes=0), ""),
        (TargetOptions(target="cluster", cluster="kubeconfig"), ""),
        (TargetOptions(driver="gpu.example.com"), ""),
        (TargetOptions(driver="other-nvml-dra-driver"), ""),
        (TargetOptions(other_driver="gpu.example.com"), "gpu.example.com"),
    ],
)
def test_which_driver_is_the_other(options: TargetOptions, name: str) -> None:
    profile = options.other_profile()
    assert (profile.metadata.name if profile else "") == name == options.other_name


def test_the_other_driver_is_another_one() -> None:
    with pytest.raises(UsageError, match=r"profile of the same driver, gpu\.nvidia\.com"):
        TargetOptions(other_driver="nvml-dra-driver").other_profile()


@pytest.mark.parametrize(
    ("driver", "other"),
    [
        ("gpu.example.com", "other-nvml-dra-driver"),
        ("other-nvml-dra-driver", "gpu.example.com"),
        ("other-nvml-dra-driver", "nvml-dra-driver"),
    ],
)
def test_any_two_drivers_can_be_the_two(driver: str, other: str, tmp_path: Path) -> None:
    with open_reference(TargetOptions(driver=driver, other_driver=other)) as opened:
        assert opened.other is not None
        assert opened.capabilities.other_driver == opened.other.driver
        finished = run(opened, load(tmp_path))
        assert finished.outcome is Outcome.PASSED, finished.message


@pytest.mark.parametrize(
    ("steps", "spec", "says"),
    [
        (GIVEN, {"requires": {"devicesOnOneNode": 1}}, r"needs requires: \{otherDevices: 1\}"),
        (GIVEN, {"tier": "allocation"}, "otherDevices are a driver's"),
        (GIVEN.replace("other.driver", "other.config.refused"), {}, "unknown variable"),
    ],
)
def test_mistakes_are_told(steps: str, spec: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        load(tmp_path, steps, **spec)
