"""Which rules a problem is about: those without which the answer would be another.

Each knob takes one rule out of a problem (the taints of its devices, one feature, ...). That the
answer changes then shows that the rule was asked and decided, which the fields of a problem alone
do not. So it can be told which rules the generator and the recorded answers really cover:

    python -m tests.oracle.knobs -n 500
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from reference_allocator.features import Features
from reference_allocator.wire import answer_allocate
from tests.oracle.problems import problem
from tests.oracle.upstream import comparable

Json = dict[str, Any]
Change = Callable[[Any], None]


def _everywhere(value: Any, change: Change) -> None:
    """Calls `change` with each object of a document."""
    if isinstance(value, dict):
        change(value)
        for item in value.values():
            _everywhere(item, change)
    elif isinstance(value, list):
        for item in value:
            _everywhere(item, change)


def _without(*fields: str, among: Sequence[str] = ()) -> Change:
    """Takes fields away everywhere in the lists `among` of a problem, or in all of it."""

    def change(found: Json) -> None:
        for field in fields:
            found.pop(field, None)

    def apply(question: Json) -> None:
        for part in among or [name for name in question if name != "features"]:
            _everywhere(question.get(part), change)

    return apply


def _with(field: str, value: Any, *, among: str, known: Any = None) -> Change:
    """Sets a field where it is (with the value `known`, if one is given)."""

    def change(found: Json) -> None:
        if field in found and (known is None or found[field] == known):
            found[field] = value

    return lambda question: _everywhere(question.get(among), change)


def _requests(question: Json) -> Iterator[Json]:
    for claim in question["claims"]:
        yield from claim["spec"]["devices"]["requests"]


def _first_alternative_only(question: Json) -> None:
    for request in _requests(question):
        if request.get("firstAvailable"):
            request["firstAvailable"] = request["firstAvailable"][:1]


def _count_instead_of_all(question: Json) -> None:
    def change(found: Json) -> None:
        if found.get("allocationMode") == "All":
            found.update(allocationMode="ExactCount", count=1)

    _everywhere(question["claims"], change)


def _one_device_each(question: Json) -> None:
    _everywhere(
        question["claims"], lambda found: found.update(count=1) if found.get("count") else None
    )


def _without_constraints(kind: str) -> Change:
    def apply(question: Json) -> None:
        for claim in question["claims"]:
            devices = claim["spec"]["devices"]
            kept = [item for item in devices.get("constraints", ()) if kind not in item]
            devices["constraints"] = kept

    return apply


def _constraints_on_all_requests(question: Json) -> None:
    for claim in question["claims"]:
        for item in claim["spec"]["devices"].get("constraints", ()):
            item.pop("requests", None)


def _scalars_instead_of_lists(question: Json) -> None:
    def change(found: Json) -> None:
        for lists, scalar in (("strings", "string"), ("ints", "int"), ("bools", "bool")):
            if found.get(lists):
                found[scalar] = found.pop(lists)[0]
        if found.get("versions"):
            found["version"] = found.pop("versions")[0]

    _everywhere(question["slices"], change)


def _only_first_claim(question: Json) -> None:
    question["claims"] = question["claims"][:1]


def _slices(change: Callable[[Json], None]) -> Change:
    def apply(question: Json) -> None:
        for item in question["slices"]:
            change(item["spec"])

    return apply


def _same_generation(spec: Json) -> None:
    spec["pool"]["generation"] = 1


def _alone(spec: Json) -> None:
    spec["pool"]["resourceSliceCount"] = 1


def _for_all_nodes(spec: Json) -> None:
    if spec.pop("nodeSelector", None):
        spec["allNodes"] = True


def _devices_for_all_nodes(spec: Json) -> None:
    if spec.pop("perDeviceNodeSelection", None):
        spec["allNodes"] = True


def _turn(feature: str) -> Change:
    def apply(question: Json) -> None:
        features = question["features"]
        features[feature] = not features.get(feature, False)

    return apply


KNOBS: Mapping[str, Change] = {
    **{f"feature {name}": _turn(name) for name in Features().to_dict()},
    "several claims": _only_first_claim,
    "several devices": _one_device_each,
    "allocationMode All": _count_instead_of_all,
    "later alternatives": _first_alternative_only,
    "admin access": _without("adminAccess", among=["claims"]),
    "admin access of others": _without("adminAccess", among=["allocated"]),
    "devices in use": lambda question: question.update(allocated=[]),
    "shares in use": _without("shareID", among=["allocated"]),
    "capacity in use": _without("consumedCapacity", among=["allocated"]),
    "class selectors": _without("selectors", among=["deviceClasses"]),
    "class configuration": _without("config", among=["deviceClasses"]),
    "request selectors": _without("selectors", among=["claims"]),
    "claim configuration": _without("config", among=["claims"]),
    "requests of a constraint": _constraints_on_all_requests,
    "matchAttribute": _without_constraints("matchAttribute"),
    "distinctAttribute": _without_constraints("distinctAttribute"),
    "derived attributes": _without("derivedAttributes"),
    "list attributes": _scalars_instead_of_lists,
    "taints": _without("taints"),
    "taint effect None": _with("effect", "NoSchedule", among="slices", known="None"),
    "tolerations": _without("tolerations"),
    "toleration effect": _without("effect", among=["claims"]),
    "toleration value": _without("value", among=["claims"]),
    "capacity requests": _without("capacity", among=["claims"]),
    "shareable devices": _without("allowMultipleAllocations"),
    "request policy": _without("requestPolicy"),
    "policy default": _without("default", among=["slices"]),
    "policy minimum": _with("min", "0", among="slices"),
    "policy maximum": _without("max", among=["slices"]),
    "policy step": _without("step", among=["slices"]),
    "policy values": _without("validValues"),
    "counters": _without("consumesCounters"),
    "compatibility groups": _without("compatibilityGroups"),
    "binding conditions": _without("bindingConditions"),
    "binding failure conditions": _without("bindingFailureConditions"),
    "bindsToNode": _without("bindsToNode"),
    "skipNodeOperations": _without("skipNodeOperations"),
    "declared features": _without("declaredFeatures"),
    "node selectors of slices": _slices(_for_all_nodes),
    "node selection per device": _slices(_devices_for_all_nodes),
    "generations": _slices(_same_generation),
    "number of slices": _slices(_alone),
}
"""Rule -> what takes it out of a problem, in place."""


def ours(question: Json) -> Json:
    """Our answer, as far as answers are compared."""
    return comparable(json.loads(answer_allocate(json.dumps(question))))


def decides(knob: str, question: Json, answer: Json) -> bool:
    """Whether the answer to a problem would be another without a rule."""
    changed = json.loads(json.dumps(question))
    KNOBS[knob](changed)
    return changed != question and ours(changed) != answer


def decisive(question: Json) -> set[str]:
    """The rules that decide a problem."""
    answer = ours(question)
    return {knob for knob in KNOBS if decides(knob, question, answer)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints how many generated problems each rule decides; 1 where one decides none."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-n", type=int, default=300, help="how many problems")
    parser.add_argument("--seed", default="knobs")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    for number in range(options.n):
        identifier = f"{options.seed}-{number}"
        counts.update(decisive(problem(Random(identifier), identifier)))
    for knob in KNOBS:
        sys.stdout.write(f"{counts[knob]:6} {knob}\n")
    return 1 if any(not counts[knob] for knob in KNOBS) else 0


if __name__ == "__main__":
    sys.exit(main())
