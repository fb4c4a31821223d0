"""The Deployment controller: one ReplicaSet for each template, and how the next takes over.

Its status is numbers without conditions. It has no paused rollouts; a Deployment that is scaled
during a rolling update is scaled in its newest ReplicaSet, not in proportion; old ReplicaSets are
kept. Follows pkg/controller/deployment (rolling.go, recreate.go, sync.go).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from kube.errors import ApiError
from kube.values import Obj
from kubesim import pods
from kubesim.controllers.workloads import WorkloadController, controller_reference, template_hash
from kubesim.store import clone, name_of, namespace_of

_HASH: Final = "pod-template-hash"
"""Label of a ReplicaSet and its pods that says of which template they are."""


class DeploymentController(WorkloadController):
    """Reconciles Deployments."""

    kind = "Deployment"
    component = "deployment-controller"
    watches = frozenset({"ReplicaSet", "Pod"})

    def reconcile(self, deployment: Obj) -> None:
        """Bring pods of the present template in the place of all others."""
        recreates = deployment["spec"]["strategy"]["type"] == "Recreate"
        (self.recreate if recreates else self.roll)(deployment, *self._replica_sets(deployment))
        present, old = self._replica_sets(deployment)
        new = [present] if present is not None else []
        every = [*old, *new]
        available = _counted(every, "availableReplicas")
        self.report(
            deployment,
            {},
            replicas=_counted(every, "replicas"),
            updatedReplicas=_counted(new, "replicas"),
            readyReplicas=_counted(every, "readyReplicas"),
            availableReplicas=available,
            unavailableReplicas=max(0, _wanted(*every) - available),
        )

    def recreate(self, deployment: Obj, present: Obj | None, old: Sequence[Obj]) -> None:
        """Make no pod before all of other templates have ended."""
        for one in old:
            self._scale(deployment, one, 0)
        if any(not pods.is_finished(pod) for one in old for pod in self.owned(one)):
            return
        present = present or self._add(deployment)
        if present is not None:
            self._scale(deployment, present, int(deployment["spec"]["replicas"]))

    def roll(self, deployment: Obj, present: Obj | None, old: Sequence[Obj]) -> None:
        """Make pods, as far as there may be too many; then end others, as far as some may miss."""
        present = present or self._add(deployment)
        if present is None:
            return
        replicas = int(deployment["spec"]["replicas"])
        surge, unavailable = self.limits(deployment)
        size, in_all = _wanted(present), _wanted(present, *old)
        more = max(0, replicas + surge - in_all)
        if size != replicas and (size > replicas or more):
            self._scale(deployment, present, min(replicas, size + more))
            return
        least = replicas - unavailable
        spare = in_all - least - (size - _counted([present], "availableReplicas"))
        if spare <= 0:
            return
        # First those that do not work anyway, then as many as others can stand in for.
        old = self._shrink(deployment, old, spare, _broken)
        spare = _counted([*old, present], "availableReplicas") - least
        self._shrink(deployment, old, spare, _wanted)

    def limits(self, deployment: Obj) -> tuple[int, int]:
        """How many pods a rolling update may have too many, and too few (``ResolveFenceposts``)."""
        rolling, replicas = deployment["spec"]["strategy"]["rollingUpdate"], _wanted(deployment)
        surge = _scaled(rolling["maxSurge"], replicas, math.ceil)
        unavailable = _scaled(rolling["maxUnavailable"], replicas, math.floor)
        return surge, unavailable if surge or unavailable else 1

    def _replica_sets(self, deployment: Obj) -> tuple[Obj | None, list[Obj]]:
        """The one of its template, if there is one, and the others, the oldest first."""
        present, old, wanted = None, [], template_hash(deployment)
        for one in self.owned(deployment, "ReplicaSet"):
            if (one["metadata"].get("labels") or {}).get(_HASH) == wanted:
                present = one
            else:
                old.append(one)
        return present, old

    def _shrink(
        self, deployment: Obj, sets: Sequence[Obj], spare: int, many: Callable[[Obj], int]
    ) -> list[Obj]:
        """Take ``many`` pods from each, the oldest first, but no more than ``spare`` in all."""
        left = []
        for one in sets:
            fewer = max(0, min(spare, many(one)))
            left.append(self._scale(deployment, one, _wanted(one) - fewer))
            spare -= fewer
        return left

    def _scale(self, deployment: Obj, replica_set: Obj, size: int) -> Obj:
        before, name = _wanted(replica_set), name_of(replica_set)
        if size == before:
            return replica_set
        way = "up" if size > before else "down"
        text = f"Scaled {way} replica set {name} from {before} to {size}"
        self.event(deployment, "ScalingReplicaSet", text)
        return self._store.modify(replica_set, lambda new: new["spec"].update(replicas=size))

    def _add(self, deployment: Obj) -> Obj | None:
        """Make a ReplicaSet of its template, without pods; None if it is refused."""
        mark = {_HASH: template_hash(deployment)}
        selector, template = (
            clone(deployment["spec"][field]) for field in ("selector", "template")
        )
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **mark}
        template["metadata"]["labels"] |= mark
        name = f"{name_of(deployment)}-{mark[_HASH]}"
        made = {
            "apiVersion": deployment["apiVersion"],
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "labels": template["metadata"]["labels"],
                "ownerReferences": [controller_reference(deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        try:
            return self._api.create(made, namespace_of(deployment))
        except ApiError as error:
            text = f'Failed to create new replica set "{name}": {error.message}'
            self.event(deployment, "ReplicaSetCreateError", text, "Warning")
            return None


def _scaled(number: int | str, of: int, rounded: Callable[[float], int]) -> int:
    """A number, or a percentage of another one."""
    if isinstance(number, int):
        return number
    return rounded(int(number.removesuffix("%")) * of / 100)


def _wanted(*workloads: Obj) -> int:
    """How many pods they should have."""
    return sum(int(one["spec"]["replicas"]) for one in workloads)


def _counted(sets: Sequence[Obj], field: str) -> int:
    """A number of their status, in all."""
    return sum((one.get("status") or {}).get(field, 0) for one in sets)


def _broken(replica_set: Obj) -> int:
    """How many of its pods are not available."""
    return _wanted(replica_set) - _counted([replica_set], "availableReplicas")
