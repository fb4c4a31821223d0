"""The StatefulSet controller: pods with numbers, one after another, that come again by their names.

It knows no volumes, no partition, no minReadySeconds and no maxUnavailable other than 1, and takes
over no pods that it has not made. Follows pkg/controller/statefulset/stateful_set_control.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kube.values import Obj
from kubesim import pods
from kubesim.controllers.workloads import WorkloadController, template_hash
from kubesim.store import clone, name_of

_REVISION: Final = "controller-revision-hash"  # Label of a pod that says of which template it is.

_INDEX: Final = "apps.kubernetes.io/pod-index"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"


class StatefulSetController(WorkloadController):
    """Reconciles StatefulSets."""

    kind = "StatefulSet"
    component = "statefulset-controller"

    def reconcile(self, stateful_set: Obj) -> None:
        """Take the next step towards its pods, then say how many there are."""
        self.update_stateful_set(stateful_set, self._pods_by_ordinal(stateful_set))
        self._update_status(stateful_set)

    def update_stateful_set(self, stateful_set: Obj, pods_by_ordinal: Mapping[int, Obj]) -> None:
        """Make pods, end those that are too many, then those of another template.

        In order, each of them waits for the one before; ``pods_by_ordinal``: ordinal -> pod.
        """
        ordinals, ordered = self.list_ordinals(stateful_set), self.in_order(stateful_set)
        for ordinal in ordinals:
            if (
                not self._process_replica(stateful_set, ordinal, pods_by_ordinal.get(ordinal))
                and ordered
            ):
                return
        condemned = sorted({*pods_by_ordinal} - {*ordinals}, reverse=True)
        if ordered and condemned:
            self.end_last([pods_by_ordinal[ordinal] for ordinal in condemned])
            return
        self.delete_pods(*(pods_by_ordinal[ordinal] for ordinal in condemned))
        if stateful_set["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            self.replace_outdated(stateful_set, self._pods_by_ordinal(stateful_set))

    def list_ordinals(self, stateful_set: Obj) -> range:
        """Return the numbers of the pods that it should have."""
        spec = stateful_set["spec"]
        start = int((spec.get("ordinals") or {}).get("start", 0))
        return range(start, start + int(spec["replicas"]))

    def in_order(self, stateful_set: Obj) -> bool:
        """Return whether each pod waits for the one before (``podManagementPolicy``)."""
        policy: str = stateful_set["spec"]["podManagementPolicy"]
        return policy == "OrderedReady"

    def pod_name(self, stateful_set: Obj, ordinal: int) -> str:
        """Return what its pod of a number is called, each time that it is made."""
        return f"{name_of(stateful_set)}-{ordinal}"

    def _process_replica(self, stateful_set: Obj, ordinal: int, pod: Obj | None) -> bool:
        """Make the pod of a number; return whether it is available (``processReplica``)."""
        if pod is None:
            self._make(stateful_set, ordinal)
        elif pods.is_finished(pod):
            self.delete_pods(pod)
        else:
            return _is_available(pod)
        return False

    def _make(self, stateful_set: Obj, ordinal: int) -> None:
        name = self.pod_name(stateful_set, ordinal)
        spec = clone(stateful_set["spec"]["template"]["spec"])
        spec["hostname"] = name
        if stateful_set["spec"].get("serviceName"):
            spec["subdomain"] = stateful_set["spec"]["serviceName"]
        labels = {_REVISION: _revision(stateful_set), _INDEX: str(ordinal), _POD_NAME: name}
        self.make_pod(stateful_set, spec, name=name, labels=labels)

    def end_last(self, condemned: Sequence[Obj]) -> None:
        """End the last of those that are too many, if that is none that others wait for.

        The first of them that is not available is the one to wait for (``processCondemned``).
        """
        last, broken = condemned[0], [pod for pod in condemned if not _is_available(pod)]
        waited_for = bool(broken) and last in broken and last is not broken[-1]
        if not waited_for:
            self.delete_pods(last)

    def replace_outdated(self, stateful_set: Obj, pods_by_ordinal: Mapping[int, Obj]) -> None:
        """End the last pod of another template, if all after it are available."""
        for ordinal in reversed(self.list_ordinals(stateful_set)):
            pod = pods_by_ordinal.get(ordinal)
            if pod is None:
                return
            if not _is_of(pod, _revision(stateful_set)) and not pods.is_deleted(pod):
                self._api.delete_stored(pod)
                return
            if not _is_available(pod):
                return

    def _pods_by_ordinal(self, stateful_set: Obj) -> dict[int, Obj]:
        """Return ordinal -> pod."""
        return {
            int(name_of(pod).rpartition("-")[2]): pod
            for pod in self.list_owned(stateful_set)
            if name_of(pod).rpartition("-")[2].isdecimal()
        }

    def _update_status(self, stateful_set: Obj) -> None:
        """Write its status (``updateStatus``, ``completeUpdate``)."""
        all_pods, update = (
            list(self._pods_by_ordinal(stateful_set).values()),
            _revision(stateful_set),
        )
        current = (stateful_set.get("status") or {}).get("currentRevision", update)
        lasting_pods = [pod for pod in all_pods if not pods.is_deleted(pod)]
        ready = sum(map(pods.is_ready, all_pods))
        updated = sum(1 for pod in lasting_pods if _is_of(pod, update))
        if {len(all_pods), ready, updated} == {int(stateful_set["spec"]["replicas"])}:
            current = update
        self.update_status(
            stateful_set,
            {
                "replicas": len(all_pods),
                "availableReplicas": ready,
                "collisionCount": 0,
                "currentRevision": current,
                "updateRevision": update,
            },
            readyReplicas=ready,
            currentReplicas=sum(1 for pod in lasting_pods if _is_of(pod, current)),
            updatedReplicas=updated,
        )


def _revision(stateful_set: Obj) -> str:
    return f"{name_of(stateful_set)}-{template_hash(stateful_set)}"


def _is_of(pod: Obj, revision: str) -> bool:
    return (pod["metadata"].get("labels") or {}).get(_REVISION) == revision


def _is_available(pod: Obj) -> bool:
    running = pod["status"].get("phase") == "Running"
    return running and pods.is_ready(pod) and not pods.is_deleted(pod)
