"""Defects in how values are compared: by selectors, and by constraints among devices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kube.values import Obj
from kubesim.world import World
from tests.mutants.allocation.constraints import attribute_of, find
from tests.mutants.allocation.inputs import (
    changed,
    constraints_of,
    devices,
    place,
    pool_of,
    reads_claims,
    requests,
    results,
)
from tests.mutants.allocation.selectors import no_distinct_attribute, rewritten
from tests.mutants.allocation.views import allows, answers
from tests.mutants.replacing import Defects


def equal_is_greater(expression: str) -> str:
    return re.sub(r"\.isGreaterThan\((semver\([^)]*\))\)", r".compareTo(\1) >= 0", expression)


def turned_round(expression: str) -> str:
    """compareTo tells of its operand what it should tell of its receiver."""
    return re.sub(r"\.compareTo\((semver\([^)]*\))\)", r".compareTo(\1) * -1", expression)


def distinct_beside_match(claim: Obj) -> None:
    if any("matchAttribute" in one for one in constraints_of(claim)):
        no_distinct_attribute(claim)


def differs_from_the_last(world: World, node: Obj, claim: Obj, allocation: Obj) -> None:
    """The devices of a request are chosen in order, each compared with the one before only."""
    found = constraints_of(claim)
    if [*map(len, (requests(claim), found))] != [1, 1] or "distinctAttribute" not in found[0]:
        return
    chosen: list[Obj] = []
    last: set[str] = set()
    for result, values in _free(world, node, attribute_of(found[0])):
        if values and not values & last and len(chosen) < len(results(allocation)):
            chosen.append(result)
            last = values
    if len(chosen) == len(results(allocation)):
        for result, other in zip(results(allocation), chosen, strict=True):
            result.update(other)


def _free(world: World, node: Obj, attribute: str) -> Iterator[tuple[Obj, set[str]]]:
    """The devices of a node that nobody has, with their values of an attribute."""
    claims = world.cluster.store.all("ResourceClaim")
    taken = {place(r) for x in claims for r in results(x["status"].get("allocation") or {})}
    for item in world.cluster.list_slices():
        driver, pool = pool_of(item)
        if item["spec"].get("nodeName") == node["metadata"]["name"]:
            for device in devices(item):
                if (driver, pool, device["name"]) not in taken:
                    result = {"driver": driver, "pool": pool, "device": device["name"]}
                    yield result, _values(find(device, driver, attribute) or {})


def _values(attribute: Obj) -> set[str]:
    """The one value of an attribute, or those of a list."""
    each = (value if isinstance(value, list) else [value] for value in attribute.values())
    return {str(value) for found in each for value in found}


DEFECTS: Defects = {
    "distinct-differs-from-the-last-only": answers(differs_from_the_last),
    "distinct-is-a-preference": allows(
        lambda alone, claims: alone(changed(claims, no_distinct_attribute))
    ),
    "distinct-is-ignored-beside-match": reads_claims(distinct_beside_match),
    "equal-versions-are-greater": rewritten(equal_is_greater),
    "versions-are-compared-the-wrong-way-round": rewritten(turned_round),
}
