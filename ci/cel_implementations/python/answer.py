"""Answers selectors with an implementation of CEL in Python; the argument is the package.

Versions and quantities are bound as strings.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]
Evaluate = Callable[[str, Json], object]
"""Evaluates an expression with a device."""


def by_domain(driver: str, values: Mapping[str, Json]) -> dict[str, Json]:
    """Attributes or capacities by domain and name."""
    domains: dict[str, Json] = {}
    for name, value in values.items():
        domain, _, short = name.rpartition("/")
        domains.setdefault(domain or driver, {})[short] = next(iter(value.values()))
    return domains


def cel_python() -> Evaluate:
    """With cel-python."""
    celpy = importlib.import_module("celpy")

    def evaluate(expression: str, device: Json) -> object:
        environment = celpy.Environment()
        program = environment.program(environment.compile(expression))
        match = program.evaluate({"device": celpy.json_to_cel(device)})
        return bool(match) if isinstance(match, celpy.celtypes.BoolType) else match

    return evaluate


def common_expression_language() -> Evaluate:
    """With common-expression-language, which is a crate of Rust within."""
    cel = importlib.import_module("cel")
    return lambda expression, device: cel.evaluate(expression, {"device": device})


def cel_expr_python() -> Evaluate:
    """With cel-expr-python, which is cel-cpp within, and the extensions that it has."""
    cel = importlib.import_module("cel_expr_python.cel")
    strings = importlib.import_module("cel_expr_python.ext.ext_strings")
    optional = importlib.import_module("cel_expr_python.ext.ext_optional")
    environment = cel.NewEnv(
        variables={"device": cel.Type.DYN},
        extensions=[strings.ExtStrings(), optional.ExtOptional()],
    )

    def evaluate(expression: str, device: Json) -> object:
        return environment.compile(expression).eval(data={"device": device}).plain_value()

    return evaluate


PACKAGES: Mapping[str, Callable[[], Evaluate]] = {
    "cel-python": cel_python,
    "common-expression-language": common_expression_language,
    "cel-expr-python": cel_expr_python,
}


def answer(question: Json, evaluate: Evaluate) -> Json:
    """What a selector makes of a device: match, or error."""
    device = question["device"]
    bound = {
        "driver": device["driver"],
        "attributes": by_domain(device["driver"], device["attributes"]),
        "capacity": by_domain(device["driver"], device["capacity"]),
    }
    try:
        match = evaluate(question["expression"], bound)
    except BaseException as error:  # noqa: BLE001 -- a panic of Rust is an answer, too
        return {"error": str(error)}
    return {"match": match} if isinstance(match, bool) else {"error": f"no bool: {match}"}


def main() -> None:
    """Answer the lines of standard input."""
    evaluate = PACKAGES[sys.argv[1]]()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"], **answer(asked, evaluate)}), flush=True)


if __name__ == "__main__":
    main()
