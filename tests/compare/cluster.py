"""A small cluster as a snapshot, and decisions on it, for the comparison's tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.compare.evidence import Obj
from conformance.compare.witness import Answer, Witness
from reference_allocator.features import Features
from reference_allocator.snapshot import Snapshot

DRIVER = "gpu.example.com"


def node(name: str = "node-a", **spec: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {}},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def resource_slice(node_name: str = "node-a", sizes: Sequence[str] = ("40Gi", "40Gi")) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{index}",
                    "attributes": {"type": {"string": "gpu"}},
                    "capacity": {"memory": {"value": size}},
                }
                for index, size in enumerate(sizes)
            ],
        },
    }


def device_class(config: Sequence[Obj] = ()) -> Obj:
    expression = f"device.driver == '{DRIVER}'"
    spec: Obj = {"selectors": [{"cel": {"expression": expression}}]}
    if config:
        spec["config"] = list(config)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": spec,
    }


def claim(name: str = "claim-0", count: int = 1, memory: str | None = None) -> Obj:
    exactly: Obj = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    if memory is not None:
        expression = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{memory}')) >= 0"
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def prefer(name: str, *memories: str) -> Obj:
    """A claim for the first of several sizes that is to be had."""
    document = claim(name)
    alternatives = [
        {
            "name": f"size-{index}",
            **claim(memory=memory)["spec"]["devices"]["requests"][0]["exactly"],
        }
        for index, memory in enumerate(memories)
    ]
    document["spec"]["devices"]["requests"] = [{"name": "gpu", "firstAvailable": alternatives}]
    return document


def allocation(*devices: str, node_name: str = "node-a", request: str = "gpu") -> Obj:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    return {
        "devices": {
            "results": [
                {"request": request, "driver": DRIVER, "pool": node_name, "device": device}
                for device in devices
            ]
        },
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }


def allocated(name: str, *devices: str) -> Obj:
    return {**claim(name, len(devices)), "status": {"allocation": allocation(*devices)}}


def snapshot(**changes: Any) -> Obj:
    values: dict[str, Any] = {
        "kubernetes": "1.37.1",
        "features": Features.for_version("1.37.1"),
        "slices": (resource_slice(),),
        "device_classes": (device_class(),),
        "nodes": (node(),),
    }
    return Snapshot(**{**values, **changes}).to_dict()


def pod(name: str = "pod0", **spec: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"containers": [], **spec},
    }


def decision(claims: Sequence[Obj], allocations: Sequence[Obj], state: Obj | None = None) -> Obj:
    return {
        "pod": "pod0",
        "namespace": "ns",
        "node": "node-a",
        "claims": list(claims),
        "allocations": list(allocations),
        "snapshot": state or snapshot(),
    }


class Scripted(Witness):
    """A witness that says what it was told to say."""

    def __init__(self, answer: Answer | None = None, violations: Sequence[str] = ()) -> None:
        self.answer = answer or Answer(None, "nothing fits")
        self.violations = tuple(violations)

    def allocate(self, snapshot: Obj, claims: Sequence[Obj], node: str) -> Answer:
        return self.answer

    def check(
        self, snapshot: Obj, claims: Sequence[Obj], allocations: Sequence[Obj], node: str
    ) -> tuple[str, ...]:
        return self.violations
