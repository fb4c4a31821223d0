"""Attributes of devices: one value of one kind, or a list of them (KEP-5491)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from reference_allocator.api.reading import InputError, int64, items, mapping, text_item, truth

AttributeKind = Literal["int", "bool", "string", "version"]
Scalar = int | bool | str

_KINDS: Mapping[str, tuple[AttributeKind, bool]] = {
    "int": ("int", False),
    "bool": ("bool", False),
    "string": ("string", False),
    "version": ("version", False),
    "ints": ("int", True),
    "bools": ("bool", True),
    "strings": ("string", True),
    "versions": ("version", True),
}

_PARSE: Mapping[AttributeKind, Callable[[object], Scalar]] = {
    "int": int64,
    "bool": truth,
    "string": text_item,
    "version": text_item,
}


@dataclass(frozen=True, slots=True)
class Attribute:
    """v1.DeviceAttribute: one value, or a list of values of one kind.

    An attribute without a value (a kind that a newer API version added) has kind None.
    """

    kind: AttributeKind | None
    values: tuple[Scalar, ...]
    is_list: bool = False

    @classmethod
    def from_dict(cls, value: object) -> Attribute:
        """Reads one attribute; at most one of the value fields may be set."""
        source = mapping(value)
        found: Attribute | None = None
        for name, content in source.items():
            if content is None or name not in _KINDS:
                continue
            kind, is_list = _KINDS[name]
            if is_list:
                values = items(source, name, _PARSE[kind])
                if not values:
                    continue
            else:
                try:
                    values = (_PARSE[kind](content),)
                except InputError as error:
                    raise error.under(name) from None
            if found is not None:
                raise InputError("exactly one value must be specified")
            # Devices of a cluster have the same few values: one object for all keeps it small.
            found = cls(kind, values, is_list) if is_list else _single(kind, values[0])
        return found or cls(None, ())


@lru_cache(maxsize=16_384, typed=True)
def _single(kind: AttributeKind, value: Scalar) -> Attribute:
    return Attribute(kind, (value,))
