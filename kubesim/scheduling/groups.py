"""Places the pods of a PodGroup in one attempt: at least as many as it needs, or none (KEP-4671).

Follows PreEnqueue and PlacementFeasible of the plugin gangscheduling, scheduleOnePodGroup in
pkg/scheduler/schedule_one_podgroup.go, and PodGroupPostFilter of the plugin dynamicresources. Not
here: composite groups, constraints of topology, and preemption by or of a group. Upstream, a pod
that shares what another one of the same attempt has been given may fail in PreBind at first ("got
allocated elsewhere in the meantime"), and is bound in a later attempt. That there is no room for
enough pods 1.38.0-beta.0 says in other words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kube.values import Obj
from kubesim import pods
from kubesim.cluster import Cluster, set_condition
from kubesim.scheduling.binding import Binder, Plan
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.nodefit import Misfit
from kubesim.store import clone, name_of, namespace_of, uid_of


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of looking for a node for a pod.

    Attributes:
        plan: has a node if one was found.
        message: why none was found, without what is said of preemption.
        misfits: node -> why it does not suit; empty if none was looked at.
        is_error: whether the search ended in an error.
    """

    plan: Plan
    message: str = ""
    misfits: Mapping[str, Sequence[Misfit]] = field(default_factory=dict)
    is_error: bool = False


