"""Defects in how selectors are evaluated, and in what they see of a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kube.values import Obj
from kubesim.scheduling.filtering import Filter, SchedulingError
from kubesim.scheduling.listers import Listers
from kubesim.store import clone
from kubesim.world import World
from tests.mutants.allocation.alternatives import alternatives_lose
from tests.mutants.allocation.inputs import (
    Allocate,
    Answer,
    Change,
    Claims,
    constraints_of,
    devices,
    reads,
    reads_claims,
    wanted,
    without_request_field,
)
from tests.mutants.allocation.views import View, sees
from tests.mutants.replacing import Defects, Mutation, instead


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


def of_all_requests(constraint: Obj) -> None:
    constraint.pop("requests", None)


def only_first_constraint(claim: Obj) -> None:
    del constraints_of(claim)[1:]


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


BARE = "-without-selectors"


def with_bare_classes(view: View) -> None:
    """Each class is there a second time, without its selectors."""
    for item in [*view.classes]:
        bare = clone(item)
        bare["metadata"]["name"] += BARE
        (bare.get("spec") or {}).pop("selectors", None)
        view.classes.append(bare)


def request_before_class(view: View) -> None:
    """Selectors of a request are evaluated before those of its class."""
    own = {x["metadata"]["name"]: (x.get("spec") or {}).get("selectors") for x in view.classes}
    with_bare_classes(view)
    for item in [one for claim in view.wanted for one in wanted(claim)]:
        name = item["deviceClassName"]
        if item.get("selectors") and own.get(name):
            item["deviceClassName"] += BARE
            item["selectors"] = [*item["selectors"], *(own[name] or [])]


def selectors(view: View) -> Iterator[list[Obj]]:
    for claim in view.wanted:
        yield from (item["selectors"] for item in wanted(claim) if item.get("selectors"))
    for device_class in view.classes:
        yield from [(device_class.get("spec") or {}).get("selectors") or []]


def backwards(view: View) -> None:
    for found in selectors(view):
        found.reverse()


def rewritten(change: Callable[[str], str]) -> Mutation:
    """Expressions mean something else."""

    def read(view: View) -> None:
        for found in selectors(view):
            for selector in found:
                selector["cel"]["expression"] = change(selector["cel"]["expression"])

    return sees(read)


def fails_on(pattern: str, wrong: Callable[[World, str], bool] = lambda _w, _f: True) -> Mutation:
    """Expressions in which this is found cannot be evaluated."""

    @instead(Filter.allocate)
    def mutate(
        world: World, original: Allocate, allocator: Any, node: Obj, claims: Claims
    ) -> Answer:
        classes = world.scheduler.filter.listers.device_classes()
        view = View(node, [*claims], [], classes, [])
        for found in selectors(view):
            for selector in found:
                for match in re.finditer(pattern, selector["cel"]["expression"]):
                    if wrong(world, match[match.lastindex or 0]):
                        raise SchedulingError(f"CEL runtime error: {match[0]}")
        return original(allocator, node, claims)

    return mutate


def is_unknown_domain(world: World, domain: str) -> bool:
    drivers = {item["spec"]["driver"] for item in world.cluster.list_slices()}
    names = [
        name for item in world.cluster.list_slices() for x in devices(item) for name in named(x)
    ]
    return domain not in drivers | {name.rpartition("/")[0] for name in names}


def named(device: Obj) -> Iterator[str]:
    for field in ("attributes", "capacity"):
        yield from device.get(field) or {}


def attributes(change: Callable[[str, Obj], Obj | None]) -> Mutation:
    """Attributes have other values, or none."""

    def read(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            for name, value in [*(device.get("attributes") or {}).items()]:
                new = change(name, value)
                device["attributes"][name] = new
                if new is None:
                    del device["attributes"][name]

    return reads(Listers.resource_slices, read)


def unless(kind: str, empty: object, _name: str, value: Obj) -> Obj | None:
    return None if value.get(kind) == empty and kind in value else value


def as_float(_name: str, value: Obj) -> Obj:
    return {"int": int(float(value["int"]))} if "int" in value else value


def without_suffix(sign: str, _name: str, value: Obj) -> Obj:
    return {"version": value["version"].split(sign)[0]} if "version" in value else value


def first_of_list(_name: str, value: Obj) -> Obj:
    return {
        kind: [*found][:1] if isinstance(found, list) else found for kind, found in value.items()
    }


def renamed(rename: Callable[[str, str], str | None]) -> Change:
    """Attributes and capacities have other names: called with driver and name."""

    def change(resource_slice: Obj) -> None:
        driver = resource_slice["spec"]["driver"]
        for device in devices(resource_slice):
            for field in ("attributes", "capacity"):
                new = {rename(driver, k): v for k, v in (device.get(field) or {}).items()}
                new.pop(None, None)
                device[field] = new

    return change


def without_domain(_driver: str, name: str) -> str:
    return name.rpartition("/")[2]


def without_own_domain(driver: str, name: str) -> str | None:
    return None if name.startswith(f"{driver}/") else name


def decimal(value: Any) -> None:
    """Wherever there is an amount in an object, Gi is read as G, Mi as M."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            decimal(item)
        elif isinstance(item, str) and re.fullmatch(r"\d+[KMGT]i", item):
            value[key] = item[:-1].replace("K", "k")


