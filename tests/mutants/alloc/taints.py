"""Defects in tolerations, and in what DeviceTaintRules taint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kube.values import Obj
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.listers import Listers
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.rules.taints import apply_taint_rules
from tests.mutants.allocator.inputs import Answer, changed, devices, results, wanted
from tests.mutants.replacing import Defects, Mutation, instead


def tolerations(change: Callable[[list[Obj]], list[Obj]]) -> Mutation:
    """Tolerations mean something else; the allocation tells what was said."""

    @instead(Filter.allocate)
    def mutate(
        _: World, original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
    ) -> Answer:
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


DEFECTS: Defects = {
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
}
