"""Makes room for a pod of higher priority: which pods have to go, and from which node.

Follows pkg/scheduler/framework/preemption/preemption.go and plugins/defaultpreemption of Kubernetes
1.37, without disruption budgets. Nobody is preempted for a device: the dynamicresources plugin
calls a node without a free one UnschedulableAndUnresolvable, and has no PreFilterExtensions, so
that a device stays taken when the pod that has it is thought away (KEP 5690 is to change that).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kube.values import KUBE_SCHEDULER, Obj
from kubesim import pods
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster, set_condition
from kubesim.scheduling.binding import Plan
from kubesim.scheduling.filtering import Filter, Round
from kubesim.scheduling.nodefit import Misfit
from kubesim.store import name_of, uid_of


class Preemption:
    """Deletes pods of lower priority where a pod of higher priority then has a place."""

    def __init__(self, cluster: Cluster, api: ApiServer, filter_: Filter) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self._filter = filter_

    def preempt(
        self, pod: Obj, claims: Sequence[Obj], unfit: Mapping[str, Sequence[Misfit]]
    ) -> str:
        """Make room for a pod that has found no node.

        ``unfit``: node -> why it does not suit.
        Returns what the scheduler says of it, empty if nothing is to be gained by preemption.
        """
        if pod["spec"].get("preemptionPolicy") == "Never":
            return "preemption: not eligible due to preemptionPolicy=Never."
        round_ = self._filter.start_round(pod)
        nominated = pod["status"].get("nominatedNodeName")
        terminating = [p for p in round_.pods.get(nominated or "", ()) if pods.is_deleted(p)]
        if any(pods.priority_of(other) < pods.priority_of(pod) for other in terminating):
            return "preemption: not eligible due to a terminating pod on the nominated node."
        candidates: list[tuple[Obj, list[Obj]]] = []
        for name, misfits in unfit.items():
            node = self._store.get("Node", "", name)
            if node is not None and all(misfit.resolvable for misfit in misfits):
                victims = self.select_victims_on_node(pod, claims, node, round_)
                if victims:
                    candidates.append((node, victims))
        if not candidates:
            return ""
        node, victims = min(candidates, key=lambda candidate: _cost(candidate[1]))
        self._actuate(pod, node, victims)
        return (
            f"preemption: found a potential placement for pod on node {name_of(node)}, "
            f"preempting {len(victims)} victims"
        )

    def select_victims_on_node(
        self, pod: Obj, claims: Sequence[Obj], node: Obj, round_: Round
    ) -> list[Obj]:
        """Return the fewest pods without which a pod suits a node, the most important first.

        Empty if there are none (``SelectVictimsOnNode``). A pod that is not bound yet is no victim,
        unlike upstream, which takes back what such a pod waits with.
        """
        on_node = [other for other in round_.pods_on(node) if other["spec"].get("nodeName")]
        lower_priority = [
            other for other in on_node if pods.priority_of(other) < pods.priority_of(pod)
        ]
        remaining = [other for other in round_.pods_on(node) if other not in lower_priority]
        if not lower_priority or self._filter.check_node(
            pod, Plan(list(claims)), node, remaining, round_
        ):
            return []
        victims = []
        for other in sorted(lower_priority, key=lambda other: -pods.priority_of(other)):
            if self._filter.check_node(pod, Plan(list(claims)), node, [*remaining, other], round_):
                victims.append(other)
            else:
                remaining.append(other)
        return victims

    def _actuate(self, pod: Obj, node: Obj, victims: Sequence[Obj]) -> None:
        now = self._cluster.clock.format_timestamp()
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{KUBE_SCHEDULER}: preempting to accommodate a higher priority pod",
        }

        def mark(new: Obj) -> None:
            set_condition(new["status"], condition, now)

        for victim in victims:
            marked = self._store.modify(victim, mark)
            message = f"Preempted by pod {uid_of(pod)} on node {name_of(node)}"
            self._cluster.record_event(marked, "Normal", "Preempted", message, KUBE_SCHEDULER)
            self._api.delete_stored(marked)
        self._store.modify(pod, lambda new: new["status"].update(nominatedNodeName=name_of(node)))


def _cost(victims: Sequence[Obj]) -> tuple[int, int, int]:
    """Return by which of two nodes it is the worse one (``pickOneNodeForPreemption``)."""
    priorities = [pods.priority_of(victim) for victim in victims]
    return max(priorities), sum(priority + 2**31 for priority in priorities), len(priorities)
