"""The words for a selector that is false: the clause that decides, with the device's values.

`device.attributes["gpu.example.com"].cudaComputeCapability.isGreaterThan(semver("9.0.0"))` on a
device with 7.5.0 reads "cudaComputeCapability 7.5.0 is not greater than 9.0.0". Only the wording is
made here, from the source text; whether a clause holds is asked of CEL. A clause in no known form
is shown as it is, followed by the values that it mentions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reference_allocator.cel import (
    CelCompileError,
    CelFeatures,
    CelRuntimeError,
    CelUnsupportedError,
    compile_selector,
)
from reference_allocator.environment import convert_device

_REFERENCE = (
    r"device\.(?P<map>attributes|capacity)"
    r"(?:\[(?P<quote>['\"])(?P<domain>[^'\"]+)(?P=quote)\]|\.(?P<bare>\w+))\.(?P<id>\w+)"
)
_REFERENCES = re.compile(_REFERENCE)
_LITERAL = r"(?:semver|quantity)?\(?(?P<literal>\"[^\"]*\"|'[^']*'|[-\w.]+)\)?"
_METHODS = {"isGreaterThan": "is not greater than", "isLessThan": "is not less than"}
_OPERATORS = {
    "==": "is not",
    "!=": "is",
    ">": "is not greater than",
    ">=": "is less than",
    "<": "is not less than",
    "<=": "is greater than",
}
_METHOD = re.compile(rf"{_REFERENCE}\.(?P<method>\w+)\({_LITERAL}\)\Z")
_COMPARED = re.compile(
    rf"{_REFERENCE}\.compareTo\({_LITERAL}\)\s*(?P<operator>==|!=|>=|<=|>|<)\s*0\Z"
)
_OPERATION = re.compile(rf"{_REFERENCE}\s*(?P<operator>==|!=|>=|<=|>|<)\s*{_LITERAL}\Z")


def explain_false(
    expression: str, driver: str, device: Mapping[str, Any], environment: CelFeatures
) -> str:
    """Say what decided that an expression is false for a v1 Device.

    ``expression``: a CEL selector that is false for the device.
    """
    clause = _deciding_clause(expression, driver, device, environment)
    comparison = _parse_comparison(clause, driver, device)
    if comparison is not None:
        groups, words, value = comparison
        literal = groups["literal"].strip("\"'")
        return f"{groups['id']} {value} {words} {literal}"
    values = ", ".join(_mentioned_values(clause, driver, device))
    return f"{clause}; {values}" if values else clause


def suggest_value(
    expression: str, driver: str, device: Mapping[str, Any], environment: CelFeatures
) -> tuple[str, str, str, str] | None:
    """Return how a selector that is false for a device could ask for what the device has.

    Returns the attribute's or capacity's name, the literal that it is compared with, the device's
    value, and the expression with that; None where no known form of a comparison decides.
    """
    clause = _deciding_clause(expression, driver, device, environment)
    comparison = _parse_comparison(clause, driver, device)
    if comparison is None:
        return None
    groups, _, value = comparison
    literal: str = groups["literal"]
    quote = literal[0] if literal[0] in "\"'" else ""
    head, _, tail = clause.rpartition(literal)
    changed = expression.replace(clause, f"{head}{quote}{value}{quote}{tail}", 1)
    return groups["id"], literal.strip("\"'"), value, changed


def _parse_comparison(
    clause: str, driver: str, device: Mapping[str, Any]
) -> tuple[dict[str, Any], str, str] | None:
    """Return the groups of a clause of a known form, its opposite in words, the device's value."""
    for pattern in (_METHOD, _COMPARED, _OPERATION):
        match = pattern.match(clause)
        if match is None:
            continue
        groups = match.groupdict()
        words = _METHODS.get(groups.get("method") or "") or _OPERATORS.get(
            groups.get("operator") or ""
        )
        value = _published_value(groups, driver, device)
        if words is not None and value is not None:
            return groups, words, value
    return None


def _deciding_clause(
    expression: str, driver: str, device: Mapping[str, Any], environment: CelFeatures
) -> str:
    """Return the first of the clauses joined by `&&` that is false by itself."""
    clauses = list(_split_clauses(expression))
    if len(clauses) < 2:
        return expression.strip()
    for clause in clauses:
        try:
            selector = compile_selector(clause, features=environment)
            if not selector.matches(convert_device(environment, driver, device)):
                return clause
        except (CelCompileError, CelRuntimeError, CelUnsupportedError):
            return expression.strip()
    return expression.strip()


def _split_clauses(expression: str) -> Iterator[str]:
    """Yield the clauses of a conjunction; another expression is one clause."""
    cuts = [0]
    for position in _positions_outside(expression):
        if expression.startswith("||", position) or expression.startswith(" ? ", position):
            yield expression.strip()
            return
        if expression.startswith("&&", position):
            cuts.append(position + 2)
    for begin, end in zip(cuts, [*(cut - 2 for cut in cuts[1:]), len(expression)], strict=True):
        yield expression[begin:end].strip()


def _positions_outside(expression: str) -> Iterator[int]:
    """Yield the positions that are in no brackets and in no string."""
    depth, quote, escaped = 0, "", False
    for position, char in enumerate(expression):
        if quote:
            if char == quote and not escaped:
                quote = ""
            escaped = char == "\\" and not escaped
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif not depth:
            yield position


def _mentioned_values(clause: str, driver: str, device: Mapping[str, Any]) -> Iterator[str]:
    texts_so_far: set[str] = set()
    for match in _REFERENCES.finditer(clause):
        value = _published_value(match.groupdict(), driver, device)
        text = f"{match['id']} is {'not set' if value is None else value}"
        if text not in texts_so_far:
            texts_so_far.add(text)
            yield text
    if "device.driver" in clause:
        yield f"driver is {driver}"


def _published_value(
    groups: Mapping[str, Any], driver: str, device: Mapping[str, Any]
) -> str | None:
    """Return the text of an attribute or a capacity, or None where the device has none."""
    published = device.get(groups["map"]) or {}
    domain = groups["domain"] or groups["bare"]
    entry = published.get(f"{domain}/{groups['id']}")
    if entry is None and domain == driver:
        entry = published.get(groups["id"])
    if not isinstance(entry, Mapping):
        return None
    for value in entry.values():
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (str, int)):
            return str(value)
        if isinstance(value, list):
            return "[" + ", ".join(str(item) for item in value) + "]"
    return None
