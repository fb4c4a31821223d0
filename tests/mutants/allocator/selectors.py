"""Defects of selectors and constraints."""

from __future__ import annotations

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from tests.mutants.allocator.inputs import Change, devices, reads, reads_claims, requests, wanted
from tests.mutants.replacing import Defects, Mutation


def first_class_selector(device_class: Obj) -> None:
    spec = device_class.get("spec") or {}
    spec["selectors"] = (spec.get("selectors") or [])[:1]


def no_attributes_in_class(device_class: Obj) -> None:
    spec = device_class.get("spec") or {}
    spec["selectors"] = [
        item
        for item in spec.get("selectors") or []
        if "attributes" not in item["cel"]["expression"]
    ]


def nothing_without_selectors(device_class: Obj) -> None:
    spec = device_class.setdefault("spec", {})
    if not spec.get("selectors"):
        spec["selectors"] = [{"cel": {"expression": "false"}}]


def first_request_selector(claim: Obj) -> None:
    for item in wanted(claim):
        item["selectors"] = (item.get("selectors") or [])[:1]


def constraints(change: Change) -> Mutation:
    """The constraints of claims mean something else."""

    def read(claim: Obj) -> None:
        for constraint in constraints_of(claim):
            change(constraint)

    return reads_claims(read)


def constraints_of(claim: Obj) -> list[Obj]:
    found: list[Obj] = (claim["spec"].get("devices") or {}).get("constraints") or []
    return found


def of_all_requests(constraint: Obj) -> None:
    constraint.pop("requests", None)


def only_first_constraint(claim: Obj) -> None:
    del constraints_of(claim)[1:]


def within_requests(claim: Obj) -> None:
    """Devices of different requests need not agree."""
    names = [request["name"] for request in requests(claim)]
    found = constraints_of(claim)
    found[:] = [
        {**constraint, "requests": [name]} if "matchAttribute" in constraint else constraint
        for constraint in found
        for name in constraint.get("requests") or names
    ]


def no_distinct_attribute(claim: Obj) -> None:
    found = constraints_of(claim)
    found[:] = [item for item in found if "distinctAttribute" not in item]


def no_versions(world: World) -> None:
    """A constraint on an attribute that is a version is not looked at."""
    store = world.cluster.store

    def is_kept(constraint: Obj) -> bool:
        name = (constraint.get("matchAttribute") or "/").rpartition("/")[2]
        values = [
            (device.get("attributes") or {}).get(name) or {}
            for item in store.all("ResourceSlice")
            for device in devices(item)
        ]
        return not any("version" in value for value in values)

    def change(claim: Obj) -> None:
        found = constraints_of(claim)
        found[:] = [constraint for constraint in found if is_kept(constraint)]

    reads_claims(change)(world)


DEFECTS: Defects = {
    "class-selectors-see-no-attributes": reads(Listers.device_classes, no_attributes_in_class),
    "classes-without-selectors-are-empty": reads(Listers.device_classes, nothing_without_selectors),
    "constraints-ignore-versions": no_versions,
    "constraints-hold-for-all-requests": constraints(of_all_requests),
    "constraints-hold-within-requests-only": reads_claims(within_requests),
    "only-first-class-selector": reads(Listers.device_classes, first_class_selector),
    "only-first-constraint": reads_claims(only_first_constraint),
    "only-first-selector": reads_claims(first_request_selector),
}
