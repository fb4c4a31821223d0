"""Defects of binding: what devices say before it, and what is taken back when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.controllers.claims import FINALIZER, ClaimController
from kubesim.scheduling.binding import Binder, Plan
from kubesim.scheduling.bindingconditions import Readiness
from kubesim.store import namespace_of, uid_of
from kubesim.world import World
from reference_allocator.extended import ANNOTATION
from tests.mutants.allocation.inputs import results
from tests.mutants.controllers.reservations import _with_first_claim
from tests.mutants.kubelet.pods import take_any_reservation
from tests.mutants.replacing import Defects, Mutation, Original, instead, part, replace
from tests.mutants.scheduler.queueing import reserve_without_pod


@instead(Binder.reserve_claim)
def no_finalizer(world: World, original: Callable[..., Obj], *args: Any) -> Obj:
    return world.cluster.store.modify(original(*args), lose_finalizer)


def lose_finalizer(claim: Obj) -> None:
    meta = claim["metadata"]
    meta["finalizers"] = [name for name in meta.get("finalizers") or [] if name != FINALIZER]
    if not meta["finalizers"]:
        del meta["finalizers"]


def binds_at_once(world: World) -> None:
    replace(world.scheduler.conditions.must_wait_for, lambda *_: False)


Conditions = dict[str, str]


def allocated_devices(
    claim: Obj, fields: Iterable[str] = ("driver", "pool", "device")
) -> Iterator[tuple[Obj, Conditions | None]]:
    """Each allocated device that must be waited for, and what is reported of it."""
    for result in results(claim["status"].get("allocation") or {}):
        if not result.get("bindingConditions"):
            continue
        reported = [
            {one["type"]: one["status"] for one in device.get("conditions") or []}
            for device in claim["status"].get("devices") or []
            if all(device.get(field) == result[field] for field in fields)
        ]
        yield result, reported[0] if reported else None


def all_true(seen: list[str]) -> bool:
    return {*seen} == {"True"}


def some_true(seen: list[str]) -> bool:
    return "True" in seen


def judged(
    ready: Callable[[list[str]], bool] = all_true,
    failed: Callable[[list[str]], bool] = some_true,
    fields: Iterable[str] = ("driver", "pool", "device"),
    failure_first: bool = True,
    first_only: bool = False,
) -> Mutation:
    """Binding conditions are judged in another way.

    ``ready``, ``failed``: of the states of a device's conditions, in their order.
    """

    def readiness(_: Callable[[Obj], Readiness], claim: Obj) -> Readiness:
        found = Readiness.READY
        for result, reported in [*allocated_devices(claim, fields)][: 1 if first_only else None]:
            seen = reported or {}
            state = [seen.get(name, "") for name in result["bindingConditions"]]
            failures = [seen.get(name, "") for name in result.get("bindingFailureConditions") or []]
            if failures and failed(failures) and (failure_first or not ready(state)):
                return Readiness.FAILED
            if not ready(state):
                found = Readiness.WAITING
        return found

    return lambda world: replace(world.scheduler.conditions.read_readiness, readiness)


def written(change: Callable[[World, Obj, bool], None]) -> Mutation:
    """Something is wrong in a claim once it is reserved; told whether it was allocated with it."""

    @instead(Binder.reserve_claim)
    def mutate(
        world: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
    ) -> Obj:
        stored = original(pod, claim, allocation)
        new = allocation is not None
        return world.cluster.store.modify(stored, lambda claim: change(world, claim, new))

    return mutate


def timestamp_of_last_pod(world: World, claim: Obj, _: bool) -> None:
    if "allocationTimestamp" in claim["status"]["allocation"]:
        now = world.cluster.clock.format_timestamp()
        claim["status"]["allocation"]["allocationTimestamp"] = now


def no_timestamp(_: World, claim: Obj, __: bool) -> None:
    claim["status"]["allocation"].pop("allocationTimestamp", None)


def unreserving(world: World, change: Callable[..., None]) -> None:
    """After a binding that failed something is wrong: told pod, claim, and users before."""
    store = world.cluster.store

    def unreserve(original: Callable[[Obj], None], pod: Obj) -> None:
        before = {
            uid_of(claim): claim["status"].get("reservedFor") or []
            for _, claim in world.cluster.claims_of(pod)
            if claim is not None and pods.is_reserved(claim, pod)
        }
        original(pod)
        for uid, users in before.items():
            claim = store.by_uid(uid)
            if claim is not None:
                store.modify(claim, partial(change, pod, users=users))

    replace(world.scheduler.binder.unreserve, unreserve)


def unreserve_all(_: Obj, claim: Obj, *, users: list[Obj]) -> None:
    assert users
    for field in ("reservedFor", "allocation", "devices"):  # it is free, as nobody has it
        claim["status"].pop(field, None)


def extended_claims_stay(world: World) -> None:
    """What was made for extended resources, and has its devices, stays when binding fails."""
    store = world.cluster.store

    def discard_stale(original: Callable[[Obj], bool], pod: Obj) -> bool:
        claims = store.all("ResourceClaim", namespace_of(pod))
        own = [claim for claim in claims if pods.is_controlled_by(claim, pod)]
        return not any("allocation" in claim["status"] for claim in own) and original(pod)

    replace(world.scheduler.discard_stale, discard_stale)

    def unreserve(original: Callable[[Obj], None], pod: Obj) -> None:
        def forget(new: Obj) -> None:
            new["status"].pop("extendedResourceClaimStatus", None)

        original(store.modify(pod, forget))

    replace(world.scheduler.binder.unreserve, unreserve)


def _keeps_claims_of_earlier_attempts(world: World) -> None:
    """A claim for extended resources that the pod's status does not name is not looked for."""
    replace(world.scheduler.discard_stale, lambda *_: False)


