"""Values at the limits of what the API stores, and beside them, in the places of ordinary ones.

Where amounts, versions or lists are read in another way by a minor, ordinary values seldom show it.
They are drawn for the option ``--hunt`` of `tests.oracle.fuzz` and of
`tests.reference_allocator.cel.fuzz.compare`.
"""

from __future__ import annotations

from typing import Any, Final

from conformance.fuzz.draw.dice import Dice
from reference_allocator.api.quantity import parse_quantity
from tests.oracle.refused import bodies

Json = dict[str, Any]

_VERSIONS: Final = (
    *("1.0.0", "1.0.0+build.1", "1.0.0+build.2", "1.0.0-rc.1", "1.0.0-rc.1+a", "1.0.0-rc.01"),
    *("570.86.15", "6.19.14.31400000", "v1.0.0", "1.0", "01.0.0", "1.0.0-", "1.0.0-0"),
    *("999999999999999999.0.0", "1000000000000000000.0.0", "0.0.18446744073709551615"),
    *("0.0.18446744073709551616", "1.0.0-18446744073709551616", "1.0.0--", "0.0.0"),
)
_AMOUNTS: Final = (
    *("0", "1", "1n", "1u", "1m", "999999999n", "1500m", "0.5", "1e3", "1E", "7Ei", "8Ei"),
    *("9223372036854775807", "9223372036854775808", "9223372036854775807m", "9223372036854775806"),
    *("999999999999999999", "1000000000000000000", "12345678901234567890", "1Ki", "1024", "1.5Gi"),
    *("99999999999999999999999999999", "100000000000000000000000000001", "1e28", "1e29", "2000E"),
    *("0.1234567891", "9007199254740993", "4611686018427387904", "1e-9", "1.000000001"),
)
_INTEGERS: Final = (0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
_TEXTS: Final = ("", "a", "A", "1", "1.0.0", "true", "a" * 64, "pci0000:00", "é", "64Gi", " a")
_SCALARS: Final[dict[str, tuple[Any, ...]]] = {
    "version": _VERSIONS,
    "int": _INTEGERS,
    "string": _TEXTS,
    "bool": (True, False),
}
_INT64_MAX: Final = 2**63 - 1


def draw_limits(dice: Dice, question: Json) -> None:
    """Put such values into a problem, in place, of one to three kinds: few of each can meet."""
    versions, amounts = (dice.some(list(kind), 3) for kind in (_VERSIONS, _AMOUNTS))
    lists = "listTypeAttributes" in dice.features
    for item in question["slices"]:
        for device in item["spec"].get("devices") or ():
            for name, value in (device.get("attributes") or {}).items():
                if dice.one_in(3):
                    device["attributes"][name] = _draw_attribute(dice, value, versions, lists=lists)
            capacities = device.get("capacity") or {}
            for name, capacity in list(capacities.items()):
                if dice.one_in(2):
                    capacity["value"] = dice.pick(amounts)
                if "requestPolicy" in capacity:
                    _draw_policy(dice, capacity["requestPolicy"], amounts)
                if dice.one_in(6):
                    spelled = f"{item['spec']['driver']}/{name}"
                    capacities[spelled] = {"value": dice.pick(amounts)}
    for body in bodies(question):
        requests = (body.get("capacity") or {}).get("requests") or {}
        for name in requests:
            if dice.one_in(2):
                requests[name] = dice.pick([*amounts, "-1"])


def draw_limits_of_device(dice: Dice, device: Json) -> None:
    """Put such values into a device, in place, each of the kind of the one that it had."""
    for name, value in (device.get("attributes") or {}).items():
        for kind in value:
            values = _SCALARS[kind.removesuffix("s")]
            if dice.one_in(2):
                count = dice.pick([0, 1, 2, 5])
                items = [dice.pick(values) for _ in range(count)]
                device["attributes"][name] = {
                    kind: items if kind.endswith("s") else dice.pick(values)
                }
    for capacity in (device.get("capacity") or {}).values():
        if dice.one_in(2):
            capacity["value"] = dice.pick(_AMOUNTS)


def _draw_attribute(dice: Dice, value: Json, versions: list[str], *, lists: bool) -> Json:
    kind = dice.pick([*value, "version", "version"]).removesuffix("s")
    values = versions if kind == "version" else _SCALARS[kind]
    if lists and dice.one_in(3):
        count = dice.pick([0, 1, 2, 2, 3, 5])  # A device has 48 values at most.
        return {f"{kind}s": [dice.pick(values) for _ in range(count)]}
    return {kind: dice.pick(values)}


def _draw_policy(dice: Dice, policy: Json, amounts: list[str]) -> None:
    """Replace some of the amounts of a policy.

    Values stay in order, and bounds of ranges are more than nothing and fit into 64 bits: beyond,
    minors before 1.38 answer with what Go's overflow leaves.
    """
    if "default" in policy and dice.one_in(3):
        policy["default"] = dice.pick(amounts)
    if "validValues" in policy and dice.one_in(3):
        values = [dice.pick(amounts) for _ in policy["validValues"]]
        policy["validValues"] = sorted(values, key=parse_quantity)
    bounds = policy.get("validRange", {})
    fitting = [item for item in amounts if 0 < parse_quantity(item).nanos <= _INT64_MAX * 10**9]
    for field in bounds:
        if fitting and dice.one_in(4):
            bounds[field] = dice.pick(fitting)
