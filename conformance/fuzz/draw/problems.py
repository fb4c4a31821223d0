"""Draws whole problems: a cluster, its claims, and which features may be used."""

from __future__ import annotations

from conformance.fuzz.draw.claims import draw_claim, draw_classes
from conformance.fuzz.draw.cluster import draw_nodes, draw_slices
from conformance.fuzz.draw.dice import Dice
from conformance.fuzz.draw.inventories import GPU, Json

TIME = "2100-01-01T00:00:00Z"
"""When taints were added: pods on devices with such a taint are evicted from then on, not now."""
SHARE = "11111111-1111-1111-1111-11111111111{}"


def draw_problem(dice: Dice, identifier: str) -> Json:
    """Draw a problem, as a line for ``dra-conformance allocate``."""
    nodes = draw_nodes(dice)
    published = [add_taint_times(item) for item in draw_slices(dice, nodes)]
    drivers = sorted({item["spec"]["driver"] for item in published}) or [GPU]
    counts = [1, 1, 1, 1, 1, 2, 2, 3, 4]
    if dice.focus is not None:
        counts = [1] if dice.focus.isdisjoint(("claims", "pods")) else [2, 2, 3]
    claims = [
        draw_claim(dice, index, GPU if dice.rare(10) else dice.pick(drivers))
        for index in range(dice.pick(counts))
    ]
    return {
        "id": identifier,
        "features": dict.fromkeys(sorted(dice.features), True),
        "slices": published,
        "deviceClasses": draw_classes(dice),
        "nodes": nodes,
        "claims": claims,
        "allocated": _draw_allocated(dice, published),
    }


def add_taint_times(resource_slice: Json) -> Json:
    """Return the slice with the time of its taints, which the API server adds."""
    for device in resource_slice["spec"].get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", TIME)
    return resource_slice


def _draw_allocated(dice: Dice, published: list[Json]) -> list[Json]:
    """Draw claims that have devices already, some of them no longer published."""
    devices = [
        (item["spec"]["driver"], item["spec"]["pool"]["name"], device)
        for item in published
        for device in item["spec"].get("devices", ())
    ]
    claims: list[Json] = []
    shareable = [item for item in devices if item[2].get("allowMultipleAllocations")]
    counts = [0, 0, 0, 0, 1, 1, 2]
    if dice.focus is not None:
        counts = [1, 1, 2] if "inUse" in dice.focus else [0]
    for index in range(dice.pick(counts)):
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
            if dice.about("adminAccess", 8):
                result["adminAccess"] = True
            if dice.one_in(30):
                result["device"] = "gone"
            results.append(result)
        metadata = {"name": f"taken-{index}", "namespace": "default", "uid": f"taken-{index}"}
        status = {"allocation": {"devices": {"results": results}}} if results else {}
        claims.append({"metadata": metadata, "spec": {}, "status": status})
    return claims