class GroupScheduling:
    """Schedules the PodGroups of a cluster.

    Args:
        find_place: looks for a node for a pod with its claims, and writes nothing.
        bind: gives a pod the node that was found for it, and what its claims were found.
    """

    def __init__(
        self,
        cluster: Cluster,
        filter_: Filter,
        binder: Binder,
        find_place: Callable[[Obj, list[Obj]], Attempt],
        bind: Callable[[Obj, Plan], None],
    ) -> None:
        self._cluster = cluster
        self._filter = filter_
        self._binder = binder
        self._find_place = find_place
        self._bind = bind

    def is_held(self, pod: Obj) -> bool:
        """Return whether a pod waits for its group, or for enough pods of it (PreEnqueue)."""
        if pods.group_name(pod) is None or not self._cluster.has_groups:
            return False
        group = self._cluster.group_of(pod)
        return group is None or len(self._list_members(group)) < self.count_needed(group)

    def count_needed(self, group: Obj) -> int:
        """Return how many pods a group needs at the same time: one, unless it is a gang."""
        return int((group["spec"]["schedulingPolicy"].get("gang") or {}).get("minCount") or 1)

    def describe_needs(self, group: Obj) -> tuple[int, int]:
        """Return how many pods a group needs and has: what makes another attempt worthwhile."""
        return self.count_needed(group), len(self._list_members(group))

    def schedule(self, group: Obj, waiting: Sequence[tuple[Obj, list[Obj]]]) -> None:
        """Place the pods of a group that wait, each with its claims, or say why not."""
        for pod in self._list_members(group):
            group_priority, priority = pods.priority_of(group), pods.priority_of(pod)
            if priority != group_priority:
                text = (
                    "all pods in a single pod group should have the same priority as the pod "
                    f"group's priority, got {priority} and {group_priority}"
                )
                self._fail([], waiting, text)
                self._note(group, "False", "SchedulerError", text)
                return
        attempts, problem = self.place_all(group, waiting)
        failed = [attempt for attempt in attempts if attempt.is_error]
        if failed:
            text = f"failed to schedule other pod from a pod group: {failed[0].message}"
            self._fail(attempts, waiting, text)
            self._note(group, "False", "SchedulerError", text)
        elif problem or all(attempt.plan.node is None for attempt in attempts):
            self._report_unschedulable(attempts, waiting, problem)
            self._note(group, "False", "Unschedulable", problem)
            self.give_up_claims(group, attempts, waiting)
        else:
            self._note(group, "True", "Scheduled", "")
            for attempt, (pod, _) in zip(attempts, waiting, strict=True):
                if attempt.plan.node is not None:
                    self._bind(pod, attempt.plan)
                else:
                    self._binder.report_unschedulable(pod, attempt.message)

    def place_all(
        self, group: Obj, waiting: Sequence[tuple[Obj, list[Obj]]]
    ) -> tuple[list[Attempt], str]:
        """Look for a node for one pod after the other, each beside what those before it would get.

        Returns the attempts, and why too few pods would run; empty if enough would.
        """
        least, scheduled = self.count_needed(group), len(self.list_scheduled(group))
        remaining, attempts = len(waiting), list[Attempt]()
        pending, assumed = self._filter.listers.pending, self._filter.assumed
        try:
            for pod, claims in waiting:
                if remaining + scheduled < least:
                    break
                seen = [pending.get(uid_of(claim), claim) for claim in claims]
                attempt = self._find_place(pod, seen)
                attempts.append(attempt)
                if attempt.is_error:
                    break
                remaining -= 1
                if attempt.plan.node is not None:
                    scheduled += 1
                    assumed[uid_of(pod)] = name_of(attempt.plan.node)
                    pending.update(_pending_claims(attempt.plan))
        finally:
            pending.clear()
            for pod, _ in waiting:
                assumed.pop(uid_of(pod), None)
        if scheduled >= least:
            return attempts, ""
        counts = f"{scheduled} scheduled, {remaining} remaining"
        return attempts, f"minCount ({least}) cannot be satisfied: {counts}"

    def _fail(
        self, attempts: Sequence[Attempt], waiting: Sequence[tuple[Obj, list[Obj]]], text: str
    ) -> None:
        """Say of all pods that an error kept them from being scheduled."""
        for index, (pod, _) in enumerate(waiting):
            is_own = index < len(attempts) and attempts[index].is_error
            self._binder.report_error(pod, attempts[index].message if is_own else text)

    def _report_unschedulable(
        self, attempts: Sequence[Attempt], waiting: Sequence[tuple[Obj, list[Obj]]], problem: str
    ) -> None:
        for index, (pod, _) in enumerate(waiting):
            own_message = attempts[index].message if index < len(attempts) else ""
            self._binder.report_unschedulable(pod, own_message or problem)

    def give_up_claims(
        self,
        group: Obj,
        attempts: Sequence[Attempt],
        waiting: Sequence[tuple[Obj, list[Obj]]],
    ) -> None:
        """Undo what keeps the pods of a group from running, and what nobody uses."""
        is_stuck = False
        for attempt, (pod, _) in zip(attempts, waiting, strict=False):
            if not self._binder.deallocate(pod, attempt.plan):
                is_stuck = True
        if not is_stuck or not self._cluster.shares_in_groups or self.list_scheduled(group):
            return
        if any(self._binder.deallocate(group, attempt.plan) for attempt in attempts):
            return
        for entry, claim in self._cluster.claims_of(group):
            is_generated = entry.get("resourceClaimTemplateName") is not None
            if claim is None or (is_generated and not pods.is_controlled_by(claim, group)):
                continue
            if "allocation" in claim["status"] and pods.is_reserved(claim, group):
                self._binder.remove_consumer(claim, group)
                return

    def _list_members(self, group: Obj) -> list[Obj]:
        """Return the pods of a group that have not ended."""
        return [
            pod
            for pod in self._cluster.store.all("Pod", namespace_of(group))
            if pods.group_name(pod) == name_of(group) and not pods.is_finished(pod)
        ]

    def list_scheduled(self, group: Obj) -> list[Obj]:
        """Return the pods of a group that have a node, or are about to be bound to one."""
        assumed = self._filter.assumed
        members = self._list_members(group)
        return [pod for pod in members if pod["spec"].get("nodeName") or uid_of(pod) in assumed]

    def _note(self, group: Obj, status: str, reason: str, message: str) -> None:
        """Note whether a group is scheduled; once it was, that stays (updatePodGroupCondition)."""
        condition = {"type": "PodGroupInitiallyScheduled", "status": status}
        conditions = group["status"].get("conditions") or []
        was_scheduled = any({**one, **condition, "status": "True"} == one for one in conditions)
        if was_scheduled and status != "True":
            return
        condition |= {"reason": reason, "message": message}
        now = self._cluster.clock.format_timestamp()
        self._cluster.store.modify(group, lambda new: set_condition(new["status"], condition, now))


def _pending_claims(plan: Plan) -> dict[str, Obj]:
    """Return uid -> claim with the allocation that it would get, of those that have none."""
    claims = {}
    for claim, allocation in zip(plan.to_allocate, plan.allocations, strict=True):
        pending = clone(claim)
        pending["status"]["allocation"] = allocation
        if claim is plan.special:  # which all pods' have the same name
            pending["metadata"]["name"] = uid_of(claim)
        claims[uid_of(claim)] = pending
    return claims
