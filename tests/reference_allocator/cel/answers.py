"""Our answer to a question of the oracle, in the oracle's format, and what may differ in it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from reference_allocator.cel import (
    COST_LIMIT,
    CelCompileError,
    CelDevice,
    CelFeatures,
    CelRuntimeError,
    CelUnsupportedError,
    DerivedAttribute,
    compile_derived,
    compile_selector,
)
from reference_allocator.cel.environment.tables import LATEST

Json = dict[str, Any]

GOLDEN: Final = Path(__file__).parent / "golden"


@cache
def known() -> dict[str, dict[str, str]]:
    """Reasons: "answer" and "cost" per expression, "kinds" for differences the fuzzer explains."""
    reasons: dict[str, dict[str, str]] = json.loads(
        (GOLDEN / "known-differences.json").read_text(encoding="utf-8")
    )
    return reasons


def lines(path: Path) -> list[Json]:
    """The objects of an NDJSON file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def features(question: Json, kubernetes: str = LATEST) -> CelFeatures:
    """The features of a question; absent ones are off, as in Go."""
    gates = question.get("features", {})
    stored = question.get("env", "StoredExpressions") == "StoredExpressions"
    if stored and kubernetes == LATEST:
        return CelFeatures()
    return CelFeatures(
        consumable_capacity=gates.get("consumableCapacity", False),
        list_type_attributes=gates.get("listTypeAttributes", False),
        stored=stored,
        kubernetes=kubernetes,
    )


def ours(question: Json, kubernetes: str = LATEST) -> Json:
    """The answer in the oracle's format."""
    expression, options = question["expression"], features(question, kubernetes)
    limit = question.get("costLimit", COST_LIMIT)
    lists = kubernetes == LATEST or (kubernetes == "1.36" and options.list_type_attributes)
    driver = question["device"]["driver"]
    try:
        if question.get("derived"):
            derived = compile_derived(expression, features=options, cost_limit=limit)
            answer = {"type": derived.type.declared, "maxCost": derived.max_cost}
            return answer | _attribute(derived, driver, question["device"])
        selector = compile_selector(expression, features=options, cost_limit=limit)
    except CelCompileError as error:
        return {"compileError": str(error)}
    answer = {"type": selector.type.declared, "maxCost": selector.max_cost}
    try:
        device = CelDevice.from_api(driver, question["device"], lists=lists)
    except CelRuntimeError as error:
        return answer | {"error": str(error)}
    try:
        match = selector.matches(device)
    except CelRuntimeError as error:
        return answer | {"error": str(error)}
    except CelUnsupportedError:
        return answer | {"unsupported": True}
    return answer | {"match": match, "cost": selector.evaluate_with_cost(device)[1]}


def _attribute(derived: DerivedAttribute, driver: str, device: Json) -> Json:
    try:
        attribute = derived.attribute(CelDevice.from_api(driver, device))
    except CelRuntimeError as error:
        return {"error": str(error)}
    except CelUnsupportedError:
        return {"unsupported": True}
    # Go leaves an empty list out of the JSON text.
    return {"attribute": {name: value for name, value in attribute.items() if value != []}}


def comparable(answer: Json) -> Json:
    """What has to be the same; costs are compared where there is a value."""
    keys = [
        "match",
        "attribute",
        "error",
        "compileError",
        "type",
        "maxCost",
        "invalid",
        "unsupported",
    ]
    if "match" in answer:
        keys.append("cost")
    return {key: answer[key] for key in keys if key in answer}