def stale(is_stale: Callable[[Obj, Obj], bool]) -> Mutation:
    """A scheduler takes other claims for what an earlier attempt left: by claim and pod."""

    def mutate(world: World) -> None:
        store = world.cluster.store

        def discard_stale(original: Callable[[Obj], bool], pod: Obj) -> bool:
            found = original(pod)
            for claim in store.all("ResourceClaim", namespace_of(pod)):
                if is_stale(claim, pod):
                    store.remove(claim)
                    found = True
            return found

        replace(world.scheduler.discard_stale, discard_stale)

    return mutate


def _of_another_pod(claim: Obj, pod: Obj) -> bool:
    marks = claim["metadata"].get("annotations") or {}
    is_held = bool(claim["status"].get("reservedFor"))
    return ANNOTATION in marks and not is_held and not pods.is_controlled_by(claim, pod)


def _of_the_pod_itself(claim: Obj, pod: Obj) -> bool:
    marks = claim["metadata"].get("annotations") or {}
    return not marks and pods.is_controlled_by(claim, pod)


def deallocates_for(whom: Callable[[list[Obj]], bool], keep: str = "") -> Mutation:
    """Which claims that a pod cannot use anywhere lose their allocation, by their users."""

    @instead(Binder.deallocate)
    def mutate(world: World, _: Callable[..., None], pod: Obj, plan: Plan) -> None:
        store = world.cluster.store
        for claim in plan.unavailable:
            users = claim["status"].get("reservedFor") or []
            if whom([user for user in users if user["uid"] != uid_of(pod)]):
                store.modify(claim, lambda new: lose(new, keep))
                return

    return mutate


def lose(claim: Obj, keep: str) -> None:
    for field in {"allocation", "reservedFor", "devices"} - {keep}:
        claim["status"].pop(field, None)


def forgets_reservation(world: World) -> None:
    reserve_without_pod(world)
    take_any_reservation(world)
    replace(part(world, ClaimController).reserve_for_pod, lambda *_: None)


