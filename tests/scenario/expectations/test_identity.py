"""A device is told from others by node or pool, not by its name: on clusters that all are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.driver.profile import DriverProfile, load_profile
from conformance.scenario.shape import ShapeNode
from conformance.targets.opening.target import Opened
from conformance.targets.reference.device_source import DescribedDevices
from kube.values import Obj
from tests.mutants import mutant
from tests.scenario.shipped import ROOT, shipped

PROFILE: DriverProfile = load_profile("gpu.example.com", ROOT / "drivers")
SEPARATE = "core/template-gives-each-pod-a-device"
TWO_REQUESTS = "core/two-requests-two-devices"
ONE_EACH = "core/container-sees-only-its-request"
RESERVED = "core/generated-claim-belongs-to-pod"
SHARED = "core/shared-claim-released-after-last-pod"
JOB = "core/job-separate-and-shared-claims"


def published(pool: str, devices: int, **where: Any) -> Obj:
    """A slice whose devices have the same names in every pool."""
    described = PROFILE.spec.simulated.devices[:devices]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": pool},
        "spec": {
            "driver": PROFILE.driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": list(described),
            **where,
        },
    }


TWO_NODES = [published("n0", 1, nodeName="n0"), published("n1", 1, nodeName="n1")]
TWO_POOLS = [published("left", 1, nodeName="n0"), published("right", 1, nodeName="n0")]
TWO_POOLS_OF_TWO = [published("left", 2, nodeName="n0"), published("right", 2, nodeName="n0")]
NETWORK = [published("rack", 2, allNodes=True)]


def run(name: str, slices: Sequence[Obj], *faults: str) -> ScenarioFinished:
    [loaded] = [item for item in shipped() if item.id == name]
    nodes = (ShapeNode(name="n0"), ShapeNode(name="n1"))
    with mutant(*faults, nodes=nodes, devices=DescribedDevices(PROFILE, slices)) as target:
        opened = Opened.of(target, PROFILE.for_reference(), "image")
        [finished] = run_suite([loaded], Setup("shape", opened), ()).finished
    return finished


@pytest.mark.parametrize(
    ("name", "slices"),
    [
        pytest.param(SEPARATE, TWO_NODES, id="each pod on a node of its own"),
        pytest.param(SEPARATE, TWO_POOLS, id="each pod from a pool of its own"),
        pytest.param(TWO_REQUESTS, TWO_POOLS, id="one claim from two pools"),
        pytest.param(ONE_EACH, TWO_POOLS, id="one container for each pool"),
        pytest.param(JOB, TWO_POOLS_OF_TWO, id="claims that are gone when one looks"),
        pytest.param(SEPARATE, NETWORK, id="network-attached"),
        pytest.param(SHARED, NETWORK, id="network-attached and shared"),
        pytest.param(RESERVED, NETWORK, id="network-attached and bound to no node"),
    ],
)
def test_a_correct_cluster_passes(name: str, slices: Sequence[Obj]) -> None:
    finished = run(name, slices)
    assert finished.outcome is Outcome.PASSED, finished.message


@pytest.mark.parametrize(
    ("name", "slices", "fault"),
    [
        pytest.param(SEPARATE, NETWORK, "double-allocation", id="allocated twice"),
        pytest.param(SEPARATE, TWO_POOLS_OF_TWO, "double-allocation", id="twice, of two pools"),
        pytest.param(SHARED, TWO_POOLS_OF_TWO, "wrong-device-in-container", id="another"),
    ],
)
def test_a_broken_one_fails(name: str, slices: Sequence[Obj], fault: str) -> None:
    finished = run(name, slices, fault)
    assert finished.outcome is Outcome.FAILED, finished.message
