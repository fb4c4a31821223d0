"""Whether a Kubernetes object has only fields that exist, each of the right type.

A field that is dropped silently (a typing error, a version that is too new) would give an answer to
another question than the one that was asked. The fields are a table generated from the Go types of
one Kubernetes minor (`ci/upstream/fielddump`). Whether something is too large is a question of its
own (`reference_allocator.api.limits`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from reference_allocator.api.quantity import QuantityError, parse_quantity
from reference_allocator.api.reading import InputError, describe, mapping, only_known

_TABLE: Final = "fields-1.37.json"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z")
_INTEGERS: Final = {"int32": 2**31, "int64": 2**63}

_MAX_DEPTH: Final = 128
"""How deep the parameters of a driver may be nested; to the allocator they are only data."""


@cache
def _types() -> Mapping[str, Mapping[str, str]]:
    text = files("reference_allocator").joinpath("data", _TABLE).read_text(encoding="utf-8")
    table: Mapping[str, Mapping[str, str]] = json.loads(text)
    return table


def check_form(value: object, kind: str) -> None:
    """Checks a value against a type.

    Args:
        value: decoded JSON.
        kind: a type of the table ("ResourceSlice"), "string", "bool", "int32", "int64",
            "quantity", "time", "any", or a type after "[]" (list) or "{}" (object).

    Raises:
        InputError: an unknown field, a wrong type, or something that is nested too deeply;
            names the path.
    """
    if kind.startswith("[]"):
        _list(value, kind[2:])
    elif kind.startswith("{}"):
        _entries(value, kind[2:])
    elif kind in _types():
        _struct(value, kind)
    else:
        _scalar(value, kind)


def _list(value: object, kind: str) -> None:
    if not isinstance(value, list):
        raise InputError(f"expected a list, got {describe(value)}")
    for index, item in enumerate(value):
        try:
            check_form(item, kind)
        except InputError as error:
            raise error.under(index) from None


def _entries(value: object, kind: str) -> None:
    for name, item in mapping(value).items():
        try:
            check_form(item, kind)
        except InputError as error:
            raise error.under(name) from None


def _struct(value: object, kind: str) -> None:
    source = mapping(value)
    fields = _types()[kind]
    only_known(source, fields)
    for name, item in source.items():
        if item is None:
            continue  # Null is the same as absent, as in Go.
        try:
            check_form(item, fields[name])
        except InputError as error:
            raise error.under(name) from None


def _scalar(value: object, kind: str) -> None:
    match kind:
        case "any":
            _check_depth(value)
        case "bool":
            if not isinstance(value, bool):
                raise InputError(f"expected true or false, got {describe(value)}")
        case "quantity":
            _quantity(value)
        case "int32" | "int64":
            limit = _INTEGERS[kind]
            if isinstance(value, bool) or not isinstance(value, int):
                raise InputError(f"expected an integer, got {describe(value)}")
            if not -limit <= value < limit:
                raise InputError(f"{describe(value)} does not fit into {kind[3:]} bits")
        case _:
            if not isinstance(value, str):
                raise InputError(f"expected a string, got {describe(value)}")
            if kind == "time" and not _TIME.match(value):
                raise InputError(f"expected a time like 2026-01-31T12:00:00Z, got {value!r:.40}")


def _quantity(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(f"expected a quantity, got {describe(value)}")
    try:
        parse_quantity(str(value).strip())
    except QuantityError as error:
        raise InputError(f"{describe(value)} is not a quantity: {error}") from None


def _check_depth(value: object) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise InputError(f"nested more than {_MAX_DEPTH} levels deep")
