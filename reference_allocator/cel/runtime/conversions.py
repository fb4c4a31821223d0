"""``int()``, ``string()`` and the other conversions between types.

Source: the ``ConvertToType`` methods of cel-go's ``common/types``. Text is parsed and printed as
Go's strconv and time packages do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime import times, values
from reference_allocator.cel.runtime.maps import unmap_key

_LARGE: Final = 6
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_HEX_FLOAT: Final = re.compile(
    r"[-+]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+"
)
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?:inf|infinity)|nan",
    re.IGNORECASE,
)


def _string_to_int(text: str) -> int:
    if not _INTEGER.fullmatch(text) or len(text) > 400:
        raise times.conversion_error("int")
    value = int(text)
    if not values.INT_MIN <= value <= values.INT_MAX:
        raise times.conversion_error("int")
    return value


def _string_to_uint(text: str) -> values.UInt:
    if not re.fullmatch(r"[0-9]+", text) or len(text) > 400 or int(text) > values.UINT_MAX:
        raise times.conversion_error("uint")
    return values.UInt(int(text))


def string_to_double(text: str) -> float:
    """Parse as Go's ParseFloat: decimal or hexadecimal, with underscores between digits."""
    digit_class = "0-9a-fA-FxX" if re.match(r"[+-]?0[xX]", text) else "0-9"
    digits = re.sub(rf"(?<=[{digit_class}])_(?=[{digit_class.rstrip('xX')}])", "", text)
    hexadecimal = _HEX_FLOAT.fullmatch(digits) is not None
    if not (hexadecimal or _FLOAT.fullmatch(digits)):
        raise times.conversion_error("double")
    try:
        value = float.fromhex(digits) if hexadecimal else float(digits)
    except OverflowError:
        raise times.conversion_error("double") from None
    if math.isinf(value) and not re.search("inf", text, re.IGNORECASE):
        raise times.conversion_error("double")
    return value


def _string_to_bool(text: str) -> bool:
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise times.conversion_error("bool")


def _double_to_int(value: float) -> int:
    # Go refuses the bounds themselves, because a double near them is not exact.
    if not math.isfinite(value) or not values.INT_MIN < value < values.INT_MAX:
        raise CelRuntimeError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> values.UInt:
    if not math.isfinite(value) or not 0 <= value < values.UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return values.UInt(int(value))


def _uint_to_int(value: values.UInt) -> int:
    if value > values.INT_MAX:
        raise CelRuntimeError("integer overflow")
    return int(value)


def _int_to_uint(value: int) -> values.UInt:
    if value < 0:
        raise CelRuntimeError("unsigned integer overflow")
    return values.UInt(value)


def format_double(value: float) -> str:
    """Format as Go's ``%g``: the shortest exact text, exponents from 1e+06 and 1e-05 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    mantissa, _, exponent_text = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    exponent = int(exponent_text or 0) + len(whole) - 1 - leading
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0"
    if exponent < -4 or exponent >= _LARGE:
        decimals = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{decimals}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelRuntimeError("invalid UTF-8 in bytes, cannot convert to string") from None


def to_string(value: Any) -> str:
    """Evaluate ``string(value)`` for the types that have it."""
    converted: str = OVERLOADS[TO_STRING[values.type_name(value)]](value)
    return converted


def _same(value: Any) -> Any:
    return value


def show_value(value: Any) -> str:
    """Return a value as messages show it: Go's ``%v``."""
    name = values.type_name(value)
    if name in _SHOWN:
        return _SHOWN[name](value)
    if name == "list":
        return f"[{', '.join(map(show_value, value))}]"
    if name == "map":
        entries = (
            f"{show_value(unmap_key(key))}: {show_value(item)}" for key, item in value.items()
        )
        return f"{{{', '.join(entries)}}}"
    if name == "optional_type":
        return f"optional({show_value(value.value)})" if value.present else "optional.none()"
    return str(value)


_SHOWN: Final[dict[str, Callable[[Any], str]]] = {
    "bool": lambda value: "true" if value else "false",
    "bytes": lambda value: f"[{' '.join(map(str, value))}]",
    "double": format_double,
    "google.protobuf.Duration": times.show_duration,
    "google.protobuf.Timestamp": times.show_timestamp,
    "kubernetes.NamedFormat": lambda value: str(value.name),
    "null_type": lambda _: "0",
    "type": lambda value: str(value.name),
}


def _no_duration(_value: Any) -> Any:
    raise CelRuntimeError("type conversion error from 'int' to 'google.protobuf.Duration'")


TO_STRING: Final = {
    "string": "string_to_string",
    "bool": "bool_to_string",
    "bytes": "bytes_to_string",
    "double": "double_to_string",
    "google.protobuf.Duration": "duration_to_string",
    "int": "int64_to_string",
    "google.protobuf.Timestamp": "timestamp_to_string",
    "uint": "uint64_to_string",
}

_UNCHANGED: Final = """
    bool_to_bool bytes_to_bytes double_to_double duration_to_duration to_dyn
    int64_to_int64 string_to_string timestamp_to_timestamp uint64_to_uint64
""".split()

OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    **dict.fromkeys(_UNCHANGED, _same),
    "string_to_bool": _string_to_bool,
    "string_to_bytes": lambda text: text.encode(),
    "int64_to_double": float,
    "uint64_to_double": float,
    "string_to_double": string_to_double,
    "string_to_duration": times.parse_duration,
    "int64_to_duration": _no_duration,  # declared up to 1.36, but without an implementation
    "double_to_int64": _double_to_int,
    "duration_to_int64": lambda value: value.nanos,
    "string_to_int64": _string_to_int,
    "timestamp_to_int64": times.unix_seconds,
    "uint64_to_int64": _uint_to_int,
    "bool_to_string": lambda value: "true" if value else "false",
    "bytes_to_string": _bytes_to_string,
    "double_to_string": format_double,
    "duration_to_string": times.format_duration,
    "int64_to_string": str,
    "timestamp_to_string": times.format_timestamp,
    "uint64_to_string": lambda value: str(int(value)),
    "int64_to_timestamp": times.timestamp_from_seconds,
    "string_to_timestamp": times.parse_timestamp,
    "double_to_uint64": _double_to_uint,
    "int64_to_uint64": _int_to_uint,
    "string_to_uint64": _string_to_uint,
    "type": lambda value: values.TypeValue(values.type_name(value)),
}
