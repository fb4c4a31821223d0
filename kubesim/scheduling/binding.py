"""Writes what the scheduler decided: allocations and reservations first, then the pod's node.

Follows PreBind of the dynamicresources plugin (bindClaim in pkg/scheduler/framework/plugins/
dynamicresources/dynamicresources.go).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from kube.errors import ApiError
from kube.values import KUBE_SCHEDULER, Obj
from kubesim import pods
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster, set_condition
from kubesim.controllers.claims import FINALIZER
from kubesim.resources import KINDS
from kubesim.store import clone, name_of, namespace_of, retain_items, uid_of
from reference_allocator.api.limits import RESERVED_FOR_MAX

COMPONENT: Final = "kube-scheduler"

_FIRST_BACKOFF: Final = 1.0
_LONGEST_BACKOFF: Final = 10.0
"""Seconds, the defaults of podInitialBackoffSeconds and podMaxBackoffSeconds."""


class PreBindError(Exception):
    """What PreBind of the plugin failed with; nothing of the pod is reserved any more."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a pod waits after an error of the scheduler.

    Attributes:
        error_count: errors one after another, without a decision between them.
        until: virtual time of the next attempt.
    """

    error_count: int
    until: float


@dataclass(slots=True)
class Plan:
    """A pod's claims, and what was found for them.

    Attributes:
        claims: the claims that the pod names, in its order.
        node: the node that was chosen, None if there is none.
        to_allocate: claims that get an allocation now; the special one is the last.
        allocations: their allocations, in the same order.
        special: the claim for extended resources, not stored yet.
        mappings: which container gets the devices of which of the special claim's requests.
        node_allocatable: what the devices take of the node's own resources, for the pod's status.
        unavailable: claims whose devices cannot be used on a node that was looked at.
    """

    claims: list[Obj]
    node: Obj | None = None
    to_allocate: list[Obj] = field(default_factory=list)
    allocations: tuple[Obj, ...] = ()
    special: Obj | None = None
    mappings: list[Obj] = field(default_factory=list)
    node_allocatable: list[Obj] = field(default_factory=list)
    unavailable: list[Obj] = field(default_factory=list)

    def take_over(self, other: Plan) -> None:
        """Take over what was found for another plan of the same pod."""
        self.node, self.to_allocate, self.allocations = (
            other.node,
            other.to_allocate,
            other.allocations,
        )
        self.special, self.mappings = other.special, other.mappings
        self.node_allocatable = other.node_allocatable


class Binder:
    """Binds pods in one cluster."""

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._api = api
        self._store = cluster.store
        self._backoffs: dict[str, Backoff] = {}

    def reserve(self, pod: Obj, plan: Plan) -> tuple[Obj, ...]:
        """Allocate and reserve the claims of a plan for which a node was found.

        Returns ``status.allocation`` of each claim of ``plan.to_allocate`` as it was written.
        Raises PreBindError: a write is refused. Claims that were allocated before it stay so.
        """
        try:
            return self._write_plan(pod, plan)
        except ApiError as error:
            self.unreserve(pod)
            raise PreBindError(error.message) from None

    def _write_plan(self, pod: Obj, plan: Plan) -> tuple[Obj, ...]:
        allocation_by_claim = {
            uid_of(claim): allocation
            for claim, allocation in zip(plan.to_allocate, plan.allocations, strict=True)
        }
        written: dict[str, Obj] = {}
        for claim in plan.claims:
            written[uid_of(claim)] = self.reserve_claim(
                pod, claim, allocation_by_claim.get(uid_of(claim))
            )
        status: Obj = {}
        if plan.special is not None:
            stored = self._store.add(_unnamed(plan.special))
            self._cluster.counts.count_created_claim(COMPONENT, stored, success=True)
            special_uid = uid_of(plan.special)
            written[special_uid] = self.reserve_claim(pod, stored, allocation_by_claim[special_uid])
            status["extendedResourceClaimStatus"] = {
                "resourceClaimName": name_of(stored),
                "requestMappings": plan.mappings,
            }
        if plan.node_allocatable:
            status["nodeAllocatableResourceClaimStatuses"] = plan.node_allocatable
        if status:
            self._store.modify(pod, lambda new: new["status"].update(status))
        return tuple(written[uid_of(claim)]["status"]["allocation"] for claim in plan.to_allocate)

    def bind(self, pod: Obj, node: str) -> None:
        """Give a pod whose claims are reserved its node."""

        def bound(new: Obj) -> None:
            new["spec"]["nodeName"] = node
            new["status"].pop("nominatedNodeName", None)
            condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
            set_condition(new["status"], condition, self._cluster.clock.format_timestamp())

        self._backoffs.pop(uid_of(pod), None)
        pod = self._store.modify(pod, bound)
        message = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
        self._cluster.record_event(pod, "Normal", "Scheduled", message, KUBE_SCHEDULER)

    def report_waiting(self, pod: Obj, node: str) -> None:
        """Say that a pod whose claims are reserved is not bound yet."""
        message = f"waiting for binding conditions for device on node {node}"
        self._cluster.record_event(
            pod, "Normal", "BindingConditionsPending", message, KUBE_SCHEDULER
        )

    def unreserve(self, pod: Obj) -> None:
        """Take back the reservations of a pod that could not be bound, and what was made for it."""
        for _, claim in self._cluster.claims_of(pod):
            if claim is not None and pods.is_reserved(claim, pod):
                self.remove_consumer(claim, pod)
        special = self._cluster.extended_claim_of(pod)
        if special is not None:
            self._store.remove(special)
        self._store.modify(pod, _forget_devices)

    def deallocate(self, consumer: Obj, plan: Plan) -> bool:
        """Undo an allocation that keeps a pod from running and that nobody else uses.

        PostFilter of the plugin: a claim that was allocated for another node.

        Args:
            consumer: the pod, or its PodGroup.

        Returns whether there was one.
        """
        for claim in plan.unavailable:
            users = claim["status"].get("reservedFor") or []
            if all(user["uid"] == uid_of(consumer) for user in users):
                self._store.modify(claim, _deallocate)
                return True
        return False

    def remove_consumer(self, claim: Obj, consumer: Obj) -> None:
        """Take a pod or PodGroup out of ``status.reservedFor``; the allocation stays."""
        self._store.modify(claim, lambda new: _remove_consumer(new, uid_of(consumer)))

    def report_error(self, pod: Obj, message: str) -> None:
        """Say that an error kept a pod from being scheduled, and try it again after a while.

        The delay doubles with each error that follows another (``getBackoffTime`` of
        pkg/scheduler/backend/queue/backoff_queue.go).
        """
        previous = self._backoffs.get(uid_of(pod))
        error_count = previous.error_count + 1 if previous else 1
        delay = min(_FIRST_BACKOFF * 2 ** (error_count - 1), _LONGEST_BACKOFF)
        self._backoffs[uid_of(pod)] = Backoff(error_count, self._cluster.clock.wake_in(delay))
        self.report_failure(pod, "SchedulerError", message)

    def report_pre_bind_error(self, pod: Obj, problem: str) -> None:
        """Say that PreBind of the plugin failed for a pod that had a node."""
        self.report_error(pod, f'running PreBind plugin "DynamicResources": {problem}')

    def report_unschedulable(self, pod: Obj, message: str) -> None:
        """Say that there is no place for a pod; it is tried again when something changes."""
        self._backoffs.pop(uid_of(pod), None)
        self.report_failure(pod, "Unschedulable", message)

    def backoff_end(self, pod: Obj) -> float | None:
        """Return until when a pod waits after an error, None if it had none at last."""
        backoff = self._backoffs.get(uid_of(pod))
        return backoff.until if backoff else None

    def keep_backoffs(self, pod_uids: Collection[str]) -> None:
        """Forget the errors of all pods but these."""
        self._backoffs = {uid: self._backoffs[uid] for uid in self._backoffs if uid in pod_uids}

    def report_failure(self, pod: Obj, reason: str, message: str) -> None:
        """Say on the pod and in an event why it was not scheduled."""

        def failed(new: Obj) -> None:
            condition = {
                "type": "PodScheduled",
                "observedGeneration": new["metadata"]["generation"],
                "status": "False",
                "reason": reason,
                "message": message,
                "lastProbeTime": None,
            }
            set_condition(new["status"], condition, self._cluster.clock.format_timestamp())

        pod = self._store.modify(pod, failed)
        self._cluster.record_event(pod, "Warning", "FailedScheduling", message, KUBE_SCHEDULER)

    def reserve_claim(self, pod: Obj, claim: Obj, allocation: Obj | None) -> Obj:
        """Reserve one claim for a pod or its group, with its allocation if it has none yet.

        Returns the claim as it is stored now.
        Raises ApiError: the API server would refuse one more consumer.
        """

        def reserve(new: Obj) -> None:
            if allocation is not None:
                finalizers = new["metadata"].setdefault("finalizers", [])
                if FINALIZER not in finalizers:
                    finalizers.append(FINALIZER)
                new["status"]["allocation"] = clone(allocation)
                if self._cluster.features.device_binding_and_status:
                    now = self._cluster.clock.format_timestamp()
                    new["status"]["allocation"]["allocationTimestamp"] = now
            if not self._cluster.is_reserved(new, pod):
                user = pods.consumer_reference(self._find_consumer(pod, claim))
                new["status"].setdefault("reservedFor", []).append(user)

        users = claim["status"].get("reservedFor") or []
        if len(users) >= RESERVED_FOR_MAX and not self._cluster.is_reserved(claim, pod):
            # Nothing else that the API server refuses gets here.
            reserved = clone(claim)
            reserve(reserved)
            try:
                self._api.validate_change(KINDS["ResourceClaim"], reserved, claim, status=True)
            except ApiError as error:
                where = f"{namespace_of(claim)}/{name_of(claim)}"
                message = f"add reservation to claim {where}: {error.message}"
                raise ApiError(error.code, error.reason, message) from None
        return self._store.modify(claim, reserve)

    def _find_consumer(self, pod: Obj, claim: Obj) -> Obj:
        """Return for whom a claim of a pod is reserved: by its first entry, if it has several."""
        for entry, named in self._cluster.claims_of(pod):
            if named is not None and uid_of(named) == uid_of(claim):
                return self._cluster.consumer_of(pod, entry)
        return pod


def _unnamed(claim: Obj) -> Obj:
    """Return the special claim as it is created: the API server gives it name and uid."""
    new = clone(claim)
    del new["metadata"]["name"], new["metadata"]["uid"]
    return new


def _remove_consumer(claim: Obj, uid: str) -> None:
    retain_items(claim["status"], "reservedFor", lambda user: user["uid"] != uid)


def _forget_devices(pod: Obj) -> None:
    for name in ("extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses"):
        pod["status"].pop(name, None)


def _deallocate(claim: Obj) -> None:
    for name in ("allocation", "reservedFor", "devices"):
        claim["status"].pop(name, None)
