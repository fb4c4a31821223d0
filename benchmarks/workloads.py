"""What `benchmarks.scale` puts on a cluster: kinds of devices, and pods that want them.

The kinds are those of upstream's performance tests (test/integration/scheduler_perf/dra and
kubernetes/perf-tests clusterloader2 testing/dra): plain devices, a CEL selector, matchAttribute,
partitions of one device, shares of a capacity, an extended resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube.nodes import RUN_LABEL

Json = dict[str, Any]

DRA: Final = "resource.k8s.io/v1"
NAMESPACE: Final = "dra-bench"
LABELS: Final = {RUN_LABEL: "bench"}
DRIVER: Final = "bench.example.com"
CLASS: Final = "bench"
EXTENDED: Final = "bench.example.com/device"
PODS_ON_A_NODE: Final = 8


@dataclass(frozen=True)
class Workload:
    """One kind of devices and of what pods want; a node has room for `PODS_ON_A_NODE` of them.

    Attributes:
        devices: node -> its slice's devices.
        request: of a pod's claim; None: an extended resource, without a claim.
        counters: of a node's pool, in a slice of their own.
        constraints: of the claim.
    """

    name: str
    devices: Callable[[], list[Json]]
    request: Mapping[str, Any] | None
    counters: tuple[Json, ...] = ()
    constraints: tuple[Json, ...] = ()

    def objects(self, nodes: int) -> Iterator[Json]:
        """The class, the claim template, and the slices of all nodes."""
        spec: Json = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
        if self.request is None:
            spec["extendedResourceName"] = EXTENDED
        yield _object("DeviceClass", CLASS, spec)
        if self.request is not None:
            devices = {
                "requests": [{"name": "r", "exactly": {"deviceClassName": CLASS, **self.request}}],
                "constraints": list(self.constraints),
            }
            yield _object("ResourceClaimTemplate", CLASS, {"spec": {"devices": devices}})
        for number in range(nodes):
            node = node_name(number)
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1 + bool(self.counters)}
            place = {"driver": DRIVER, "nodeName": node, "pool": pool}
            yield _object("ResourceSlice", node, {**place, "devices": self.devices()})
            if self.counters:
                counters = {**place, "sharedCounters": list(self.counters)}
                yield _object("ResourceSlice", f"{node}-counters", counters)

    def pod(self, number: int, scheduler: str) -> Json:
        """Pod ``number``, without a kubelet that would start it."""
        container: Json = {"name": "c", "image": "none"}
        spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
        if scheduler:
            spec["schedulerName"] = scheduler
        if self.request is None:
            container["resources"] = {"limits": {EXTENDED: "1"}}
        else:
            container["resources"] = {"claims": [{"name": "d"}]}
            spec["resourceClaims"] = [{"name": "d", "resourceClaimTemplateName": CLASS}]
        return _object("Pod", f"pod-{number:05}", spec)


def node(number: int) -> Json:
    """A hollow node that is Ready."""
    name = node_name(number)
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    made = _object("Node", name, {})
    made["metadata"]["labels"]["kubernetes.io/hostname"] = name
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "hollow"}
    return {**made, "status": {"capacity": room, "allocatable": room, "conditions": [ready]}}


def node_name(number: int) -> str:
    return f"bench-{number:04}"


def _object(kind: str, name: str, spec: Json) -> Json:
    metadata: Json = {"name": name, "labels": dict(LABELS)}
    if kind in ("Pod", "ResourceClaimTemplate"):
        metadata["namespace"] = NAMESPACE
    version = "v1" if kind in ("Pod", "Node") else DRA
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _plain(count: int = PODS_ON_A_NODE) -> list[Json]:
    """Every other device is of another model and memory, and four share a root."""
    return [
        {
            "name": f"d-{number}",
            "attributes": {
                "model": {"string": "large" if number % 2 else "small"},
                "root": {"string": f"root-{number // 4}"},
            },
            "capacity": {"memory": {"value": f"{40 + 40 * (number % 2)}Gi"}},
        }
        for number in range(count)
    ]


def _parts() -> list[Json]:
    """Two cards: each is one device, two halves or four quarters."""
    return [
        {
            "name": f"card-{card}-{share}-{number}",
            "attributes": {"share": {"int": share}},
            "consumesCounters": [
                {"counterSet": f"card-{card}", "counters": {"slices": {"value": str(4 // share)}}}
            ],
        }
        for card in range(2)
        for share in (1, 2, 4)
        for number in range(share)
    ]


def _shared() -> list[Json]:
    return [
        {
            "name": f"nic-{number}",
            "allowMultipleAllocations": True,
            "capacity": {"bandwidth": {"value": "40"}},
        }
        for number in range(2)
    ]


def _selecting(expression: str) -> list[Json]:
    return [{"cel": {"expression": expression}}]


_LARGE = (
    f'device.attributes["{DRIVER}"].model == "large" && '
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("64Gi")) >= 0'
)

WORKLOADS: Final = (
    Workload("one device", _plain, {}),
    Workload("CEL selector", lambda: _plain(2 * PODS_ON_A_NODE), {"selectors": _selecting(_LARGE)}),
    Workload(
        "two devices, matchAttribute",
        lambda: _plain(2 * PODS_ON_A_NODE),
        {"count": 2},
        constraints=({"matchAttribute": f"{DRIVER}/root"},),
    ),
    Workload(
        "partitions",
        _parts,
        {"selectors": _selecting(f'device.attributes["{DRIVER}"].share == 4')},
        counters=tuple(
            {"name": f"card-{card}", "counters": {"slices": {"value": "4"}}} for card in range(2)
        ),
    ),
    Workload("shared capacity", _shared, {"capacity": {"requests": {"bandwidth": "10"}}}),
    Workload("extended resource", _plain, None),
)