@instead(Binder.unreserve)
def _unreserves_first(_: World, original: Callable[[Obj], None], pod: Obj) -> None:
    original(_with_first_claim(pod) if pod["spec"].get("resourceClaims") else pod)


@instead(Binder.unreserve)
def _keeps_status(world: World, original: Callable[[Obj], None], pod: Obj) -> None:
    """The status goes on naming the claim for extended resources that is deleted."""
    field = "extendedResourceClaimStatus"
    original(pod)
    if field in pod["status"]:
        stored = world.cluster.store.by_uid(uid_of(pod)) or pod
        status = {field: pod["status"][field]}
        world.cluster.store.modify(stored, lambda new: new["status"].update(status))


def _names_first_claim(world: World) -> None:
    """Of several attempts the first decides which claim the pod's status names."""
    field = "extendedResourceClaimStatus"
    first: dict[str, Obj] = {}

    def bind(original: Callable[[Obj, str], None], pod: Obj, node: str) -> None:
        if field in pod["status"]:
            named = {field: first.setdefault(uid_of(pod), pod["status"][field])}
            pod = world.cluster.store.modify(pod, lambda new: new["status"].update(named))
        original(pod, node)

    def report_waiting(original: Callable[[Obj, str], None], pod: Obj, node: str) -> None:
        if field in pod["status"]:
            first.setdefault(uid_of(pod), pod["status"][field])
        original(pod, node)

    replace(world.scheduler.binder.bind, bind)
    replace(world.scheduler.binder.report_waiting, report_waiting)


@instead(Binder.deallocate)
def _gives_up_unreserved(_: World, original: Original, pod: Obj, plan: Plan) -> None:
    """An allocation that the pod itself has reserved is not given up."""
    plan.unavailable = [c for c in plan.unavailable if not c["status"].get("reservedFor")]
    original(pod, plan)


@instead(Binder.report_waiting)
def prepares_before_binding(
    world: World, original: Callable[[Obj, str], None], pod: Obj, node: str
) -> None:
    """The node prepares the claims of a pod while the scheduler waits for its devices."""
    for kubelet in world.kubelets:
        if kubelet.node == node and kubelet.driver is not None:
            for _, claim in kubelet.dra_manager.claims_of(pod):
                if claim is not None:
                    kubelet.driver.prepare(claim)
    original(pod, node)


DEFECTS: Defects = {
    "binds-at-once": binds_at_once,
    "no-finalizer": no_finalizer,
    "a-failure-of-some-other-device-counts": judged(fields=("driver",)),
    "allocations-have-no-time": written(no_timestamp),
    "binds-though-devices-failed": judged(failure_first=False),
    "deallocates-claims-of-other-pods": deallocates_for(lambda _: True),
    "deallocation-keeps-reports-of-devices": deallocates_for(lambda users: not users, "devices"),
    "devices-are-ready-by-any-status": judged(ready=all),
    "extended-claims-outlive-attempts": extended_claims_stay,
    "extended-claims-outlive-schedulers": _keeps_claims_of_earlier_attempts,
    "stale-claims-need-no-annotation": stale(_of_the_pod_itself),
    "stale-extended-claims-of-others-go": stale(_of_another_pod),
    "failed-bindings-keep-the-pods-extended-status": _keeps_status,
    "extended-status-names-the-first-claim": _names_first_claim,
    "failed-bindings-release-for-all": lambda world: unreserving(world, unreserve_all),
    "gives-up-when-all-failures-are-true": judged(failed=all_true),
    "later-pods-renew-the-time-of-allocation": written(timestamp_of_last_pod),
    "forgets-reservation": forgets_reservation,
    "unreserves-the-first-claim": _unreserves_first,
    "allocations-of-the-pod-itself-are-kept": _gives_up_unreserved,
    "node-prepares-before-binding": prepares_before_binding,
}