def all_decimal(world: World) -> None:
    reads(Listers.resource_slices, decimal)(world)
    reads_claims(lambda claim: decimal(claim["spec"]))(world)
    reads(Listers.resource_claims, lambda claim: decimal(claim.get("status") or {}))(world)


def as_decimal(version: str) -> str:
    """9.10 is the number 9.1, and so less than 9.9."""
    return re.sub(
        r"^(\d+)\.(\d+)", lambda found: f"{found[1]}.{int(found[2].ljust(6, '0'))}", version
    )


def decimal_versions(view: View) -> None:
    for selector in [one for found in selectors(view) for one in found]:
        expression = selector["cel"]["expression"]
        selector["cel"]["expression"] = re.sub(
            r"""(semver\(["'])([^"']+)""", lambda found: found[1] + as_decimal(found[2]), expression
        )
    for device in [one for item in view.slices for one in devices(item)]:
        for value in (device.get("attributes") or {}).values():
            if "version" in value:
                value["version"] = as_decimal(value["version"])


LIBRARIES = {
    "bindings": r"cel\.bind\(",
    "comparisons-of-quantities": r"compareTo\(|isGreaterThan\(|isLessThan\(",
    "lists": r"\.(all|exists|exists_one|filter|map)\(",
    "optional-values": r"\.\?|\[\?",
    "regular-expressions": r"\.(matches|find|findAll)\(",
    "text": r"\.(startsWith|endsWith|contains|lowerAscii|split)\(",
    "versions": r"semver\(",
}


def no_constraints(claim: Obj) -> None:
    (claim["spec"].get("devices") or {}).pop("constraints", None)


def no_class_selectors(device_class: Obj) -> None:
    (device_class.get("spec") or {}).pop("selectors", None)


def ignore_selectors(world: World) -> None:
    reads_claims(without_request_field("selectors"))(world)
    reads(Listers.device_classes, no_class_selectors)(world)


DEFECTS: Defects = {
    "class-selectors-see-no-attributes": reads(Listers.device_classes, no_attributes_in_class),
    "classes-without-selectors-are-empty": reads(Listers.device_classes, nothing_without_selectors),
    "constraints-ignore-versions": no_versions,
    "constraints-hold-for-all-requests": constraints(of_all_requests),
    "only-first-class-selector": reads(Listers.device_classes, first_class_selector),
    "only-first-constraint": reads_claims(only_first_constraint),
    "only-first-selector": reads_claims(first_request_selector),
    **{f"selectors-have-no-{name}": fails_on(pattern) for name, pattern in LIBRARIES.items()},
    "alternatives-lose-selectors": alternatives_lose("selectors"),
    "binary-units-are-decimal": all_decimal,
    "drops-empty-attributes": attributes(partial(unless, "string", "")),
    "drops-false-attributes": attributes(partial(unless, "bool", False)),
    "drops-zero-attributes": attributes(partial(unless, "int", 0)),
    "foreign-domains-are-the-drivers": reads(Listers.resource_slices, renamed(without_domain)),
    "lists-are-their-first-value": attributes(first_of_list),
    "own-domain-is-not-known": reads(Listers.resource_slices, renamed(without_own_domain)),
    "request-selectors-go-before-class": sees(request_before_class),
    "rounds-large-integers": attributes(as_float),
    "selectors-are-evaluated-backwards": sees(backwards),
    "selectors-see-no-sharing": rewritten(
        lambda text: text.replace("device.allowMultipleAllocations", "false")
    ),
    "unknown-domains-are-errors": fails_on(
        r"""(?:attributes|capacity)\[["']([^"']+)""", is_unknown_domain
    ),
    "versions-compare-as-decimals": sees(decimal_versions),
    "versions-lose-pre-releases": attributes(partial(without_suffix, "-")),
    "ignore-match-attribute": reads_claims(no_constraints),
    "ignore-selectors": ignore_selectors,
}
