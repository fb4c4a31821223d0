"""What Go's decoders say of a text that is no JSON (encoding/json) or no YAML (go-yaml).

Both see bytes, so an umlaut is named by the first of its two.
"""

from __future__ import annotations

import re
from typing import Final

import yaml
from yaml.scanner import ScannerError

from reference_allocator.api.quoting import go_quote

_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)?")
_END: Final = "unexpected end of JSON input"

_EXPECTED: Final = re.compile(r"expected (?:the )?(.*?)(?:, but (?:found|got) .*)?")
_RENAMED: Final = {
    "mapping values are not allowed here": "mapping values are not allowed in this context",
}


class _SyntaxError(Exception):
    """``args``: where, and what is being read there."""


def explain_json(data: bytes) -> str:
    """Return what Go's JSON decoder says of a text; empty if it is JSON."""
    text = data.decode("latin-1")
    try:
        _scan(text)
    except _SyntaxError as error:
        position, context = error.args
        if position >= len(text):
            return _END
        character = text[position]
        shown = {"'": r"\'", '"': '"'}.get(character) or go_quote(character)[1:-1]
        return f"invalid character '{shown}' {context}"
    return ""


def _scan(text: str) -> None:
    """Read a JSON text. Raises _SyntaxError."""
    ends: list[str] = []  # of the objects and arrays that are open
    state, position = "value", 0
    while True:
        position = _skip(text, position)
        character = text[position : position + 1]
        if state == "end":
            if character:
                raise _SyntaxError(position, "after top-level value")
            return
        if character and state in ("first key", "first value") and character == ends[-1]:
            ends.pop()
            position, state = position + 1, "after" if ends else "end"
        elif state in ("value", "first value"):
            position, opened = _scan_value(text, position)
            ends += opened
            state = {"}": "first key", "]": "first value"}.get(opened, "after" if ends else "end")
        elif state in ("key", "first key"):
            if character != '"':
                raise _SyntaxError(position, "looking for beginning of object key string")
            position = _skip(text, _scan_string(text, position))
            if text[position : position + 1] != ":":
                raise _SyntaxError(position, "after object key")
            position, state = position + 1, "value"
        elif character == ",":
            position, state = position + 1, "key" if ends[-1] == "}" else "value"
        elif character == ends[-1]:
            ends.pop()
            position, state = position + 1, "after" if ends else "end"
        else:
            place = "object key:value pair" if ends[-1] == "}" else "array element"
            raise _SyntaxError(position, f"after {place}")


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None  # it matches nothing, too
    return match.end()


def _scan_value(text: str, position: int) -> tuple[int, str]:
    """Return where a value ends, and how the object or array ends that begins there."""
    character = text[position : position + 1]
    if character in ("{", "["):
        return position + 1, "}" if character == "{" else "]"
    if character == '"':
        return _scan_string(text, position), ""
    if character in _LITERALS:
        literal = _LITERALS[character]
        for offset, expected in enumerate(literal):
            if text[position + offset : position + offset + 1] != expected:
                context = f"in literal {literal} (expecting '{expected}')"
                raise _SyntaxError(position + offset, context)
        return position + len(literal), ""
    if character and character in "-0123456789":
        return _scan_number(text, position), ""
    raise _SyntaxError(position, "looking for beginning of value")


def _scan_string(text: str, position: int) -> int:
    match = _STRING.match(text, position)
    assert match is not None  # its first character was seen
    end = match.end()
    if text[end : end + 1] == '"':
        return end + 1
    if text[end : end + 1] != "\\":
        raise _SyntaxError(end, "in string literal")
    if text[end + 1 : end + 2] != "u":
        raise _SyntaxError(end + 1, "in string escape code")
    digits = re.compile(r"[0-9a-fA-F]*").match(text, end + 2)
    assert digits is not None
    raise _SyntaxError(digits.end(), r"in \u hexadecimal character escape")


def _scan_number(text: str, position: int) -> int:
    match = _NUMBER.match(text, position)
    assert match is not None
    if match[0] == "-":
        raise _SyntaxError(match.end(), "in numeric literal")
    end = match.end()
    if text[end : end + 1] == ".":
        end = _scan_digits(text, end + 1, "after decimal point in numeric literal")
    if text[end : end + 1] in ("e", "E"):
        signed = text[end + 1 : end + 2] in ("+", "-")
        end = _scan_digits(text, end + 1 + signed, "in exponent of numeric literal")
    return end


def _scan_digits(text: str, position: int, context: str) -> int:
    digits = re.compile(r"[0-9]*").match(text, position)
    assert digits is not None
    if not digits[0]:
        raise _SyntaxError(position, context)
    return digits.end()


def explain_yaml(error: Exception) -> str:
    """Return what go-yaml says of a text of which PyYAML says this."""
    if not isinstance(error, yaml.MarkedYAMLError) or not error.problem:
        return f"yaml: {error}"
    problem = error.problem
    if expected := _EXPECTED.fullmatch(problem):
        problem = f"did not find expected {expected[1]}"
    problem = re.sub(r"^found character '.*' that", "found character that", problem)
    # As ``fail`` of its decoder counts: from 0, but in the scanner.
    lines = (mark.line for mark in (error.context_mark, error.problem_mark) if mark is not None)
    line = next((line for line in lines if line), 0)
    if line and isinstance(error, ScannerError):
        line += 1
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{_RENAMED.get(problem, problem)}"
