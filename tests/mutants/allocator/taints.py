"""Defects in how the scheduler reads taints and tolerations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kube.values import Obj
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from tests.mutants.allocator.inputs import (
    Answer,
    Change,
    changed,
    devices,
    reads,
    reads_claims,
    results,
    wanted,
    writes,
)
from tests.mutants.replacing import Defects, Mutation, instead


def tolerations(change: Change) -> Mutation:
    """Tolerations of requests cover more than they say."""

    @instead(Filter.allocate)
    def mutate(
        _: World, original: Callable[..., Answer], allocator: Any, node: Obj, claims: Sequence[Obj]
    ) -> Answer:
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


DEFECTS: Defects = {
    "admin-access-tolerates-taints": reads_claims(admin_tolerates),
    "empty-key-tolerates-nothing": reads_claims(only_with_key),
    "ignores-toleration-effect": tolerations(of_any_effect),
    "ignores-toleration-key": tolerations(of_any_key),
    "ignores-toleration-value": tolerations(of_any_value),
    "loses-tolerations": writes(lose_tolerations),
    "noexecute-admits-pods": reads(Listers.resource_slices, read_as("NoExecute", "None")),
    "none-keeps-pods-away": reads(Listers.resource_slices, read_as("None", "NoSchedule")),
    "only-first-taint": reads(Listers.resource_slices, first_taint),
}
