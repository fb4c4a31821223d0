"""Whether objects are as described: by a partial match, or by CEL conditions over them.

Mappings are compared by the keys that are given. Lists are compared element by element and must be
equally long, because in the Kubernetes API their order mostly has a meaning; for "contains" there
is CEL.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.scenario.driver.variables import value_at
from kube.base.errors import UsageError
from kube.base.text import cut


def explain_differences(expected: Any, actual: Any, path: str = "$") -> Iterator[str]:
    """Yield one line for each place where ``actual`` is not as ``expected`` says."""
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            yield f"{path}: expected an object, found {shorten_value(actual)}"
            return
        for key, value in expected.items():
            if key not in actual:
                yield f"{path}.{key}: expected {shorten_value(value)}, found nothing"
            else:
                yield from explain_differences(value, actual[key], f"{path}.{key}")
    elif isinstance(expected, list):
        if not isinstance(actual, list):
            yield f"{path}: expected a list, found {shorten_value(actual)}"
            return
        if len(expected) != len(actual):
            text = shorten_value(actual)
            yield f"{path}: expected {len(expected)} elements, found {len(actual)}: {text}"
            return
        for index, (expected_element, actual_element) in enumerate(
            zip(expected, actual, strict=True)
        ):
            yield from explain_differences(expected_element, actual_element, f"{path}[{index}]")
    elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        yield f"{path}: expected {shorten_value(expected)}, found {shorten_value(actual)}"


def shorten_value(value: Any, limit: int = 160) -> str:
    """Return a value as text, cut off where it is long."""
    return cut(repr(value), limit)


_READ_VALUE: Final = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?<![\w.])(?P<variable>[A-Za-z_]\w*)"
    r"(?P<path>(?:\.[A-Za-z_]\w*(?!\w*\()|\[(?:\d+|'[^'\\]*'|\"[^\"\\]*\")\])*)"
)
"""A literal text, or a variable with the fields that are read from it; no names of functions."""
_MOST_SECONDS: Final = 10.0
"""For one condition: loops in loops over many objects need not end in any time."""


def explain_unmet(expressions: Sequence[str], variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line for each CEL expression that is not true, with the values that it reads.

    ``variables``: name -> an object or a list of them. An expression that does not compile is a
    UsageError.
    """
    if not expressions:
        return
    from reference_allocator.cel import (
        DYN,
        CelCompileError,
        CelRuntimeError,
        CelUnsupportedError,
        compile_expression,
    )

    for expression in expressions:
        try:
            program = compile_expression(expression, dict.fromkeys(variables, DYN))
        except CelCompileError as error:
            raise UsageError(f"cel: {expression!r}: {error}") from None
        try:
            value = program.evaluate(variables, deadline=time.monotonic() + _MOST_SECONDS)
        except (CelRuntimeError, CelUnsupportedError) as error:
            result = f"is an error: {error}"
        else:
            if value is True:
                continue
            result = f"is {str(value).lower()}"
        values_text = "".join(f"; {line}" for line in _describe_read_values(expression, variables))
        yield f"{expression} {result}{values_text}"


def _describe_read_values(expression: str, variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an expression reads from its variables, each value once."""
    described = set()
    for match in _READ_VALUE.finditer(expression):
        name, path = match["variable"], match["path"] or ""
        if name not in variables or name + path in described:
            continue
        described.add(name + path)
        value = variables[name]
        if path:
            try:
                yield f"{name}{path} is {shorten_value(value_at(value, path))}"
            except LookupError:
                yield f"{name}{path} is not there"
        elif isinstance(value, list):
            names = [(obj.get("metadata") or {}).get("name") or shorten_value(obj) for obj in value]
            yield f"{name} are {', '.join(map(str, names)) or 'none'}"
