"""Defects of the scheduler: which pods it looks at, and what it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kube.errors import ApiError
from kube.values import Obj
from kubesim import pods
from kubesim.controllers.claims import FINALIZER
from kubesim.scheduling.binding import Plan
from kubesim.scheduling.bindingconditions import Readiness
from kubesim.scheduling.filtering import SchedulingError
from kubesim.scheduling.nodefit import Misfit, NodeAllocatable
from kubesim.store import name_of, uid_of
from kubesim.world import World
from reference_allocator.api.limits import RESERVED_FOR_MAX
from tests.mutants.allocator.inputs import changed, devices
from tests.mutants.replacing import Defects, Mutation, instead, replace

Ready = Callable[[Obj], list[Obj] | None]


@instead("scheduler.ready_claims")
def take_any_claim(world: World, _original: Ready, pod: Obj) -> list[Obj] | None:
    """The scheduler does not care whether a generated claim is the pod's own."""
    found = [claim for _, claim in world.cluster.claims_of(pod)]
    ready = [claim for claim in found if claim is not None and not pods.is_deleted(claim)]
    return ready if len(ready) == len(found) else None


@instead("scheduler.ready_claims")
def take_deleted_claims(world: World, original: Ready, pod: Obj) -> list[Obj] | None:
    found = [claim for _, claim in world.cluster.claims_of(pod) if claim is not None]
    if found and any(map(pods.is_deleted, found)):
        return found
    return original(pod)


@instead("scheduler.ready_claims")
def take_no_claim_of_others(_: World, original: Ready, pod: Obj) -> list[Obj] | None:
    found = original(pod)
    owners = [owner for one in found or () for owner in one["metadata"].get("ownerReferences", ())]
    others = any(one["kind"] == "Pod" and one["uid"] != uid_of(pod) for one in owners)
    return None if others else found


@instead("scheduler.binder.reserve_claim")
def reserve_without_pod(
    world: World, original: Callable[..., Obj], pod: Obj, claim: Obj, *args: Any
) -> Obj:
    reserved = original(pod, claim, *args)
    if pods.is_reserved(claim, pod):
        return reserved
    return world.cluster.store.modify(reserved, lambda new: lose_user(new, uid_of(pod)))


def lose_user(claim: Obj, uid: str) -> None:
    users = [user for user in claim["status"]["reservedFor"] if user["uid"] != uid]
    claim["status"]["reservedFor"] = users
    if not users:
        del claim["status"]["reservedFor"]


@instead("scheduler.binder.reserve_claim")
def no_finalizer(world: World, original: Callable[..., Obj], *args: Any) -> Obj:
    return world.cluster.store.modify(original(*args), lose_finalizer)


def lose_finalizer(claim: Obj) -> None:
    meta = claim["metadata"]
    meta["finalizers"] = [name for name in meta.get("finalizers") or [] if name != FINALIZER]
    if not meta["finalizers"]:
        del meta["finalizers"]


def says_no_reason(world: World) -> None:
    replace(world.scheduler.binder, "report_failure", lambda *_: None)


@instead("scheduler.binder.report_failure")
def says_it_otherwise(
    _: World, original: Callable[..., None], pod: Obj, reason: str, _message: str
) -> None:
    original(pod, reason, "there is no place for this pod")


def misses_new_claim(world: World) -> None:
    missed = set()

    def ready_claims(original: Ready, pod: Obj) -> list[Obj] | None:
        claims = original(pod)
        if claims is None:
            missed.add(uid_of(pod))
        return None if uid_of(pod) in missed else claims

    replace(world.scheduler, "ready_claims", ready_claims)


