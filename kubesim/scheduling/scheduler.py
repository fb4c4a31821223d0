"""Places pods, by priority, then oldest first: a node that suits and has devices for their claims.

A pod whose claims are not all there is not looked at and gets no condition either, as in a real
cluster, where PreEnqueue keeps it out of the queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kube.errors import ApiError
from kube.observations import Decision
from kube.values import KUBE_SCHEDULER, Obj
from kubesim import pods
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster
from kubesim.scheduling import nodefit
from kubesim.scheduling.binding import COMPONENT, Binder, Plan, PreBindError
from kubesim.scheduling.bindingconditions import BindingConditions, WaitingPods
from kubesim.scheduling.filtering import Filter, SchedulingError
from kubesim.scheduling.groups import Attempt, GroupScheduling
from kubesim.scheduling.preemption import Preemption
from kubesim.store import name_of, namespace_of, uid_of
from reference_allocator.api.reading import InputError
from reference_allocator.errors import AllocationError
from reference_allocator.extended import ANNOTATION
from reference_allocator.snapshot import Snapshot

_EVENTS: Final = (
    "DeviceClass",
    "DeviceTaintRule",
    "Node",
    "ResourceClaim",
    "ResourceQuota",
    "ResourceSlice",
)
"""Kinds whose changes make another attempt worthwhile."""


class Scheduler:
    """Schedules the pending pods of a cluster.

    Attributes:
        name: ``spec.schedulerName`` of its pods.
        decisions: the allocations that it decided on, oldest first.
        conditions: what devices say before a pod may be bound.
    """

    watches = frozenset({"Pod", "PodGroup", *_EVENTS})

    def __init__(
        self, cluster: Cluster, api: ApiServer, kubernetes_version: str, name: str = KUBE_SCHEDULER
    ) -> None:
        self.name = name
        self.decisions: list[Decision] = []
        self._api = api
        self._cluster = cluster
        self._store = cluster.store
        self._version = kubernetes_version
        self.conditions = BindingConditions(cluster)
        self.filter = Filter(cluster, self.conditions)
        self.binder = Binder(cluster, api)
        self.preemption = Preemption(cluster, api, self.filter)
        self.groups = GroupScheduling(
            cluster, self.filter, self.binder, self.find_place, self.bind_plan
        )
        self._tried: dict[str, Mapping[str, Any]] = {}
        self.waiting = WaitingPods(cluster, self.binder, self.conditions, self.filter.assumed)

    def restart(self) -> None:
        """Schedule pods again that were about to be bound."""
        self._tried.clear()
        self.binder.keep_backoffs(())
        self.filter.assumed.clear()
        self._cluster.counts.forget(COMPONENT)

    def sync(self) -> None:
        """Try every pending pod for which something changed since it was tried."""
        self.waiting.sync()
        tried: dict[str, Mapping[str, Any]] = {}
        for pod in sorted(self._store.all("Pod"), key=lambda pod: -pods.priority_of(pod)):
            if uid_of(pod) in tried or not self._is_queued(pod):
                continue
            group = self._cluster.group_of(pod)
            if group is not None:
                tried |= self._schedule_group(group)
                continue
            claims = self.ready_claims(pod)
            if claims is None:
                continue
            state = self.observe_cluster()
            if self._is_due(pod, state):
                self._schedule(pod, claims)
            tried[uid_of(pod)] = state
        self._tried = tried
        self.binder.keep_backoffs(tried)

    def _schedule_group(self, group: Obj) -> dict[str, Mapping[str, Any]]:
        """Try the pods of a group that wait, if one of them is due.

        Returns uid -> what the cluster was like, of those that wait.
        """
        waiting = [
            (pod, claims)
            for pod in self._store.all("Pod", namespace_of(group))
            if pods.group_name(pod) == name_of(group)
            and self._is_queued(pod)
            and (claims := self.ready_claims(pod)) is not None
        ]
        state = {**self.observe_cluster(), "group": self.groups.describe_needs(group)}
        if any(self._is_due(pod, state) for pod, _ in waiting):
            self.groups.schedule(group, waiting)
        return {uid_of(pod): state for pod, _ in waiting}

    def _is_queued(self, pod: Obj) -> bool:
        """Return whether a pod waits to be scheduled, and for nothing else before."""
        return self._is_pending(pod) and pod not in self.waiting and not self.groups.is_held(pod)

    def _is_due(self, pod: Obj, state: Mapping[str, Any]) -> bool:
        """Return whether a pod is to be tried now: after an error once the backoff is over."""
        backoff_end = self.binder.backoff_end(pod)
        if backoff_end is not None:
            return backoff_end <= self._cluster.clock.now
        return self._tried.get(uid_of(pod)) != state

    def take_snapshot(self, claims: Sequence[Obj]) -> Obj:
        """Return all that an allocation of these claims depends on, now."""
        claim_uids = {uid_of(claim) for claim in claims}
        return Snapshot(
            kubernetes=self._version,
            features=self._cluster.features,
            slices=tuple(self._cluster.list_slices()),
            device_classes=tuple(self._store.all("DeviceClass")),
            nodes=tuple(self._nodes()),
            claims=tuple(claims),
            allocated=tuple(
                claim
                for claim in self._store.all("ResourceClaim")
                if "allocation" in claim["status"] and uid_of(claim) not in claim_uids
            ),
        ).to_dict()

    def _nodes(self) -> list[Obj]:
        return sorted(self._store.all("Node"), key=name_of)

    def observe_cluster(self) -> Mapping[str, Any]:
        """Return what differs from earlier when another attempt could end differently."""
        bound = [
            pod
            for pod in self._store.all("Pod")
            if pod["spec"].get("nodeName") and not pods.is_finished(pod)
        ]
        return {
            "bound pods": len(bound),
            **{kind: self._store.revision_of_kind(kind) for kind in _EVENTS},
        }

    def ready_claims(self, pod: Obj) -> list[Obj] | None:
        """Return the pod's claims, None as long as one is missing, going, or another pod's."""
        claims = []
        for entry, claim in self._cluster.claims_of(pod):
            if claim is None or pods.is_deleted(claim):
                return None
            if not self._cluster.may_use(pod, entry, claim):
                return None
            claims.append(claim)
        return claims

    def _schedule(self, pod: Obj, claims: list[Obj]) -> None:
        attempt = self.find_place(pod, claims)
        plan, misfits = attempt.plan, attempt.misfits
        if attempt.is_error:
            self.binder.report_error(pod, attempt.message)
            return
        if plan.node is not None:
            self.bind_plan(pod, plan)
            return
        nodes = self._nodes()
        if not nodes:
            self.binder.report_unschedulable(pod, attempt.message)
            return
        try:
            outcome = self.preemption.preempt(pod, claims, misfits) if misfits else ""
        except (SchedulingError, AllocationError, InputError) as error:
            self.binder.report_error(pod, _describe_error(error))
            return
        self.binder.deallocate(pod, plan)
        outcome = outcome or nodefit.preemption_message(misfits, len(nodes))
        self.binder.report_unschedulable(pod, f"{attempt.message} {outcome}")

    def find_place(self, pod: Obj, claims: list[Obj]) -> Attempt:
        """Look for a node for a pod with its claims; nothing is written of what is found."""
        plan, nodes = Plan(claims), self._nodes()
        if not nodes:
            return Attempt(plan, nodefit.NO_NODES)
        reason = self.filter.pre_filter(claims)
        if reason is not None:
            return Attempt(plan, nodefit.prefilter_message(len(nodes), reason))
        misfits: Mapping[str, Sequence[nodefit.Misfit]]
        if self.discard_stale(pod):
            misfits = {name_of(node): [nodefit.STALE_EXTENDED_CLAIM] for node in nodes}
        else:
            try:
                misfits = self.filter.filter(pod, plan, nodes)
            except (SchedulingError, AllocationError, InputError) as error:
                return Attempt(plan, _describe_error(error), is_error=True)
        if plan.node is not None:
            return Attempt(plan)
        return Attempt(plan, nodefit.filter_message(misfits), misfits)

    def bind_plan(self, pod: Obj, plan: Plan) -> None:
        """Reserve the claims of a pod for which a node was found, and bind it."""
        assert plan.node is not None
        problem = self._refused(plan)
        if problem is not None:
            self.binder.report_pre_bind_error(pod, problem)
            return
        snapshot = self.take_snapshot(plan.to_allocate) if plan.to_allocate else None
        try:
            written = self.binder.reserve(pod, plan)
        except PreBindError as error:
            self.binder.report_pre_bind_error(pod, str(error))
            return
        self.waiting.bind(pod, name_of(plan.node))
        if snapshot is not None:
            # As on a real cluster: what is in the claims counts.
            self.decisions.append(
                Decision(
                    pod=name_of(pod),
                    namespace=namespace_of(pod),
                    node=name_of(plan.node),
                    claims=tuple(plan.to_allocate),
                    allocations=written,
                    snapshot=snapshot,
                )
            )

    def _refused(self, plan: Plan) -> str | None:
        """Return why PreBind could not make the claim for extended resources, None if it could."""
        if plan.special is None:
            return None
        try:
            self._api.quotas.admit(plan.special)
        except ApiError as error:
            self._cluster.counts.count_created_claim(COMPONENT, plan.special, success=False)
            return (
                "create claim for extended resources "
                f"{namespace_of(plan.special)}/: {error.message}"
            )
        return None

    def discard_stale(self, pod: Obj) -> bool:
        """Delete what an earlier attempt made for a pod's extended resources; True if it did.

        The pod is tried again then: it may get other devices (``preFilterExtendedResources`` and
        PostFilter of the dynamicresources plugin).
        """
        stale_claims = [
            claim
            for claim in self._store.all("ResourceClaim", namespace_of(pod))
            if (claim["metadata"].get("annotations") or {}).get(ANNOTATION) == "true"
            and pods.is_controlled_by(claim, pod)
        ]
        for claim in stale_claims:
            self._store.remove(claim)
        return bool(stale_claims)

    def _is_pending(self, pod: Obj) -> bool:
        spec = pod["spec"]
        return (
            not spec.get("nodeName")
            and not pods.is_deleted(pod)
            and not pods.is_finished(pod)
            and not spec.get("schedulingGates")
            and spec.get("schedulerName") == self.name
        )


def _describe_error(error: Exception) -> str:
    return f'running "DynamicResources" filter plugin: {error}'
