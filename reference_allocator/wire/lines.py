"""One line in, one line out: what both kinds of questions have in common.

A line that cannot be read gives an answer too, `{"id", "invalid"}`, so that thousands of lines can
be run without the first bad one ending them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from reference_allocator.api.quantity import WrittenNumber
from reference_allocator.api.reading import InputError, describe_value, expect_object, read_string
from reference_allocator.api.schema import LIST, MAP, UnknownField, find_mistakes, types
from reference_allocator.cel import CelUnsupportedError

MAX_LINE: Final = 64 * 1024 * 1024
"""The longest line that is read, in bytes: a snapshot of 100,000 devices has about 51 MB."""

MAX_VALUES: Final = 2**22
"""How many lists, objects and items of them a line may have, which take far more memory than their
text does; a snapshot of 100,000 devices has half of it."""

_SEPARATORS: Final = "\u0085\u2028\u2029"
"""The characters that end a line for `str.splitlines` and other tools; JSON has them in strings."""

Json = dict[str, Any]


def answer_line(
    line: str | bytes,
    respond: Callable[[Mapping[str, Any]], Json],
    read_id: Callable[[Mapping[str, Any], str], object] = read_string,
) -> str:
    """Return the answer to a line, as one line without its end.

    Args:
        line: a JSON object with an `id`.
        respond: turns the decoded object into the other fields of the answer.
        read_id: reads the id, which the answer repeats, by default a text.
    """
    identifier: object = ""
    try:
        question = _decode(line)
        identifier = read_id(question, "id")
        body = respond(question)
    except InputError as error:
        unsupported = isinstance(error, CelUnsupportedError)
        body = {"unsupported": error.message} if unsupported else {"invalid": str(error)}
    text = json.dumps({"id": identifier, **body}, ensure_ascii=False, separators=(",", ":"))
    for separator in _SEPARATORS:
        text = text.replace(separator, f"\\u{ord(separator):04x}")
    return text


def _decode(line: str | bytes) -> Mapping[str, Any]:
    if len(line) > MAX_LINE:
        raise InputError(f"the line is longer than {MAX_LINE} bytes")
    if _count_values(line) > MAX_VALUES:
        raise InputError(f"the line has more than {MAX_VALUES} values")
    try:
        decoded = _loads(line)
        return expect_object(_replace_surrogates(decoded) if _has_escapes(line) else decoded)
    except RecursionError:
        raise InputError("the line is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8") from None
    except InputError:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise InputError(f"not JSON: {error}") from None


def _loads(line: str | bytes) -> object:
    return json.loads(
        line,
        object_pairs_hook=_refuse_duplicates,
        parse_constant=_refuse_constant,
        parse_float=WrittenNumber,
    )


def _has_escapes(line: str | bytes) -> bool:
    return "\\u" in line if isinstance(line, str) else b"\\u" in line


def _replace_surrogates(decoded: object) -> object:
    """Return the same with U+FFFD for half a surrogate pair, as Go's encoding/json decodes it."""
    text = json.dumps(decoded, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return decoded


def _count_values(line: str | bytes) -> int:
    """Estimate how many values a line has (those in texts count, too), without decoding it."""
    if isinstance(line, str):
        return sum(line.count(sign) for sign in "{[,")
    return sum(line.count(sign) for sign in (b"{", b"[", b","))


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> Json:
    obj = dict(pairs)
    if len(obj) < len(pairs):
        names_so_far: set[str] = set()
        for name, _ in pairs:
            if name in names_so_far:
                raise InputError(f'field "{name:.60}" is given twice')
            names_so_far.add(name)
    return obj


def _refuse_constant(text: str) -> object:
    raise InputError(f"not JSON: {text}")


_EXPECTED: Final = {
    "bool": "true or false",
    "int32": "an integer",
    "int64": "an integer",
    "quantity": "a quantity",
    "string": "a string",
    "time": "a time",
}


def check_form(value: object, shape: str) -> None:
    """Check a value against a shape of the table (`reference_allocator.api.schema`).

    ``shape``: for example ``resource/v1.ResourceSlice``.
    Raises InputError: the value has an unknown field, a wrong type or something that is nested too
    deeply; names the path.
    """
    if value is None:
        raise InputError(f"expected {_name_shape(shape)}, got null")
    for mistake in find_mistakes(shape, value):
        if isinstance(mistake, UnknownField):
            field_names = ", ".join(sorted(types()[mistake.owner]))
            raise InputError(f"unknown field; known are {field_names}", *mistake.path)
        if mistake.shape == "any":
            raise InputError(mistake.why, *mistake.path)
        text = f"expected {_name_shape(mistake.shape)}, got {describe_value(mistake.value)}"
        why = f": {mistake.why}" if mistake.why else ""
        raise InputError(text + why, *mistake.path)


def _name_shape(shape: str) -> str:
    if shape.startswith(LIST):
        return "a list"
    if shape.startswith(MAP) or shape in types():
        return "an object"
    return _EXPECTED[shape]
