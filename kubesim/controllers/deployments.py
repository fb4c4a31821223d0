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
        (self.rollout_recreate if recreates else self.rollout_rolling)(
            deployment, *self._replica_sets(deployment)
        )
        present, old = self._replica_sets(deployment)
        new = [present] if present is not None else []
        every = [*old, *new]
        available = _sum_status(every, "availableReplicas")
        self.update_status(
            deployment,
            {},
            replicas=_sum_status(every, "replicas"),
            updatedReplicas=_sum_status(new, "replicas"),
            readyReplicas=_sum_status(every, "readyReplicas"),
            availableReplicas=available,
            unavailableReplicas=max(0, _sum_replicas(*every) - available),
        )

    def rollout_recreate(self, deployment: Obj, present: Obj | None, old: Sequence[Obj]) -> None:
        """Make no pod before all of other templates have ended."""
        for replica_set in old:
            self._scale(deployment, replica_set, 0)
        if any(
            not pods.is_finished(pod) for replica_set in old for pod in self.list_owned(replica_set)
        ):
            return
        present = present or self._add(deployment)
        if present is not None:
            self._scale(deployment, present, int(deployment["spec"]["replicas"]))

    def rollout_rolling(self, deployment: Obj, present: Obj | None, old: Sequence[Obj]) -> None:
        """Make pods, as far as there may be too many; then end others, as far as some may miss."""
        present = present or self._add(deployment)
        if present is None:
            return
        replicas = int(deployment["spec"]["replicas"])
        surge, unavailable = self.resolve_fenceposts(deployment)
        size, in_all = _sum_replicas(present), _sum_replicas(present, *old)
        room_for_surge = max(0, replicas + surge - in_all)
        if size != replicas and (size > replicas or room_for_surge):
            self._scale(deployment, present, min(replicas, size + room_for_surge))
            return
        min_available = replicas - unavailable
        spare = in_all - min_available - (size - _sum_status([present], "availableReplicas"))
        if spare <= 0:
            return
        # First those that do not work anyway, then as many as others can stand in for.
        old = self._shrink(deployment, old, spare, _count_unavailable)
        spare = _sum_status([*old, present], "availableReplicas") - min_available
        self._shrink(deployment, old, spare, _sum_replicas)

    def resolve_fenceposts(self, deployment: Obj) -> tuple[int, int]:
        """Return how many pods a rolling update may have too many, and too few."""
        rolling, replicas = (
            deployment["spec"]["strategy"]["rollingUpdate"],
            _sum_replicas(deployment),
        )
        surge = _resolve_percentage(rolling["maxSurge"], replicas, math.ceil)
        unavailable = _resolve_percentage(rolling["maxUnavailable"], replicas, math.floor)
        return surge, unavailable if surge or unavailable else 1

    def _replica_sets(self, deployment: Obj) -> tuple[Obj | None, list[Obj]]:
        """Return the ReplicaSet of its template, if there is one, and the others, oldest first."""
        present, old, current_hash = None, [], template_hash(deployment)
        for replica_set in self.list_owned(deployment, "ReplicaSet"):
            if (replica_set["metadata"].get("labels") or {}).get(_HASH) == current_hash:
                present = replica_set
            else:
                old.append(replica_set)
        return present, old

    def _shrink(
        self, deployment: Obj, sets: Sequence[Obj], spare: int, many: Callable[[Obj], int]
    ) -> list[Obj]:
        """Take ``many`` pods from each, the oldest first, but no more than ``spare`` in all."""
        scaled_sets = []
        for replica_set in sets:
            fewer = max(0, min(spare, many(replica_set)))
            scaled_sets.append(
                self._scale(deployment, replica_set, _sum_replicas(replica_set) - fewer)
            )
            spare -= fewer
        return scaled_sets

    def _scale(self, deployment: Obj, replica_set: Obj, size: int) -> Obj:
        old_size, name = _sum_replicas(replica_set), name_of(replica_set)
        if size == old_size:
            return replica_set
        direction = "up" if size > old_size else "down"
        text = f"Scaled {direction} replica set {name} from {old_size} to {size}"
        self.record_event(deployment, "ScalingReplicaSet", text)
        return self._store.modify(replica_set, lambda new: new["spec"].update(replicas=size))

    def _add(self, deployment: Obj) -> Obj | None:
        """Make a ReplicaSet of its template, without pods; None if it is refused."""
        hash_label = {_HASH: template_hash(deployment)}
        selector, template = (
            clone(deployment["spec"][field]) for field in ("selector", "template")
        )
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **hash_label}
        template["metadata"]["labels"] |= hash_label
        name = f"{name_of(deployment)}-{hash_label[_HASH]}"
        replica_set = {
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
            return self._api.create(replica_set, namespace_of(deployment))
        except ApiError as error:
            text = f'Failed to create new replica set "{name}": {error.message}'
            self.record_event(deployment, "ReplicaSetCreateError", text, "Warning")
            return None


def _resolve_percentage(number: int | str, of: int, rounded: Callable[[float], int]) -> int:
    """Return a number, or a percentage of another one."""
    if isinstance(number, int):
        return number
    return rounded(int(number.removesuffix("%")) * of / 100)


def _sum_replicas(*workloads: Obj) -> int:
    """Return how many pods they should have."""
    return sum(int(workload["spec"]["replicas"]) for workload in workloads)


def _sum_status(sets: Sequence[Obj], field: str) -> int:
    """Return a number of their status, in all."""
    return sum((replica_set.get("status") or {}).get(field, 0) for replica_set in sets)


def _count_unavailable(replica_set: Obj) -> int:
    """Return how many of its pods are not available."""
    return _sum_replicas(replica_set) - _sum_status([replica_set], "availableReplicas")