def misses(*events: str) -> Mutation:
    """These events do not make the scheduler try again."""

    def mutate(world: World) -> None:
        def state(original: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
            return {event: seen for event, seen in original().items() if event not in events}

        assert set(events) <= set(world.scheduler.observe_cluster())
        replace(world.scheduler, "observe_cluster", state)

    return mutate


def sees_only(event: str, change: Callable[[Obj], object]) -> Mutation:
    """Of a kind, only these changes make the scheduler try again."""

    @instead("scheduler.observe_cluster")
    def mutate(world: World, original: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        seen = [change(obj) for obj in world.cluster.store.all(event)]
        return {**original(), event: sorted(filter(None, map(str, seen)))}

    return mutate


def revision_if_changed(obj: Obj) -> object:
    meta = obj["metadata"]
    return meta["resourceVersion"] if meta.get("generation", 1) > 1 else ""


def spec_without(lose: Callable[[Obj], object]) -> Callable[[Obj], object]:
    """What a slice says, without something in its devices."""

    def change(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            lose(device)

    def spec(resource_slice: Obj) -> object:
        (copy,) = changed([resource_slice], change)
        return name_of(copy), copy["spec"]

    return spec


def tainted_devices(resource_slice: Obj) -> object:
    """How many there are, and not which."""
    tainted = sum(bool(device.get("taints")) for device in devices(resource_slice))
    return spec_without(lambda device: device.pop("taints", None))(resource_slice), tainted


@instead("scheduler.filter.check_node")
def no_sharing(
    _: World, original: Callable[..., Sequence[Misfit]], pod: Obj, plan: Plan, *args: Any
) -> Sequence[Misfit]:
    for claim in plan.claims:
        if claim["status"].get("reservedFor") and not pods.is_reserved(claim, pod):
            return [Misfit("resourceclaim in use")]
    return original(pod, plan, *args)


@instead("scheduler.binder.reserve_claim")
def beyond_the_limit(
    _: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
) -> Obj:
    try:
        return original(pod, claim, allocation)
    except ApiError:
        return claim


@instead("scheduler.filter.pre_filter")
def full_claims_fit_nowhere(
    _: World, original: Callable[..., str | None], claims: Sequence[Obj]
) -> str | None:
    """The scheduler counts consumers itself, so that the pod is unschedulable and not in error."""
    full = any(len(c["status"].get("reservedFor") or ()) >= RESERVED_FOR_MAX for c in claims)
    return "resourceclaim in use" if full else original(claims)


def ignores_node_resources(world: World) -> None:
    replace(world.scheduler.filter, "read_node_allocatable", lambda _: None)


class SharedNodeAllocatable(NodeAllocatable):
    """Every claim may be used by several pods."""

    def check_sharing(self, _claims: Iterable[tuple[Obj, bool]], _node: Obj) -> list[Misfit]:
        return []


class OwnNodeAllocatable(NodeAllocatable):
    """A pod has a node for itself."""

    def check_claims(
        self, pod: Obj, claims: Any, node: Obj, _others: Any
    ) -> tuple[list[Obj], list[Misfit]]:
        return super().check_claims(pod, claims, node, [])


def counts_node_resources(kind: Callable[..., NodeAllocatable]) -> Mutation:
    """What devices take of a node's own resources is counted in another way."""

    @instead("scheduler.filter.read_node_allocatable")
    def mutate(_: World, original: Callable[[], NodeAllocatable | None]) -> NodeAllocatable | None:
        found = original()
        return found and kind(found.slices)

    return mutate


def ignores_node_of_allocated(world: World) -> None:
    def anywhere(claim: Obj) -> None:
        claim["status"].get("allocation", {}).pop("nodeSelector", None)

    def unavailable(original: Callable[..., Any], pod: Obj, plan: Plan, *args: Any) -> Any:
        other = Plan(changed(plan.claims, anywhere))
        found = original(pod, other, *args)
        plan.unavailable += other.unavailable
        return found

    replace(world.scheduler.filter, "_unavailable", unavailable)


@instead("scheduler.filter.allocate")
def ties_network_claims(
    _: World, original: Callable[..., Any], allocator: Any, node: Obj, claims: Any
) -> Any:
    """A claim that can be used everywhere is tied to the node of the claims beside it."""
    allocations, found = original(allocator, node, claims)
    name = node["metadata"]["name"]
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    here: Obj = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    if len(allocations) > 1:
        allocations = tuple({"nodeSelector": here, **item} for item in allocations)
    return allocations, found


@instead("scheduler.filter.filter")
def compares_nodes_by_allocated_claims(
    _: World, original: Callable[..., Any], pod: Obj, plan: Plan, nodes: Sequence[Obj]
) -> Any:
    """As kubernetes#139016: nodes are compared by claims that are allocated already, too."""
    unfit = original(pod, plan, nodes)
    if plan.node is not None and 0 < len(plan.to_allocate) < len(plan.claims):
        other = Plan(plan.claims)
        original(pod, other, [node for node in nodes if node is not plan.node])
        if other.node is not None:
            raise SchedulingError("number of allocations is smaller than number of claims")
    return unfit


def binds_at_once(world: World) -> None:
    replace(world.scheduler.conditions, "must_wait_for", lambda *_: False)


@instead("scheduler.conditions.read_readiness")
def ignores_binding_failure(
    _: World, original: Callable[[Obj], Readiness], claim: Obj
) -> Readiness:
    found = original(claim)
    return Readiness.WAITING if found is Readiness.FAILED else found


@instead("scheduler.filter.allocate")
def ignores_declared_features(
    _: World, original: Callable[..., Any], allocator: Any, node: Obj, claims: Any
) -> Any:
    status = {**node["status"], "declaredFeatures": ["DRAOptionalNodeOperations"]}
    return original(allocator, {**node, "status": status}, claims)


def prefers_no_alternative(world: World) -> None:
    replace(world.scheduler.filter, "score", lambda *_: 0)


DEFECTS: Defects = {
    "takes-no-generated-claims-of-others": take_no_claim_of_others,
    "takes-deleted-claims": take_deleted_claims,
    "binds-at-once": binds_at_once,
    "compares-nodes-by-allocated-claims": compares_nodes_by_allocated_claims,
    "ignores-binding-failure": ignores_binding_failure,
    "ignores-node-of-allocated-claims": ignores_node_of_allocated,
    "ignores-declared-features": ignores_declared_features,
    "prefers-no-alternative": prefers_no_alternative,
    "misses-changed-node": misses("Node"),
    "ties-network-claims-to-a-node": ties_network_claims,
    "ignores-node-resources": ignores_node_resources,
    "misses-lifted-taint": misses("DeviceTaintRule"),
    "misses-new-claim": misses_new_claim,
    "misses-changed-class": sees_only("DeviceClass", name_of),
    "misses-changed-capacity": sees_only(
        "ResourceSlice", spec_without(lambda device: device.pop("capacity", None))
    ),
    "misses-taints-that-move": sees_only("ResourceSlice", tainted_devices),
    "misses-changed-slice": sees_only("ResourceSlice", name_of),
    "misses-new-class": sees_only("DeviceClass", revision_if_changed),
    "misses-new-slice": misses("ResourceSlice"),
    "misses-added-slice": sees_only("ResourceSlice", revision_if_changed),
    "misses-release": misses("ResourceClaim", "bound pods"),
    "no-finalizer": no_finalizer,
    "full-claims-fit-nowhere": full_claims_fit_nowhere,
    "no-sharing": no_sharing,
    "schedules-beyond-the-limit": beyond_the_limit,
    "says-it-in-other-words": says_it_otherwise,
    "says-no-reason": says_no_reason,
    "forgets-node-resources-of-others": counts_node_resources(OwnNodeAllocatable),
    "shares-node-resources": counts_node_resources(SharedNodeAllocatable),
}
