"""Defects of taints and DeviceTaintRules where devices or claims have another feature."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from kube.slices import results_of
from kube.values import Obj
from kubesim.controllers.eviction import EvictionController
from kubesim.controllers.evictor import Eviction, Evictor
from kubesim.scheduling.listers import Listers
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.allocation import inputs
from tests.mutants.allocation.inputs import constraints_of, devices, reads, reads_claims
from tests.mutants.replacing import Defects, Mutation, part, replace

Evictions = Callable[[Evictor, Obj], list[Eviction]]


def evicts(change: Callable[[Evictions, Evictor, Obj], list[Eviction]]) -> Mutation:
    def mutate(world: World) -> None:
        replace(part(world, EvictionController).list_evictions, change)

    return mutate


def claims_of(evictor: Evictor, pod: Obj) -> list[Obj]:
    return [claim for _, claim in evictor.cluster.claims_of(pod) if claim is not None]


def one_share_only(world: World) -> None:
    """Of the pods that share a device the first one is evicted."""
    first: dict[tuple[str, str], str] = {}

    def evictions(original: Evictions, evictor: Evictor, pod: Obj) -> list[Eviction]:
        found = original(evictor, pod)
        shares = [
            r for claim in claims_of(evictor, pod) for r in results_of(claim) if "shareID" in r
        ]
        if found and shares:
            device = shares[0]["pool"], shares[0]["device"]
            return found if first.setdefault(device, uid_of(pod)) == uid_of(pod) else []
        return found

    replace(part(world, EvictionController).list_evictions, evictions)


def by_name_only(original: Evictions, evictor: Evictor, pod: Obj) -> list[Eviction]:
    rules = []
    for rule in evictor.rules:
        selector = {**(rule["spec"].get("deviceSelector") or {})}
        if "device" in selector:
            selector.pop("driver", None)
        rules.append({**rule, "spec": {**rule["spec"], "deviceSelector": selector}})
    return original(dataclasses.replace(evictor, rules=rules), pod)


def who_tolerates_once(original: Evictions, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """A toleration of one request keeps the pod on the devices of all."""
    for claim in claims_of(evictor, pod):
        tolerant = [bool(result.get("tolerations")) for result in results_of(claim)]
        if any(tolerant) and not all(tolerant):
            return []
    return original(evictor, pod)


def spares_monitors(original: Evictions, evictor: Evictor, pod: Obj) -> list[Eviction]:
    watched = [r for c in claims_of(evictor, pod) for r in results_of(c) if r.get("adminAccess")]
    return [] if watched else original(evictor, pod)


def pooled(claim: Obj) -> None:
    exact = [request["exactly"] for request in inputs.requests(claim) if request.get("exactly")]
    every = [one for item in exact for one in item.get("tolerations") or []]
    for item in exact:
        item["tolerations"] = every


def tainted(world: World) -> set[tuple[str, str]]:
    return {
        (item["spec"]["pool"]["name"], device["name"])
        for item in world.cluster.list_slices()
        for device in devices(item)
        if device.get("taints")
    }


def forgets_shares(world: World) -> None:
    def change(claim: Obj) -> None:
        for result in results_of(claim):
            if (result["pool"], result["device"]) in tainted(world):
                result.pop("consumedCapacity", None)

    reads(Listers.resource_claims, change)(world)


def any_tainted_device(world: World, claim: Obj, _: Obj) -> bool:
    return bool(tainted(world)) and any("matchAttribute" in one for one in constraints_of(claim))


def of_the_same_name(slices: list[Obj]) -> list[Obj]:
    """Devices of every driver have the taints of those of their name."""
    taints: dict[tuple[str, str], list[Obj]] = {}
    for item in slices:
        for device in devices(item):
            key = item["spec"]["pool"]["name"], device["name"]
            taints.setdefault(key, []).extend(device.get("taints") or [])

    def change(item: Obj) -> None:
        for device in devices(item):
            device["taints"] = taints[item["spec"]["pool"]["name"], device["name"]]

    return inputs.changed(slices, change)


def without_rules_for_all(world: World) -> None:
    """allocationMode All reads devices as their drivers publish them."""

    def allocate(
        original: Callable[..., inputs.Answer], allocator: object, node: Obj, claims: Sequence[Obj]
    ) -> inputs.Answer:
        found = original(allocator, node, claims)
        modes = [one.get("allocationMode") for claim in claims for one in inputs.wanted(claim)]
        if found[0] or "All" not in modes:
            return found
        with_tolerations = inputs.changed(claims, tolerates_rules)
        return original(allocator, node, with_tolerations)

    def tolerates_rules(claim: Obj) -> None:
        rules = world.cluster.store.all("DeviceTaintRule")
        for item in inputs.wanted(claim):
            item["tolerations"] = [
                {"key": rule["spec"]["taint"]["key"], "operator": "Exists"} for rule in rules
            ]

    replace(world.scheduler.filter.allocate, allocate)


DEFECTS: Defects = {
    "all-mode-passes-over-rules": without_rules_for_all,
    "taints-are-for-every-driver": inputs.reads_all(Listers.resource_slices, of_the_same_name),
    "constraints-give-up-over-tainted-devices": inputs.refuses(any_tainted_device),
    "evicts-one-share-of-a-device": one_share_only,
    "monitors-stay-on-tainted-devices": evicts(spares_monitors),
    "rules-are-for-every-driver": evicts(by_name_only),
    "tainted-devices-forget-their-shares": forgets_shares,
    "tolerations-keep-pods-on-other-requests-devices": evicts(who_tolerates_once),
    "tolerations-of-a-claim-are-for-all-requests": reads_claims(pooled),
}
