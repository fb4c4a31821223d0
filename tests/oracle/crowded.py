"""Problems with many ways to fail: a search has to cut, or takes ages.

Small enough that upstream, which tries everything, still answers most of them in its time.
"""

from __future__ import annotations

from conformance.fuzz.draw.dice import Dice
from conformance.fuzz.draw.inventories import GPU, Json
from reference_allocator.api.defaulting import default_claim

_MISSING = f'device.attributes["{GPU}"].missing == "x"'
_PRESENT = f'device.attributes["{GPU}"].kind == "x"'


def too_few_devices(dice: Dice) -> tuple[list[Json], list[Json]]:
    """Equal devices, one less than asked for, and what would fail if it were reached."""
    count = 10 + dice.number(4)
    devices: list[Json] = [
        {"name": f"d{index}", "attributes": {"kind": {"string": "x"}}} for index in range(count)
    ]
    for device in dice.some(devices, dice.pick([0, 0, 1, 2])):
        device["attributes"] = {"other": {"string": "x"}}
    half = count // 2
    wanted = [_request("a", half), _request("b", count - half + dice.pick([0, 1, 1]))]
    if dice.one_in(3):
        wanted.insert(dice.number(3), _request("e", 1, _PRESENT))
    last: Json = {"requests": [_request("c", 1, dice.pick([_MISSING, _MISSING, _PRESENT]))]}
    if dice.one_in(4):
        last = {
            "requests": [{"name": "c", "exactly": _body("All", 0)}],
            "constraints": [{"distinctAttribute": f"{GPU}/kind"}],
        }
    if dice.one_in(4):
        wanted += last["requests"]
        return [_slice("devices", 1, devices=devices)], [_claim("one", {"requests": wanted})]
    claims = [_claim("one", {"requests": wanted}), _claim("two", last)]
    return [_slice("devices", 1, devices=devices)], claims


def many_counters(dice: Dice) -> tuple[list[Json], list[Json]]:
    """Devices that draw on all counters of two counter sets each."""
    names = [f"n{index}" for index in range(32)]
    sets = [f"s{index}" for index in range(8)]
    total = dice.pick(["8", "9", "10"])
    devices: list[Json] = [
        {
            "name": f"d{index}",
            "consumesCounters": [
                {
                    "counterSet": counter_set,
                    "counters": {name: {"value": str(1 + dice.number(4))} for name in names},
                }
                for counter_set in dice.some(sets, 2)
            ],
        }
        for index in range(64)
    ]
    shared = [
        {"name": item, "counters": {name: {"value": total} for name in names}} for item in sets
    ]
    claims = [
        _claim(f"c{index}", {"requests": [_request("r", 3)]}) for index in range(dice.pick([2, 3]))
    ]
    slices = [_slice("counters", 2, sharedCounters=shared), _slice("devices", 2, devices=devices)]
    return slices, claims


def _slice(name: str, slices: int, **content: list[Json]) -> Json:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": slices}
    return {
        "metadata": {"name": name},
        "spec": {"driver": GPU, "pool": pool, "nodeName": "node-0", **content},
    }


def _request(name: str, count: int, selector: str = "") -> Json:
    return {"name": name, "exactly": _body("ExactCount", count, selector)}


def _body(mode: str, count: int, selector: str = "") -> Json:
    body: Json = {"deviceClassName": GPU, "allocationMode": mode}
    if count:
        body["count"] = count
    if selector:
        body["selectors"] = [{"cel": {"expression": selector}}]
    return body


def _claim(name: str, devices: Json) -> Json:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return default_claim({"metadata": metadata, "spec": {"devices": devices}})
