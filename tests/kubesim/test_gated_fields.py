"""Fields whose feature gate is off are dropped without a word, as an API server does."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import ApiError
from kube.values import Obj, Query, Ref
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope


def test_a_locked_gate_may_be_set_to_what_it_is(open_target: Open) -> None:
    target = open_target(feature_gates={"DynamicResourceAllocation": True})
    assert target.capabilities().feature_gates["DynamicResourceAllocation"]


def test_without_dra_nothing_of_its_group_is_served(open_target: Open) -> None:
    target = open_target(
        kubernetes_version="1.36.0", feature_gates={"DynamicResourceAllocation": False}
    )
    assert not any("resource.k8s.io" in api for api in target.capabilities().served_apis)
    scope = new_scope(target)
    with pytest.raises(ApiError) as refused:
        scope.create(kit.claim("c"))
    assert refused.value.code == 404
    with pytest.raises(ApiError):
        scope.find(Query(kit.DRA, "ResourceSlice"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    assert "resourceClaims" not in kit.get(scope, kit.pod_ref("p"))["spec"]


def test_a_kind_whose_gate_is_off_is_not_served_at_all(open_target: Open) -> None:
    scope = new_scope(open_target(feature_gates={"DRADeviceTaintRules": False}))
    with pytest.raises(ApiError, match="could not find the requested resource"):
        scope.get(Ref(kit.DRA, "DeviceTaintRule", "r"))


CLAIM = kit.claim(
    "c",
    kit.request(
        capacity={"requests": {"memory": "1Gi"}}, tolerations=[{"key": "a", "operator": "Exists"}]
    ),
)
SHAREABLE = {
    "name": "d",
    "allowMultipleAllocations": True,
    "capacity": {"memory": {"value": "2Gi", "requestPolicy": {"default": "1Gi"}}},
}
BINDING = {
    "name": "d",
    "bindsToNode": True,
    "bindingConditions": ["example.com/ready"],
    "bindingFailureConditions": ["example.com/failed"],
}
COUNTING = {
    "name": "d",
    "consumesCounters": [{"counterSet": "s", "counters": {"a": {"value": "1"}}}],
}


def published(device: Obj) -> Obj:
    return kit.resource_slice("s", "n", "d.example.com", device)


@pytest.mark.parametrize(
    ("gate", "obj", "path", "left"),
    [
        ("DRADeviceTaints", CLAIM, "devices/requests/0/exactly", {"tolerations"}),
        ("DRAConsumableCapacity", CLAIM, "devices/requests/0/exactly", {"capacity"}),
        ("DRAConsumableCapacity", published(SHAREABLE), "devices/0", {"allowMultipleAllocations"}),
        (
            "DRAConsumableCapacity",
            published(SHAREABLE),
            "devices/0/capacity/memory",
            {"requestPolicy"},
        ),
        (
            "DRADeviceBindingConditions",
            published(BINDING),
            "devices/0",
            {"bindsToNode", "bindingConditions", "bindingFailureConditions"},
        ),
        ("DRAPartitionableDevices", published(COUNTING), "devices/0", {"consumesCounters"}),
    ],
)
def test_field_is_kept_with_its_gate_only(
    open_target: Open, gate: str, obj: Obj, path: str, left: set[str]
) -> None:
    for on in (True, False):
        scope = new_scope(open_target(kubernetes_version="1.36.0", feature_gates={gate: on}))
        found: Any = scope.create(obj)["spec"]
        for step in path.split("/"):
            found = found[int(step)] if step.isdigit() else found[step]
        assert (left & set(found)) == (left if on else set())


def test_binding_conditions_need_the_gate_of_device_status_too(open_target: Open) -> None:
    # From 1.35 on no API server starts with one of these gates and not the other.
    gates = {"DRADeviceBindingConditions": True, "DRAResourceClaimDeviceStatus": False}
    scope = new_scope(open_target(kubernetes_version="1.34.0", feature_gates=gates))
    device = scope.create(published(BINDING))["spec"]["devices"][0]
    assert not {"bindsToNode", "bindingConditions", "bindingFailureConditions"} & set(device)
