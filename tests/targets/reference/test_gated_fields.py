"""Fields whose feature gate is off are dropped without a word, as an API server does."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.seam.values import Obj
from tests.targets.reference import kit
from tests.targets.reference.conftest import Open, new_scope

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
BINDING = {"name": "d", "bindsToNode": True, "bindingConditions": ["example.com/ready"]}
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
            {"bindsToNode", "bindingConditions"},
        ),
        (
            "DRAResourceClaimDeviceStatus",
            published(BINDING),
            "devices/0",
            {"bindsToNode", "bindingConditions"},
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
