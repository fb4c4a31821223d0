"""Objects that the API server refuses, and that an allocator can be given all the same.

Files, generators and older API servers bring them. Each of these changes puts one kind of them into
a problem; upstream has an answer to most, and ours has to be the same. Not so of names
given twice, of counts and ranges below zero, and of amounts beyond 64 bits in a range of steps that
has no default (Quantity.Value reads some as 0): what comes of them is an accident.
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


def _classes_of_one_name(dice: Dice, question: Json) -> None:
    again = dict(dice.pick(question["deviceClasses"]))
    again["spec"] = {"selectors": [{"cel": {"expression": dice.pick(["false", "true"])}}]}
    question["deviceClasses"].insert(dice.number(len(question["deviceClasses"])), again)


def _amounts_beyond_suffixes(dice: Dice, question: Json) -> None:
    amounts = ["2000E", "9Ei", "1e30", "9223372036854775807", "1234567890123456789012345678901"]
    for body in bodies(question):
        requests = body.get("capacity", {}).get("requests", {})
        requests.update({name: dice.pick(amounts) for name in requests if dice.one_in(2)})
    for item in question["slices"]:
        for device in item["spec"].get("devices", ()):
            for capacity in device.get("capacity", {}).values():
                if dice.one_in(2):
                    amount = dice.pick(amounts)
                    if not _is_counted_in_steps(capacity):
                        capacity["value"] = amount


def _is_counted_in_steps(capacity: Json) -> bool:
    """Return whether the value itself has to be in a range of steps, as there is no default."""
    policy = capacity.get("requestPolicy") or {}
    return "default" not in policy and "step" in (policy.get("validRange") or {})


CHANGES: Mapping[str, Change] = {
    "amounts beyond the suffixes": _amounts_beyond_suffixes,
    "empty fields of tolerations": _empty_tolerations,
    "configuration without driver or parameters": _bare_configuration,
    "node selectors with several problems": _malformed_node_selectors,
    "classes of one name": _classes_of_one_name,
}
