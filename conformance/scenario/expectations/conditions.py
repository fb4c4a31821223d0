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


def differences(expected: Any, found: Any, path: str = "$") -> Iterator[str]:
    """Yield one line for each place where ``found`` is not as ``expected`` says."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            yield f"{path}: expected an object, found {short(found)}"
            return
        for key, value in expected.items():
            if key not in found:
                yield f"{path}.{key}: expected {short(value)}, found nothing"
            else:
                yield from differences(value, found[key], f"{path}.{key}")
    elif isinstance(expected, list):
        if not isinstance(found, list):
            yield f"{path}: expected a list, found {short(found)}"
            return
        if len(expected) != len(found):
            yield f"{path}: expected {len(expected)} elements, found {len(found)}: {short(found)}"
            return
        for index, (left, right) in enumerate(zip(expected, found, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):
        yield f"{path}: expected {short(expected)}, found {short(found)}"


def short(value: Any, limit: int = 160) -> str:
    """A value as text, cut off where it is long."""
    return cut(repr(value), limit)


_READ: Final = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?<![\w.])(?P<variable>[A-Za-z_]\w*)"
    r"(?P<path>(?:\.[A-Za-z_]\w*(?!\w*\()|\[(?:\d+|'[^'\\]*'|\"[^\"\\]*\")\])*)"
)
"""A literal text, or a variable with the fields that are read from it; no names of functions."""
_MOST_SECONDS: Final = 10.0
"""For one condition: loops in loops over many objects need not end in any time."""


def unmet(expressions: Sequence[str], variables: Mapping[str, Any]) -> Iterator[str]:
    """One line for each CEL expression that is not true, with the values that it reads.

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
        read = "".join(f"; {line}" for line in _values(expression, variables))
        yield f"{expression} {result}{read}"


def _values(expression: str, variables: Mapping[str, Any]) -> Iterator[str]:
    """What an expression reads from its variables, each value once."""
    seen = set()
    for match in _READ.finditer(expression):
        name, path = match["variable"], match["path"] or ""
        if name not in variables or name + path in seen:
            continue
        seen.add(name + path)
        value = variables[name]
        if path:
            try:
                yield f"{name}{path} is {short(value_at(value, path))}"
            except LookupError:
                yield f"{name}{path} is not there"
        elif isinstance(value, list):
            names = [(obj.get("metadata") or {}).get("name") or short(obj) for obj in value]
            yield f"{name} are {', '.join(map(str, names)) or 'none'}"
