"""Defects in how the scheduler reads taints, tolerations and DeviceTaintRules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim.nodes.driver import SlicePublisher
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.listers import Listers
from kubesim.store import clone, name_of, uid_of
from kubesim.world import World
from reference_allocator.rules.taints import apply_taint_rules
from tests.mutants.allocation.inputs import (
    Allocate,
    Answer,
    Change,
    Claims,
    changed,
    devices,
    reads,
    reads_claims,
    results,
    wanted,
    writes,
)
from tests.mutants.replacing import Defects, Mutation, instead, part, replace


def taints_slices(world: World) -> None:
    """What rules taint is tainted in the slices themselves, but for those of a node's driver."""
    published = part(world, SlicePublisher)._stored
    before: dict[str, list[Obj]] = {}

    def resource_slices(original: Callable[[], list[Obj]]) -> list[Obj]:
        found = original()
        for stored in world.cluster.store.all("ResourceSlice"):
            seen = next(item for item in found if name_of(item) == name_of(stored))
            if name_of(stored) not in published and uid_of(stored) not in before:
                if devices(seen) != devices(stored):
                    before[uid_of(stored)] = devices(stored)
                    write(stored, devices(seen))
            elif uid_of(stored) in before and not world.cluster.store.all("DeviceTaintRule"):
                write(stored, before.pop(uid_of(stored)))
        return original()

    def write(stored: Obj, wanted: list[Obj]) -> None:
        world.cluster.store.modify(
            stored, lambda new: new["spec"].update(devices=[clone(device) for device in wanted])
        )

    replace(world.scheduler.filter.listers.resource_slices, resource_slices)


def tolerations(change: Callable[[list[Obj]], list[Obj]]) -> Mutation:
    """Tolerations mean something else; the allocation tells what was said."""

    @instead(Filter.allocate)
    def mutate(_: World, original: Allocate, allocator: Any, node: Obj, claims: Claims) -> Answer:
        said: dict[str, list[Obj]] = {}

        def read(claim: Obj) -> None:
            for item in wanted(claim):
                if found := item.get("tolerations"):
                    item["tolerations"] = change([*map(clone, found)])
                    said[str(item["tolerations"])] = found

        def tell(allocation: Obj) -> None:
            for result in results(allocation):
                found = result.get("tolerations") or []
                result["tolerations"] = said.get(str(found), found)
                if not result["tolerations"]:
                    del result["tolerations"]

        allocations, misfits = original(allocator, node, changed(claims, read))
        return tuple(changed(allocations, tell)), misfits

    return mutate


def each(change: Callable[[Obj], Any]) -> Mutation:
    def read(found: list[Obj]) -> list[Obj]:
        for toleration in found:
            change(toleration)
        return found

    return tolerations(read)


def no_values(toleration: Obj) -> None:
    if toleration.get("operator") == "Exists" and toleration.get("key"):
        toleration["operator"] = "Equal"


def unlimited(found: list[Obj]) -> list[Obj]:
    return [item for item in found if item.get("tolerationSeconds") is None]


def rules(change: Callable[[Obj], Any], *, sole: bool = False) -> Mutation:
    """For the scheduler, DeviceTaintRules taint other devices.

    Args:
        sole: where a rule taints a device, its own taints are gone.
    """

    @instead(Listers.resource_slices)
    def mutate(world: World, original: Callable[[], list[Obj]]) -> list[Obj]:
        store = world.cluster.store
        found = changed(store.all("DeviceTaintRule"), change)
        if not found or not world.cluster.gates.get("DRADeviceTaintRules"):
            return original()
        plain = store.all("ResourceSlice")
        tainted = [clone(dict(item)) for item in apply_taint_rules(plain, found)]
        for before, after in zip(plain, tainted, strict=True) if sole else ():
            for old, new in zip(devices(before), devices(after), strict=True):
                own = old.get("taints") or []
                new["taints"] = [x for x in new.get("taints") or [] if x not in own] or own
        return tainted

    return mutate


