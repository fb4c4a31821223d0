"""Devices as drivers publish them, and what happens to their nodes: for tests of what is free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.scenario.driver.profile import DriverProfile, load_profile
from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Ref
from tests.kubesim import kit
from tests.scenario.shipped import ROOT

PROFILE: DriverProfile = load_profile("gpu.example.com", ROOT / "drivers")
DRIVER = PROFILE.driver
TAINT = {"key": "k", "effect": "NoSchedule"}


def published(pool: str, *devices: Obj, generation: int = 1, **where: Any) -> Obj:
    spec = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
        "devices": list(devices),
        **where,
    }
    name = f"{pool}-{generation}-{len(devices)}"
    return {
        "apiVersion": kit.DRA,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": spec,
    }


def gpus(node: str, *names: str, **more: Any) -> Obj:
    return published(node, *({"name": name, **more} for name in names), nodeName=node)


def used_by_somebody(scope: ReferenceScope, **request: Any) -> None:
    """A pod of somebody else has a device."""
    scope.create(kit.device_class("theirs", selectors=[]))
    scope.create(kit.claim("c", kit.request("r", "theirs", **request)))
    scope.create(kit.pod("p", claims={"g": "c"}))
    kit.runs(scope, "p")


def change_node(**spec: Any) -> Callable[[ReferenceScope], object]:
    return lambda scope: scope.patch(Ref("v1", "Node", "n0"), {"spec": spec})


def not_ready(scope: ReferenceScope) -> None:
    conditions = [{"type": "Ready", "status": "Unknown"}]
    scope.patch(Ref("v1", "Node", "n0"), {"status": {"conditions": conditions}}, "status")


def partitions() -> Obj:
    counters = {"counterSet": "all", "counters": {"memory": {"value": "4Gi"}}}
    half = {"counterSet": "all", "counters": {"memory": {"value": "2Gi"}}}
    return published(
        "n0",
        {"name": "half-0", "consumesCounters": [half]},
        {"name": "whole", "consumesCounters": [counters]},
        {"name": "half-1", "consumesCounters": [half]},
        nodeName="n0",
    )


def counter_set() -> Obj:
    sets = [{"name": "all", "counters": {"memory": {"value": "4Gi"}}}]
    return published("n0", nodeName="n0", sharedCounters=sets)


def of_two(*slices: Obj) -> list[Obj]:
    for item in slices:
        item["spec"]["pool"]["resourceSliceCount"] = 2
        if not item["spec"]["devices"]:
            del item["spec"]["devices"]
    return list(slices)


PARTITIONS = of_two(counter_set(), partitions())
TWO_NODES = [gpus("n0", "a", "b"), gpus("n1", "a")]
