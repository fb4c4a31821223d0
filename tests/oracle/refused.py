"""Objects that the API server refuses, and that an allocator can be given all the same.

Files, generators and older API servers bring them. Each of these changes puts one kind of them into
a problem; upstream has an answer to most, and ours has to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from conformance.fuzz.draw.dice import Dice
from conformance.fuzz.draw.inventories import Json

Change = Callable[[Dice, Json], None]


def spoil(dice: Dice, question: Json) -> None:
    """Puts one or two kinds of what is refused into a problem, in place."""
    for name in dice.some(list(CHANGES), dice.pick([1, 1, 2])):
        CHANGES[name](dice, question)


def bodies(question: Json) -> Iterator[Json]:
    """The requests of all claims: `exactly` or each alternative."""
    for claim in question["claims"]:
        for request in claim["spec"]["devices"]["requests"]:
            if "exactly" in request:
                yield request["exactly"]
            yield from request.get("firstAvailable", ())


def _empty_tolerations(dice: Dice, question: Json) -> None:
    for body in bodies(question):
        empty = dict.fromkeys(dice.some(["key", "operator", "value", "effect"], 2), "")
        body.setdefault("tolerations", []).append({"operator": "Exists", **empty})


def _bare_configuration(dice: Dice, question: Json) -> None:
    opaque = dice.pick([{}, {"driver": "x"}, {"parameters": {"a": 1}}, None])
    holders = [claim["spec"]["devices"] for claim in question["claims"]]
    holders += [item["spec"] for item in question["deviceClasses"]]
    for holder in holders:
        holder.setdefault("config", []).append({} if dice.one_in(4) else {"opaque": opaque})


def _range_below_zero(dice: Dice, question: Json) -> None:
    bounds = {"min": ["-1", "-5", "-1500m", "2", "500m"], "step": ["-1", "-2", "-250m", "1", "3"]}
    for item in question["slices"]:
        for device in item["spec"].get("devices", ()):
            for capacity in device.get("capacity", {}).values():
                device["allowMultipleAllocations"] = True
                chosen = {name: dice.pick(values) for name, values in bounds.items()}
                capacity["requestPolicy"] = {"default": "1", "validRange": chosen}
    for body in bodies(question):
        for name in body.get("capacity", {}).get("requests", {}):
            body["capacity"]["requests"][name] = dice.pick(["7", "500m", "1", "7100m", "2"])


def _malformed_node_selectors(dice: Dice, question: Json) -> None:
    requirements: list[Json] = [
        {"key": "", "operator": "Gt"},
        {"key": "a b", "operator": "Lt", "values": ["one", "-"]},
        {"key": "zone", "operator": "Exists", "values": ["-", "-"]},
        {"key": "zone", "operator": "Near"},
        {"key": "zone", "operator": "Gt", "values": ["one"]},
    ]
    selector = {
        "nodeSelectorTerms": [{"matchExpressions": dice.some(requirements, dice.pick([1, 2, 3]))}]
    }
    for item in question["slices"]:
        holders = [item["spec"], *item["spec"].get("devices", ())]
        for holder in holders:
            if "nodeSelector" in holder or (holder.get("allNodes") and dice.one_in(2)):
                holder.pop("allNodes", None)
                holder["nodeSelector"] = selector


def _names_twice(dice: Dice, question: Json) -> None:
    for claim in question["claims"]:
        requests = claim["spec"]["devices"]["requests"]
        for request in requests:
            for option in request.get("firstAvailable", ()):
                option["name"] = "s0"
            if dice.one_in(2):
                request["name"] = requests[0]["name"]
    for body in bodies(question):
        if dice.one_in(2):
            body["tolerations"] = [{"key": dice.pick("abc"), "operator": "Exists"}]


def _counts_out_of_range(dice: Dice, question: Json) -> None:
    for body in bodies(question):
        if "count" in body and dice.one_in(2):
            body["count"] = dice.pick([-(2**63), 2**63 - 1, -1, -5, 0, 36])


def _classes_of_one_name(dice: Dice, question: Json) -> None:
    again = dict(dice.pick(question["deviceClasses"]))
    again["spec"] = {"selectors": [{"cel": {"expression": dice.pick(["false", "true"])}}]}
    question["deviceClasses"].insert(dice.number(len(question["deviceClasses"])), again)


CHANGES: Mapping[str, Change] = {
    "empty fields of tolerations": _empty_tolerations,
    "configuration without driver or parameters": _bare_configuration,
    "ranges below zero": _range_below_zero,
    "node selectors with several problems": _malformed_node_selectors,
    "names given twice": _names_twice,
    "counts out of range": _counts_out_of_range,
    "classes of one name": _classes_of_one_name,
}