def selects(*fields: str) -> Callable[[Obj], None]:
    """Of a rule's selector only these are looked at."""

    def change(rule: Obj) -> None:
        selector = rule["spec"].get("deviceSelector") or {}
        if kept := {key: selector[key] for key in fields if key in selector}:
            rule["spec"]["deviceSelector"] = kept

    return change


def reads_tolerations(change: Change) -> Mutation:
    """Tolerations of requests cover more than they say."""

    @instead(Filter.allocate)
    def mutate(_: World, original: Allocate, allocator: Any, node: Obj, claims: Claims) -> Answer:
        said: list[Obj] = []

        def widen(claim: Obj) -> None:
            for item in wanted(claim):
                found = item.get("tolerations") or []
                said.extend(found)
                item["tolerations"] = [*found, *changed(found, change)]

        def tell_what_was_said(allocation: Obj) -> None:
            for result in results(allocation):
                if "tolerations" in result:
                    result["tolerations"] = [t for t in result["tolerations"] if t in said]

        allocations, misfits = original(allocator, node, changed(claims, widen))
        return tuple(changed(allocations, tell_what_was_said)), misfits

    return mutate


def of_any_effect(toleration: Obj) -> None:
    toleration.pop("effect", None)


def of_any_key(toleration: Obj) -> None:
    toleration.pop("key", None)


def of_any_value(toleration: Obj) -> None:
    toleration.pop("value", None)
    toleration["operator"] = "Exists"


def only_with_key(claim: Obj) -> None:
    for item in wanted(claim):
        item["tolerations"] = [one for one in item.get("tolerations") or [] if one.get("key")]


def admin_tolerates(claim: Obj) -> None:
    for item in wanted(claim):
        if item.get("adminAccess"):
            item["tolerations"] = [{"operator": "Exists"}]


def first_taint(resource_slice: Obj) -> None:
    for device in devices(resource_slice):
        device["taints"] = (device.get("taints") or [])[:1]


def read_as(effect: str, other: str) -> Change:
    """Taints of one effect are taken for those of another."""

    def change(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            for taint in device.get("taints") or []:
                if taint["effect"] == effect:
                    taint["effect"] = other

    return change


def lose_tolerations(allocation: Obj) -> None:
    for result in results(allocation):
        result.pop("tolerations", None)


def _whatever_its_value(toleration: Obj) -> None:
    if toleration.get("key") and not toleration.get("value"):
        toleration["operator"] = "Exists"


DEFECTS: Defects = {
    "rules-are-written-into-slices": taints_slices,
    "exists-tolerates-no-values": each(no_values),
    "limited-tolerations-admit-nobody": tolerations(unlimited),
    "only-first-toleration": tolerations(lambda found: found[:1]),
    "rules-replace-taints-of-drivers": rules(lambda _: None, sole=True),
    "rules-select-by-device-alone": rules(selects("device")),
    "rules-select-by-driver-alone": rules(selects("driver")),
    "rules-select-by-pool-alone": rules(selects("pool")),
    "rules-without-selector-taint-all": rules(
        lambda rule: rule["spec"].setdefault("deviceSelector", {})
    ),
    "admin-access-tolerates-taints": reads_claims(admin_tolerates),
    "empty-key-tolerates-nothing": reads_claims(only_with_key),
    "ignores-toleration-effect": reads_tolerations(of_any_effect),
    "ignores-toleration-key": reads_tolerations(of_any_key),
    "ignores-toleration-value": reads_tolerations(of_any_value),
    "loses-tolerations": writes(lose_tolerations),
    "noexecute-admits-pods": reads(Listers.resource_slices, read_as("NoExecute", "None")),
    "none-keeps-pods-away": reads(Listers.resource_slices, read_as("None", "NoSchedule")),
    "only-first-taint": reads(Listers.resource_slices, first_taint),
    "tolerations-without-value-cover-every-one": each(_whatever_its_value),
}
