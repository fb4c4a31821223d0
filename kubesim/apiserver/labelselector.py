"""Label selectors, read as k8s.io/apimachinery/pkg/labels/selector.go reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from kube.errors import ApiError
from reference_allocator.api.names import label_key_problems, label_value_problems
from reference_allocator.api.quoting import go_quote

_WORD: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|$)")
_SYMBOLS: Final = frozenset({"==", "!=", *"=!(),<>", ""})
_OPERATORS: Final = frozenset({"in", "notin", "=", "==", "!=", ">", "<"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")

Labels = Mapping[str, str]
Requirement = Callable[[Labels], bool]


def parse_label_selector(text: str) -> Requirement:
    """Return the predicate of labels that a selector is. Raises ApiError: 400, it is malformed."""
    requirements = _Parser(text).parse()
    return lambda labels: all(requirement(labels) for requirement in requirements)


class _Parser:
    def __init__(self, text: str) -> None:
        self._words = [match[1] for match in _WORD.finditer(text)]
        self._position = 0

    @property
    def _next(self) -> str:
        """The symbol that comes next; empty at the end."""
        return self._words[min(self._position, len(self._words) - 1)]

    def _consume(self) -> str:
        symbol = self._next
        self._position += 1
        return symbol

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while self._next:
            if self._next in _SYMBOLS and self._next != "!":
                _refuse(f"found '{self._next}', expected: !, identifier, or 'end of string'")
            requirements.append(self._parse_requirement())
            symbol = self._consume()
            if not symbol:
                break
            if symbol != ",":
                _refuse(f"found '{symbol}', expected: ',' or 'end of string'")
            if self._next in _SYMBOLS and self._next != "!":
                _refuse(f"found '{self._next}', expected: identifier after ','")
        return requirements

    def _parse_requirement(self) -> Requirement:
        absent = self._next == "!"
        if absent:
            self._consume()
        key = self._consume()
        if key in _SYMBOLS:
            _refuse_requirement(f"found '{key}', expected: identifier")
        _check_key(key, "<nil>")
        if self._next in ("", ","):
            return lambda labels: (key in labels) != absent
        operator = self._consume()
        if operator not in _OPERATORS:
            listed = "in, notin, =, ==, !=, gt, lt"
            _refuse_requirement(f"found '{operator}', expected: {listed}")
        values = self._parse_values() if operator in ("in", "notin") else {self._parse_value()}
        return _make_requirement(key, operator, values)

    def _parse_value(self) -> str:
        if self._next in ("", ","):
            return ""
        value = self._consume()
        if value in _SYMBOLS:
            _refuse_requirement(f"found '{value}', expected: identifier")
        return value

    def _parse_values(self) -> set[str]:
        symbol = self._consume()
        if symbol != "(":
            _refuse_requirement(f"found '{symbol}' expected: '('")
        if self._next == ")":
            self._consume()
            return {""}
        if self._next in _SYMBOLS and self._next != ",":
            _refuse_requirement(f"found '{self._next}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while self._next != ")":
            symbol = self._consume()
            if symbol == ",":
                if not values or self._next in (")", ","):
                    values.add("")
            elif symbol in _SYMBOLS:
                _refuse_requirement(f"found '{symbol}', expected: ',', or identifier")
            else:
                values.add(symbol)
                if self._next not in (",", ")"):
                    _refuse_requirement(f"found '{self._next}', expected: ',' or ')'")
        self._consume()
        return values


def _make_requirement(key: str, operator: str, values: set[str]) -> Requirement:
    """Return the predicate of one requirement (``NewRequirement``). Raises ApiError."""
    ordered = sorted(values)
    errors = []
    for index, value in enumerate(ordered):
        if operator in "<>" and not _INTEGER.fullmatch(value):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            errors.append(f"values[{index}]: Invalid value: {go_quote(value)}: {why}")
    for index, value in enumerate(ordered):
        if problems := "; ".join(label_value_problems(value)):
            errors.append(f"values[{index}][{key}]: Invalid value: {go_quote(value)}: {problems}")
    if errors:
        _refuse_requirement(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    if operator in "<>":
        limit, is_more = int(ordered[0]), operator == ">"
        return lambda labels: _compares(labels.get(key, ""), limit, is_more=is_more)
    is_excluding = operator in ("notin", "!=")
    return lambda labels: (key in labels and labels[key] in values) != is_excluding


def _compares(value: str, limit: int, *, is_more: bool) -> bool:
    if not _INTEGER.fullmatch(value):
        return False
    return int(value) > limit if is_more else int(value) < limit


def _check_key(key: str, path: str) -> None:
    if problems := "; ".join(label_key_problems(key)):
        _refuse_requirement(f"{path}: Invalid value: {go_quote(key)}: {problems}")


def _refuse_requirement(why: str) -> NoReturn:
    _refuse(f"unable to parse requirement: {why}")


def _refuse(why: str) -> NoReturn:
    raise ApiError(400, "BadRequest", why)
