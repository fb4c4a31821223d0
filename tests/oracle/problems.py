"""Whole problems: a cluster, its claims, and which features may be used."""

from __future__ import annotations

from random import Random

from reference_allocator.features import Features
from tests.oracle.claims import claim, classes
from tests.oracle.cluster import nodes, slices
from tests.oracle.crowded import many_counters, too_few_devices
from tests.oracle.dice import Dice
from tests.oracle.inventories import GPU, Json
from tests.oracle.refused import spoil

_TIME = "2026-01-01T00:00:00Z"
_STABLE = {"adminAccess", "prioritizedList", "partitionableDevices", "deviceTaints"}
_INCUBATING = {*_STABLE, "deviceBindingAndStatus", "consumableCapacity", "fractionalCapacityRange"}
SHARE = "11111111-1111-1111-1111-11111111111{}"


def problem(random: Random, identifier: str, *, odd: bool = False) -> Json:
    """A line for `dra-conformance allocate` and for `ci/upstream/allocate`.

    Args:
        random: where choices come from.
        identifier: the id of the line.
        odd: also draw objects that the API server refuses, and searches that fail in many ways.
    """
    on = _features(Dice(random))
    dice = Dice(
        random, calm=random.randrange(4) > 0, small=random.randrange(3) > 0, features=frozenset(on)
    )
    if odd and dice.one_in(60):
        return _crowded(dice, identifier, on)
    named = nodes(dice)
    published = [_dated(item) for item in slices(dice, named)]
    drivers = sorted({item["spec"]["driver"] for item in published}) or [GPU]
    wanted = [
        claim(dice, index, GPU if dice.rare(10) else dice.pick(drivers))
        for index in range(dice.pick([1, 1, 1, 1, 1, 2, 2, 3, 4]))
    ]
    line: Json = {
        "id": identifier,
        "features": dict.fromkeys(sorted(on), True),
        "slices": published,
        "deviceClasses": classes(dice),
        "nodes": named,
        "claims": wanted,
        "allocated": _allocated(dice, published),
    }
    if odd and dice.one_in(8):
        spoil(dice, line)
    _choose_allocator(dice, line, on)
    return line


def _dated(resource_slice: Json) -> Json:
    """The slice with the time of its taints, which the API server adds."""
    for device in resource_slice["spec"].get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", _TIME)
    return resource_slice


def _crowded(dice: Dice, identifier: str, on: set[str]) -> Json:
    build = many_counters if dice.one_in(10) else too_few_devices
    if build is many_counters:
        on.add("partitionableDevices")
    published, wanted = build(dice)
    line: Json = {
        "id": identifier,
        "features": dict.fromkeys(sorted(on), True),
        "slices": [_dated(item) for item in published],
        "deviceClasses": [{"metadata": {"name": GPU}, "spec": {}}],
        "nodes": [{"metadata": {"name": "node-0"}}],
        "claims": wanted,
        "allocated": [],
    }
    _choose_allocator(dice, line, on)
    return line


def _choose_allocator(dice: Dice, line: Json, on: set[str]) -> None:
    """Ours answers as incubating and experimental do, so stable must not be chosen."""
    if on <= _STABLE:
        line["allocator"] = dice.pick(["incubating", "experimental"])
    elif on <= _INCUBATING and dice.one_in(2):
        line["allocator"] = "experimental"


def _features(dice: Dice) -> set[str]:
    match dice.number(8):
        case 0 | 1 | 2:
            chosen = Features.all()
        case 3 | 4:
            chosen = Features.for_version("1.37")
        case 5:
            chosen = Features.for_version(dice.pick(["1.34", "1.35", "1.36"]))
        case 6:
            chosen = Features.for_version("1.37", {"DRAFractionalCapacityRange": True})
        case _:
            on = Features.all().to_dict()
            return {name for name in on if not dice.one_in(4)}
    return {name for name, set_ in chosen.to_dict().items() if set_}


def _allocated(dice: Dice, published: list[Json]) -> list[Json]:
    """Claims that have devices already, some of them no longer published."""
    devices = [
        (item["spec"]["driver"], item["spec"]["pool"]["name"], device)
        for item in published
        for device in item["spec"].get("devices", ())
    ]
    found: list[Json] = []
    shareable = [item for item in devices if item[2].get("allowMultipleAllocations")]
    for index in range(dice.pick([0, 0, 0, 0, 1, 1, 2])):
        results: list[Json] = []
        among = shareable if shareable and dice.one_in(2) else devices
        for driver, pool, device in dice.some(among, min(len(among), dice.pick([1, 2]))):
            result = {"request": "r", "driver": driver, "pool": pool, "device": device["name"]}
            if device.get("allowMultipleAllocations") and not dice.one_in(6):
                result["shareID"] = SHARE.format(index)
                if not dice.one_in(6):
                    names = [name for name in device.get("capacity", ()) if not dice.one_in(8)]
                    amounts = ["1", "2", "3", "500m", "1Gi", "7Gi", "9G", "0"]
                    result["consumedCapacity"] = {name: dice.pick(amounts) for name in names}
            if dice.one_in(8):
                result["adminAccess"] = True
            if dice.one_in(30):
                result["device"] = "gone"
            results.append(result)
        metadata = {"name": f"taken-{index}", "namespace": "default", "uid": f"taken-{index}"}
        status = {"allocation": {"devices": {"results": results}}} if results else {}
        found.append({"metadata": metadata, "spec": {}, "status": status})
    return found
