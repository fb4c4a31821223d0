"""Requests about pods and nodes, as far as DRA touches these, and about the status of pools.

Of a pod claims, extended resources, scheduling gates, tolerations and its node are drawn, and what
its status says of claims; of a node labels, taints, amounts and features. All else of them is as it
is in every case.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from kube.values import Obj
from tests.kubesim.apidiff.requests import DRIVER, NAMESPACE, Case, Draw, Place, Sent

_TOLERATION: Final[Obj] = {"key": "a", "operator": "Exists", "effect": "NoExecute"}
_EXTENDED: Final[Obj] = {"example.com/gpu": "1"}
_SPECS: Final[dict[str, Obj]] = {
    "Pod": {
        "containers": [
            {
                "name": "c0",
                "image": "i",
                "resources": {
                    "claims": [{"name": "gpu", "request": "r0"}],
                    "limits": {"cpu": "1", **_EXTENDED},
                    "requests": {"cpu": "500m", **_EXTENDED},
                },
            },
            {"name": "c1", "image": "i:1", "resources": {"claims": [{"name": "made"}]}},
        ],
        "resourceClaims": [
            {"name": "gpu", "resourceClaimName": "claim-a"},
            {"name": "made", "resourceClaimTemplateName": "template-a"},
        ],
        "schedulingGates": [{"name": "example.com/wait"}],
        "tolerations": [_TOLERATION],
    },
    "Node": {"taints": [{"key": "example.com/a", "value": "b", "effect": "NoSchedule"}]},
    "ResourcePoolStatusRequest": {"driver": DRIVER, "poolName": "p", "limit": 2},
}
_POD_STATUS: Final[Obj] = {
    "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "claim-b"}],
    "extendedResourceClaimStatus": {
        "resourceClaimName": "claim-c",
        "requestMappings": [
            {"containerName": "c0", "resourceName": "example.com/gpu", "requestName": "r0"}
        ],
    },
}
_NODE_STATUS: Final[Obj] = {
    "capacity": {"cpu": "4", **_EXTENDED},
    "allocatable": {"cpu": "3", **_EXTENDED},
    "declaredFeatures": ["DRANodeAllocatableResources"],
}
_POOLS: Final[Obj] = {
    "poolCount": 2,
    "pools": [
        {
            "driver": DRIVER,
            "poolName": "p",
            "generation": 1,
            "resourceSliceCount": 1,
            "totalDevices": 3,
            "allocatedDevices": 1,
            "availableDevices": 1,
            "unavailableDevices": 1,
            "nodeName": "node-1",
            "validationError": "x",
        }
    ],
    "conditions": [
        {
            "type": "Complete",
            "status": "True",
            "reason": "Good",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}
_STATUSES: Final = {
    "Pod": _POD_STATUS,
    "Node": _NODE_STATUS,
    "ResourcePoolStatusRequest": _POOLS,
}
_DRAWN: Final[dict[str, tuple[str, ...]]] = {
    "core/v1.Container": ("name", "resources"),
    "core/v1.NodeSpec": ("taints", "unschedulable"),
    "core/v1.NodeStatus": ("allocatable", "capacity", "declaredFeatures"),
    "core/v1.PodSpec": (
        *("nodeName", "resourceClaims", "schedulerName", "schedulingGates", "tolerations"),
        *("containers", "initContainers"),
    ),
    "core/v1.PodStatus": ("extendedResourceClaimStatus", "resourceClaimStatuses"),
}
"""Type -> its fields that are drawn; of other types all are."""
_KEPT: Final = frozenset({"image", "containers", "initContainers"})
"""Fields that are left as they are, though what is in them may be drawn."""


def core_case_of(seed: int, number: int) -> Case:
    """Return a case about a pod, a node or the status of pools."""
    return _DrawCore(random.Random(f"{seed}/core/{number}"), f"o{number}", _SPECS).draw()


class _DrawCore(Draw):
    def _list_weights(self) -> dict[Callable[[], Iterator[Sent]], int]:
        weights = super()._list_weights() | {self._draw_status: 14}
        if self._kind.name == "Pod":
            weights |= {self._draw_binding: 6, self._draw_eviction: 4}
        return weights

    def _build_object(self, faults: int) -> Obj:
        obj = super()._build_object(0)
        if self._kind.name == "Pod":
            self._vary_pod(obj["spec"])
        elif self._kind.name == "Node":
            obj["status"] = copy.deepcopy(_NODE_STATUS)
        for _ in range(faults):
            self._break(obj)
        return obj

    def _vary_pod(self, spec: Obj) -> None:
        variant = self._dice.randrange(5)
        if variant == 0:
            spec["initContainers"] = [copy.deepcopy(spec["containers"][0]) | {"name": "i0"}]
        elif variant == 1:
            del spec["schedulingGates"]
        elif variant == 2:
            del spec["schedulingGates"]
            spec["nodeName"] = "node-1"

    def _build_status(self) -> Obj:
        return copy.deepcopy(_STATUSES[self._kind.name])

    def _list_places(self, obj: Obj) -> list[Place]:
        return [place for place in super()._list_places(obj) if place[1] not in _KEPT]

    def _list_fields(self, shape: str) -> list[str]:
        drawn = [*super()._list_fields(shape)]
        return [name for name in drawn if name in _DRAWN.get(shape, drawn) and name not in _KEPT]

    def _draw_binding(self) -> Iterator[Sent]:
        yield self._create()
        binding: Obj = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": self._name},
            "target": {"kind": "Node", "name": "node-1"},
        }
        changes: list[Any] = [
            *({}, {}, {}, {"target": {}}, {"target": None}, {"target": {"name": "node-1"}}),
            *({"target": {"kind": "Pod", "name": "x"}}, {"target": {"kind": "Node", "name": "A"}}),
            *({"metadata": {"name": "other"}}, {"metadata": {}}),
            {"metadata": {"name": self._name, "annotations": {"a": "b"}, "labels": {"c": "d"}}},
            {"metadata": {"name": self._name, "uid": "x"}},
        ]
        body = binding | self._dice.choice(changes)
        for _ in range(self._dice.choice((1, 1, 2))):
            yield Sent("POST", f"{self._item}/binding", self._draw_query(), body)
        yield Sent("GET", self._item)

    def _draw_eviction(self) -> Iterator[Sent]:
        yield self._create()
        eviction: Obj = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": self._name, "namespace": NAMESPACE},
        }
        changes: list[Any] = [
            *({}, {}, {}, {"metadata": {"name": "other"}}, {"metadata": {}}),
            {"deleteOptions": {"gracePeriodSeconds": self._dice.choice((0, 1, -1))}},
            {"deleteOptions": {"preconditions": {"uid": "x"}}},
            {"deleteOptions": {"dryRun": ["All"]}},
        ]
        body = eviction | self._dice.choice(changes)
        yield Sent("POST", f"{self._item}/eviction", self._draw_query(), body)
        yield Sent("GET", self._item)
