"""Answers selectors with cel-python; versions and quantities are bound as strings."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import celpy

Json = dict[str, Any]


def by_domain(driver: str, values: Mapping[str, Json]) -> dict[str, Json]:
    """Attributes or capacities by domain and name."""
    domains: dict[str, Json] = {}
    for name, value in values.items():
        domain, _, short = name.rpartition("/")
        domains.setdefault(domain or driver, {})[short] = next(iter(value.values()))
    return domains


def answer(question: Json) -> Json:
    """What a selector makes of a device: match, or error."""
    device = question["device"]
    bound = {
        "driver": device["driver"],
        "attributes": by_domain(device["driver"], device["attributes"]),
        "capacity": by_domain(device["driver"], device["capacity"]),
    }
    environment = celpy.Environment()
    try:
        program = environment.program(environment.compile(question["expression"]))
        match = program.evaluate({"device": celpy.json_to_cel(bound)})
    except Exception as error:  # noqa: BLE001 -- whatever it raises is its answer
        return {"error": str(error)}
    if isinstance(match, (bool, celpy.celtypes.BoolType)):
        return {"match": bool(match)}
    return {"error": f"no bool: {match}"}


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], **answer(asked)}), flush=True)
