"""Defects of extended resources where their devices have another feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim.scheduling.binding import Binder
from kubesim.scheduling.bindingconditions import WaitingPods
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.listers import Listers
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.extended import ANNOTATION
from tests.mutants.allocation.inputs import devices, reads_all, refuses_all, results
from tests.mutants.replacing import Defects, Mutation, Original, instead


def is_special(claim: Obj) -> bool:
    """Whether the scheduler has made the claim for extended resources."""
    return ANNOTATION in (claim["metadata"].get("annotations") or {})


def asks(change: Callable[[World, list[Obj]], None]) -> Mutation:
    """The claim for extended resources asks for something else."""

    @instead(Filter.extended_claim)
    def mutate(world: World, original: Original, *args: Any) -> Any:
        claim, mappings = original(*args)
        if claim is not None:
            change(world, claim["spec"]["devices"]["requests"])
        return claim, mappings

    return mutate


def whole_capacity(world: World, requests: list[Obj]) -> None:
    for item in world.cluster.list_slices():
        for device in devices(item):
            if device.get("allowMultipleAllocations"):
                amounts = {name: one["value"] for name, one in device["capacity"].items()}
                for request in requests:
                    request["exactly"]["capacity"] = {"requests": amounts}


def every_taint(_: World, requests: list[Obj]) -> None:
    for request in requests:
        request["exactly"]["tolerations"] = [{"operator": "Exists"}]


def one_class(_: World, requests: list[Obj]) -> None:
    for request in requests:
        request["exactly"]["deviceClassName"] = requests[0]["exactly"]["deviceClassName"]


def forgets_partitions(world: World) -> None:
    """What consumes counters is forgotten as soon as it belongs to such a claim."""

    def without(claims: list[Obj]) -> list[Obj]:
        partitions = {
            (item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"])
            for item in world.cluster.list_slices()
            for device in devices(item)
            if device.get("consumesCounters")
        }

        def has_one(claim: Obj) -> bool:
            found = results(claim["status"].get("allocation") or {})
            return any((r["driver"], r["pool"], r["device"]) in partitions for r in found)

        return [claim for claim in claims if not (is_special(claim) and has_one(claim))]

    reads_all(Listers.resource_claims, without)(world)


@instead(Binder.reserve_claim)
def loses_config(
    _: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
) -> Obj:
    if allocation is not None and is_special(claim):
        allocation = clone(allocation)
        allocation["devices"].pop("config", None)
    return original(pod, claim, allocation)


@instead(WaitingPods._claims)
def bound_at_once(_: World, original: Callable[[Obj], list[Obj]], pod: Obj) -> list[Obj]:
    return [claim for claim in original(pod) if not is_special(claim)]


def watched_is_taken(world: World, pairs: list[tuple[Obj, Obj]]) -> bool:
    watched = [
        (result["pool"], result["device"])
        for claim in world.cluster.store.all("ResourceClaim")
        for result in results(claim["status"].get("allocation") or {})
        if result.get("adminAccess")
    ]
    return any(
        (result["pool"], result["device"]) in watched
        for claim, allocation in pairs
        if is_special(claim)
        for result in results(allocation)
    )


DEFECTS: Defects = {
    "extended-resources-lose-config": loses_config,
    "extended-resources-are-of-one-class": asks(one_class),
    "extended-resources-do-not-wait-for-conditions": bound_at_once,
    "extended-resources-forget-counters": forgets_partitions,
    "extended-resources-get-no-watched-device": refuses_all(watched_is_taken),
    "extended-resources-take-whole-capacity": asks(whole_capacity),
    "extended-resources-tolerate-taints": asks(every_taint),
}
