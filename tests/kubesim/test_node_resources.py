"""Devices that stand for, or cost, CPU and memory of their node (DRANodeAllocatableResources)."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj, Ref
from tests.kubesim import kit
from tests.kubesim.conftest import GATES, Open, new_scope
from tests.kubesim.situations import claim, publish, run

NODE = Ref("v1", "Node", kit.NODE)
"""It has 64 CPUs."""


@pytest.fixture
def cores(open_target: Open) -> ReferenceScope:
    """A namespace on a reference with the gate, whose kubelet declares the feature."""
    return new_scope(open_target(feature_gates=GATES))


def device(name: str, **resources: Any) -> Obj:
    return {"name": name, "nodeAllocatableResources": resources}


def cpus(name: str, count: int) -> Obj:
    return device(name, cpu={"mapping": {"deviceMultiplier": str(count)}})


def statuses(scope: ReferenceScope, name: str) -> Any:
    return kit.get(scope, kit.pod_ref(name))["status"].get("nodeAllocatableResourceClaimStatuses")


def test_what_devices_take_is_in_the_status_of_the_pod(cores: ReferenceScope) -> None:
    publish(
        cores,
        device(
            "d0",
            cpu={"mapping": {"deviceMultiplier": "8"}},
            memory={"overhead": {"perPod": "1Gi", "perContainer": "64Mi"}},
        ),
    )
    run(cores, claim("c"))
    assert statuses(cores, "c") == [
        {
            "resourceClaimName": "c",
            "containers": ["ctr0"],
            "mapping": [{"name": "cpu", "quantity": "8"}],
            "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "64Mi"}],
        }
    ]


def test_mapping_by_a_capacity_that_was_not_consumed_is_an_error(cores: ReferenceScope) -> None:
    mapped = {"mapping": {"capacityKey": "cores", "capacityMultiplier": "1"}}
    publish(cores, {**device("d0", cpu=mapped), "capacity": {"cores": {"value": "8"}}})
    run(cores, claim("c"))
    assert "ConsumedCapacity is nil" in kit.why_pending(cores, "c")


def test_node_must_know_of_such_devices(open_target: Open) -> None:
    scope = new_scope(open_target(feature_gates=GATES))
    scope.patch(NODE, {"status": {"declaredFeatures": []}}, "status")  # as an older kubelet
    with pytest.raises(ApiError) as caught:
        publish(scope, cpus("d0", 8))
    assert caught.value.code == 403
    assert caught.value.message == (
        'resourceslices.resource.k8s.io "published" is forbidden: node "reference-node-0" does '
        "not support DRANodeAllocatableResources feature"
    )
