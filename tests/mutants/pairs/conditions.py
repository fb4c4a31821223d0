"""Defects of binding conditions where devices or claims have another feature."""

from __future__ import annotations

from collections.abc import Callable

from conformance.targets.reference.controllers.eviction import EvictionController
from conformance.targets.reference.controllers.evictor import Eviction, Evictor
from conformance.targets.reference.store import uid_of
from conformance.targets.reference.world import World
from conformance.targets.seam.values import Obj, User
from tests.mutants.allocator.inputs import devices, reads, results, writes
from tests.mutants.replacing import Defects, Mutation, part, replace


def waits_only_for(counts: Callable[[Obj, Obj], bool]) -> Mutation:
    """Binding conditions of the other devices do not count: called with the first and each."""

    def change(allocation: Obj) -> None:
        found = results(allocation)
        for result in found:
            if not counts(found[0], result):
                result.pop("bindingConditions", None)
                result.pop("bindingFailureConditions", None)

    return writes(change)


def forgives_what_was_before(world: World) -> None:
    """A rule that is there before a pod is bound does not evict it any more."""
    waited: set[str] = set()

    def evictions(
        original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
    ) -> list[Eviction]:
        if not pod["spec"].get("nodeName"):
            waited.add(uid_of(pod))
        return [] if uid_of(pod) in waited else original(evictor, pod)

    replace(part(world, EvictionController), "evictions", evictions)


def only_of_bound_pods(world: World) -> None:
    """A driver has no right for its node before a pod that uses the claim is there."""
    authorizer = world.handler.authorizer

    def devices(
        original: Callable[..., list[object]], user: User, wanted: object, new: Obj, old: Obj
    ) -> list[object]:
        users = {one["uid"] for one in new.get("reservedFor") or []}
        pods = [pod for pod in world.cluster.store.all("Pod") if uid_of(pod) in users]
        if not any(pod["spec"].get("nodeName") for pod in pods) and "allocation" in new:
            new = {**new, "allocation": {**new["allocation"], "nodeSelector": None}}
        return original(user, wanted, new, old)

    replace(authorizer, "_devices", devices)


def free_until_bound(world: World) -> None:
    """Devices that a pod waits for consume no counters yet."""

    def change(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            if device.get("bindingConditions"):
                device.pop("consumesCounters", None)

    reads("resource_slices", change)(world)


DEFECTS: Defects = {
    "waiting-devices-consume-no-counters": free_until_bound,
    "driver-has-no-right-before-a-pod-is-bound": only_of_bound_pods,
    "monitors-do-not-wait-for-conditions": waits_only_for(lambda _, one: "adminAccess" not in one),
    "only-the-first-device-is-waited-for": waits_only_for(lambda first, one: one is first),
    "only-the-first-driver-is-waited-for": waits_only_for(
        lambda first, one: one["driver"] == first["driver"]
    ),
    "rules-miss-pods-that-were-not-bound": forgives_what_was_before,
}
