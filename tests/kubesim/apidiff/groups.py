"""Requests about PodGroups and their claims, and about pods that name one.

All that may be wrong in a group's spec and in the claims of its status is drawn; of a pod its group
alone. Both sides need the gates ``GenericWorkload`` and, for the claims,
``DRAWorkloadResourceClaims``.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Final

from kube.values import Obj
from reference_allocator.api import schema
from tests.kubesim.apidiff.requests import Case, Draw, Place, Sent

_GANG: Final[Obj] = {"gang": {"minCount": 2}}
_SPECS: Final[dict[str, Obj]] = {
    "PodGroup": {
        "schedulingPolicy": {"basic": {}},
        "resourceClaims": [
            {"name": "gpu", "resourceClaimName": "claim-a"},
            {"name": "made", "resourceClaimTemplateName": "template-a"},
        ],
        "workloadRef": {"workloadName": "w", "templateName": "t"},
    },
    "Pod": {
        "containers": [{"name": "c", "image": "i"}],
        "schedulingGroup": {"podGroupName": "g"},
    },
}
_STATUS: Final[Obj] = {
    "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "claim-b"}],
    "conditions": [
        {
            "type": "PodGroupInitiallyScheduled",
            "status": "True",
            "reason": "Scheduled",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def group_case_of(seed: int, number: int) -> Case:
    """Return a case about a PodGroup, or about a pod of one."""
    return _DrawGroups(random.Random(f"{seed}/groups/{number}"), f"g{number}", _SPECS).draw()


class _DrawGroups(Draw):
    def _list_weights(self) -> dict[Callable[[], Iterator[Sent]], int]:
        weights = super()._list_weights()
        return weights | {self._draw_status: 20 if self._kind.name == "PodGroup" else 0}

    def _build_object(self, faults: int) -> Obj:
        obj = super()._build_object(0)
        if self._kind.name == "PodGroup" and self._dice.random() < 0.4:
            obj["spec"]["schedulingPolicy"] = copy.deepcopy(_GANG)
        for _ in range(faults):
            self._break(obj)
        return obj

    def _build_status(self) -> Obj:
        return copy.deepcopy(_STATUS) if self._kind.name == "PodGroup" else {}

    def _list_places(self, obj: Obj) -> list[Place]:
        # Some types, such as that of the policy basic, have no fields.
        places = [p for p in super()._list_places(obj) if schema.types().get(p[2]) != {}]
        if self._kind.name == "Pod":
            group = obj["spec"].get("schedulingGroup")
            places = [p for p in places if p[1] in ("schedulingGroup", "labels") or p[0] is group]
        return places

    def _list_fields(self, shape: str) -> list[str]:
        return ["schedulingGroup"] if shape == "core/v1.PodSpec" else [*super()._list_fields(shape)]
