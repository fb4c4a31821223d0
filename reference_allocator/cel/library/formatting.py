"""The clauses of ``"%s is %.2f".format([...])`` (cel-go ``ext/formatting.go``).

Fixed and scientific notation follow the en-US locale, as cel-go's version 2 of the library does:
thousands are grouped, and exponents are written with a multiplication sign.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from reference_allocator.api.quoting import go_quote
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.conversions import TO_STRING, to_string
from reference_allocator.cel.runtime.maps import unmap_key
from reference_allocator.cel.runtime.values import UInt, type_name

CLAUSE_ERRORS: Final = {
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists,"
        " types, durations, and timestamps, was given {}"
    ),
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}
_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 10_000
_CLAUSE: Final = re.compile(r"%(?:(\.)([0-9]*))?(.)?", re.DOTALL)
_SUPERSCRIPTS: Final = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


class Clause(NamedTuple):
    """A clause such as ``%.2f``: its letter, and its precision if it says one."""

    letter: str
    precision: int | None


def parse_clauses(text: str, count: int) -> Iterator[str | Clause]:
    """Yield the parts of a text, in order: what is copied, and the clauses.

    Args:
        text: a text with clauses such as ``%s`` and ``%.2f``; ``%%`` is a percent sign.
        count: how many arguments there are; each clause takes one.

    Raises CelRuntimeError: a clause is ill-formed or has no argument.
    """
    position = used = 0
    while (start := text.find("%", position)) >= 0:
        yield text[position:start]
        if text.startswith("%%", start):
            yield "%"
            position = start + 2
            continue
        if used >= count and start + 1 < len(text):
            raise CelRuntimeError(f"index {used} out of range")
        clause, position = _parse_clause(text, start)
        yield clause
        used += 1
    yield text[position:]


def _parse_clause(text: str, start: int) -> tuple[Clause, int]:
    """Return the clause at ``start``, and where it ends."""
    if start + 1 >= len(text):
        raise CelRuntimeError("unexpected end of string")
    match = _CLAUSE.match(text, start)
    assert match is not None
    dot, digits, letter = match.groups()
    prefix = "could not parse formatting clause: "
    precision = None
    if dot:
        problem = "error while parsing precision: "
        if letter is None:
            raise CelRuntimeError(f"{prefix}{problem}could not find end of precision specifier")
        if not digits:
            raise CelRuntimeError(
                f"{prefix}{problem}error while converting precision to integer:"
                ' strconv.Atoi: parsing "": invalid syntax'
            )
        precision = int(digits[:9])
        if precision > _MAX_PRECISION:
            raise CelRuntimeError(f"{prefix}{problem}precision {digits} is beyond {_MAX_PRECISION}")
    if letter not in CLAUSE_ERRORS:
        first_byte = letter if ord(letter) < 0x80 else chr(letter.encode()[0])
        raise CelRuntimeError(f'{prefix}unrecognized formatting clause "{first_byte}"')
    return Clause(letter, precision), match.end()


def _clause_error(letter: str, value: Any) -> CelRuntimeError:
    message = CLAUSE_ERRORS[letter].format(type_name(value))
    return CelRuntimeError(f"error during formatting: {message}")


def _convert(value: Any) -> str:
    try:
        return to_string(value)
    except CelRuntimeError as error:
        message = f"could not convert argument {go_quote(str(error))} to string"
        raise CelRuntimeError(f"error during formatting: {message}") from None


def _format_in_list(value: Any) -> str:
    """Return a value inside a list or map as a CEL literal."""
    name = type_name(value)
    if name == "string":
        return go_quote(value)
    if name == "bytes":
        return "b" + go_quote(_convert(value))
    if name == "double":
        if not math.isfinite(value):
            return f'"{_fixed_text(value, 6)}"'
        return f"{value:.6f}"
    if name == "google.protobuf.Timestamp":
        return f"timestamp({go_quote(to_string(value))})"
    if name == "google.protobuf.Duration":
        return f"duration({go_quote(to_string(value))})"
    if name in ("int", "uint", "bool", "null_type", "type", "list", "map"):
        return _format_string(value)
    raise CelRuntimeError(f"error during formatting: no formatting function for {name}")


def _format_key(key: Any) -> str:
    if type_name(key) not in ("string", "bool", "int", "uint"):
        raise CelRuntimeError(
            f"error during formatting: no formatting function for map key of type {type_name(key)}"
        )
    return _format_in_list(key)


def _format_string(value: Any) -> str:
    name = type_name(value)
    if name == "list":
        return f"[{', '.join(map(_format_in_list, value))}]"
    if name == "map":
        pairs = sorted(
            (_format_key(unmap_key(key)), _format_in_list(item)) for key, item in value.items()
        )
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if value is None:
        return "null"
    if name == "type":
        return str(value.name)
    if name in TO_STRING:
        return _convert(value)
    raise _clause_error("s", value)


def _require_double(value: Any, letter: str) -> float:
    if value.__class__ is str and value in ("NaN", "Infinity", "-Infinity"):
        return float(value.replace("Infinity", "inf"))
    if value.__class__ is not float:
        raise _clause_error(letter, value)
    return float(value)


def _fixed_text(value: float, precision: int) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "\u221e" if value > 0 else "-\u221e"
    return f"{value:,.{precision}f}"


def _scientific_text(value: float, width: int) -> str:
    """Return the scientific notation, always of six digits: cel-go passes precision as a width."""
    if not math.isfinite(value):
        return _fixed_text(value, 0).rjust(width)
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    number = int(exponent)
    superscript = f"{'-' if number < 0 else ''}{abs(number):02d}".translate(_SUPERSCRIPTS)
    return f"{mantissa}\u00d710{superscript}".rjust(width)


def _format_clause(clause: Clause, value: Any) -> str:
    letter = clause.letter
    digits = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    if letter == "s":
        return _format_string(value)
    if letter == "f":
        return _fixed_text(_require_double(value, letter), digits)
    if letter == "e":
        return _scientific_text(_require_double(value, letter), digits)
    if letter == "b" and value.__class__ is bool:
        return str(int(value))
    if letter in "xX" and value.__class__ in (str, bytes):
        raw = value.encode() if isinstance(value, str) else bytes(value)
        return raw.hex().upper() if letter == "X" else raw.hex()
    if value.__class__ not in (int, UInt):
        raise _clause_error(letter, value)
    return format(int(value), letter)


def _format(text: str, values: list[Any]) -> str:
    arguments = iter(values)
    return "".join(
        piece if isinstance(piece, str) else _format_clause(piece, next(arguments))
        for piece in parse_clauses(text, len(values))
    )


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {"string_format": _format}
