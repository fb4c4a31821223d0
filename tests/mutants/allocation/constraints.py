"""Defects of matchAttribute and distinctAttribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from kube.values import Obj
from kubesim.world import World
from tests.mutants.allocation.alignment import attributes
from tests.mutants.allocation.inputs import (
    constraints_of,
    devices,
    pool_of,
    reads_claims,
    refuses_all,
    requests,
    results,
    wanted,
)
from tests.mutants.allocation.views import View, sees
from tests.mutants.replacing import Defects, Mutation


def attribute_of(constraint: Obj) -> str:
    name: str = constraint.get("matchAttribute") or constraint.get("distinctAttribute") or "/"
    return name


def names(view: View, kind: str) -> Iterator[str]:
    """The attributes on which constraints of a kind are."""
    for claim in view.wanted:
        for constraint in constraints_of(claim):
            if kind in constraint:
                yield attribute_of(constraint)


def find(device: Obj, driver: str, name: str) -> Obj | None:
    found = device.get("attributes") or {}
    domain, _, short = name.rpartition("/")
    value: Obj | None = found.get(name) or (found.get(short) if domain == driver else None)
    return value


def missing_is_a_value(kind: str, each: Callable[[int], str]) -> Mutation:
    """Devices without an attribute have a value of it all the same."""

    def change(view: View) -> None:
        for name in [*names(view, kind)]:
            for item in view.slices:
                for place, device in enumerate(devices(item)):
                    if find(device, item["spec"]["driver"], name) is None:
                        device.setdefault("attributes", {})[name] = {"string": each(place)}

    return sees(change)


def one_device_needs_nothing(claim: Obj) -> None:
    found = [*wanted(claim)]
    if len(found) == 1 and found[0].get("count", 1) == 1:
        constraints_of(claim).clear()


def loosely(view: View) -> None:
    """Where values of an attribute have several types, they are compared as text."""
    for name in [*names(view, "matchAttribute")]:
        pairs = [
            (x, find(x, item["spec"]["driver"], name))
            for item in view.slices
            for x in devices(item)
        ]
        if len({kind for _, value in pairs if value for kind in value}) > 1:
            for device, value in pairs:
                for plain in (value or {}).values():
                    device["attributes"][name] = {"string": str(plain)}


def without_builds(view: View) -> None:
    for _, value in attributes(view.slices) if any(map(constraints_of, view.wanted)) else ():
        if "version" in value:
            value["version"] = value["version"].split("+")[0]


def ignoring(*kinds: str) -> Mutation:
    """Constraints on attributes of some types are not looked at."""

    def mutate(world: World) -> None:
        def is_kept(constraint: Obj) -> bool:
            short = attribute_of(constraint).rpartition("/")[2]
            found = attributes(world.cluster.list_slices())
            values = [value for name, value in found if name.rpartition("/")[2] == short]
            return not any(value.keys() & {*kinds} for value in values)

        def change(claim: Obj) -> None:
            found = constraints_of(claim)
            found[:] = [constraint for constraint in found if is_kept(constraint)]

        reads_claims(change)(world)

    return mutate


def drivers(world: World) -> set[str]:
    return {item["spec"]["driver"] for item in world.cluster.list_slices()}


def own_domains_only(world: World) -> None:
    def change(claim: Obj) -> None:
        found = constraints_of(claim)
        known = drivers(world)
        found[:] = [x for x in found if attribute_of(x).rpartition("/")[0] in known]

    reads_claims(change)(world)


def short_names_only(world: World) -> None:
    """A device that publishes an attribute of its driver with the domain does not have it."""

    def change(view: View) -> None:
        for item in view.slices if any(map(constraints_of, view.wanted)) else ():
            for device in devices(item):
                for name in [*(device.get("attributes") or {})]:
                    if name.startswith(f"{item['spec']['driver']}/"):
                        del device["attributes"][name]

    sees(change)(world)


def values(world: World, allocation: Obj, name: str) -> list[Obj | None]:
    taken = {(item["driver"], item["pool"], item["device"]) for item in results(allocation)}
    return [
        find(device, item["spec"]["driver"], name)
        for item in world.cluster.list_slices()
        for device in devices(item)
        if (*pool_of(item), device["name"]) in taken
    ]


def differ_in_other_claims(world: World, pairs: list[tuple[Obj, Obj]]) -> bool:
    """Claims of a pod with the same matchAttribute must all agree."""
    for (one, first), (other, second) in combinations(pairs, 2):
        for constraint in constraints_of(one):
            name = constraint.get("matchAttribute")
            if name and any(name == x.get("matchAttribute") for x in constraints_of(other)):
                found = values(world, first, name) + values(world, second, name)
                if any(value != found[0] for value in found):
                    return True
    return False


def for_requests(change: Callable[[list[str], set[str]], Iterable[str]]) -> Mutation:
    """What a constraint lists means something else: called with that and who has alternatives."""

    def read(claim: Obj) -> None:
        several = {item["name"] for item in requests(claim) if item.get("firstAvailable")}
        kept = []
        for constraint in constraints_of(claim):
            listed = constraint.get("requests") or []
            new = [*dict.fromkeys(change(listed, several))]
            if listed:
                constraint["requests"] = new
            if new or not listed:
                kept.append(constraint)
        constraints_of(claim)[:] = kept

    return reads_claims(read)


def _in_every_domain(view: View) -> None:
    """An attribute without a domain is found under the name of every one."""
    for name in names(view, "matchAttribute"):
        short = name.rpartition("/")[2]
        for item in view.slices:
            for device in devices(item):
                attributes = device.get("attributes") or {}
                if short in attributes and not name.startswith(f"{item['spec']['driver']}/"):
                    attributes.setdefault(name, attributes[short])


DEFECTS: Defects = {
    "constraints-compare-types-loosely": sees(loosely),
    "constraints-hold-for-two-requests": for_requests(lambda listed, _: listed[:2]),
    "constraints-ignore-booleans": ignoring("bool"),
    "constraints-ignore-integers": ignoring("int"),
    "constraints-ignore-strings": ignoring("string"),
    "constraints-know-domains-of-drivers-only": own_domains_only,
    "constraints-know-short-names-only": short_names_only,
    "constraints-on-one-alternative-hold-for-all": for_requests(
        lambda listed, _: [name.partition("/")[0] for name in listed]
    ),
    "constraints-reach-other-claims": refuses_all(differ_in_other_claims),
    "constraints-spare-named-alternatives": for_requests(
        lambda listed, _: [name for name in listed if "/" not in name]
    ),
    "constraints-spare-single-devices": reads_claims(one_device_needs_nothing),
    "missing-attributes-agree": missing_is_a_value("matchAttribute", lambda _: "none"),
    "missing-attributes-differ": missing_is_a_value("distinctAttribute", str),
    "names-of-requests-do-not-reach-alternatives": for_requests(
        lambda listed, several: [name for name in listed if name not in several]
    ),
    "versions-agree-without-builds": sees(without_builds),
    "attributes-without-domain-are-in-every-one": sees(_in_every_domain),
}
