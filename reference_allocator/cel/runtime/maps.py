"""Maps and sets of constants: the equality of keys, and look-ups.

A map literal is a Go map from CEL value to CEL value: ``1``, ``1u`` and ``1.0`` are three keys, of
which a look-up tries those of the same number (cel-go ``common/types/map.go``). Lists, maps,
quantities and URLs are told apart by their address, so no two are the same key. What Go cannot hash
ends the evaluation. The maps of a device and those of JSON have string keys and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reference_allocator.cel.errors import CelInternalError
from reference_allocator.cel.runtime.values import INT_MAX, INT_MIN, UINT_MAX, UInt, type_name

MISSING: Final = object()
"""The result of `find` for a key that is not there."""
KEY_CLASSES: Final = frozenset({bool, float, int, str, UInt})
"""The types of values that can be a key or an index, of whatever map or list."""

_TYPED: Final = frozenset({bool, float, UInt})
_BY_ADDRESS: Final = frozenset(
    ["list", "map", "optional_type", "kubernetes.Quantity", "kubernetes.URL"]
)
_UNHASHABLE: Final = {
    "bytes": "types.Bytes",
    "kubernetes.NamedFormat": "cel.Format",
    "kubernetes.Semver": "cel.Semver",
}


class Unreadable:
    """The value of an attribute that is none to CEL: whoever asks for it gets an error.

    Since 1.38 (``nameToAttributes`` in ``dynamic-resource-allocation/cel/compile.go``); membership
    says that it is not there, size and iteration know it.

    Attributes:
        message: the error.
    """

    __slots__ = ("message",)
    cel_type = "error"

    def __init__(self, name: str) -> None:
        self.message = (
            f"attribute {name}: value is invalid or its type is not supported by this version"
        )


class StringMap(dict[str, Any]):
    """A map whose keys are strings by its Go type: one domain of a device's attributes."""

    __slots__ = ()


class DomainMap(StringMap):
    """Attributes or capacity by domain: looking up an unknown domain gives an empty map.

    Membership, size and iteration know only the domains that are there
    (``dynamic-resource-allocation/cel/compile.go``, ``newStringInterfaceMapWithDefault``).
    """

    __slots__ = ()

    def __missing__(self, key: object) -> dict[str, Any]:
        return {}


class _TypedKey:
    """A key that Python takes for another one: ``True == 1 == 1.0``."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            other.__class__ is _TypedKey
            and other.value.__class__ is self.value.__class__
            and other.value == self.value
        )

    def __hash__(self) -> int:
        return hash(self.value)


class _UniqueKey:
    """A key that equals no other: Go compares addresses, which values do not have here."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def check_hashable(key: Any) -> None:
    """Raise CelInternalError for what Go cannot hash."""
    go_type = _UNHASHABLE.get(type_name(key))
    if go_type is not None:
        raise CelInternalError(f"internal error: runtime error: hash of unhashable type {go_type}")


def map_key(key: Any) -> Any:
    """Return a CEL value in the form in which dicts hold it as a key.

    Raises CelInternalError: Go cannot hash it.
    """
    kind = key.__class__
    if kind is str or kind is int:
        return key
    if kind in _TYPED:
        return _TypedKey(key)
    check_hashable(key)
    return _UniqueKey(key) if type_name(key) in _BY_ADDRESS else key


def unmap_key(key: Any) -> Any:
    """Return the CEL value of a dict's key."""
    return key.value if key.__class__ in (_TypedKey, _UniqueKey) else key


def map_keys(mapping: dict[Any, Any]) -> list[Any]:
    """Return the keys of a map as CEL values."""
    return [unmap_key(key) for key in mapping]


def _other_spellings(key: Any) -> list[Any]:
    """Return the same number in the other types in which it may be a key."""
    kind = key.__class__
    if kind is int:
        return [UInt(key)] if key >= 0 else []
    if kind is UInt:
        return [int(key)] if key <= INT_MAX else []
    if kind is float and key.is_integer():
        whole = int(key)
        numbers: list[Any] = [whole] if INT_MIN < whole < INT_MAX else []
        return [*numbers, UInt(whole)] if 0 <= whole < UINT_MAX else numbers
    return []


def find(mapping: dict[Any, Any], key: Any) -> Any:
    """Return the value of a key, or `MISSING`. Raises CelInternalError: Go cannot hash the key."""
    if key.__class__ is str:
        try:
            return mapping[key]
        except KeyError:
            return MISSING
    if not mapping or isinstance(mapping, StringMap):
        return MISSING
    value = mapping.get(map_key(key), MISSING)
    if value is MISSING:
        for number in _other_spellings(key):
            value = mapping.get(map_key(number), MISSING)
            if value is not MISSING:
                break
    return value


def has_key(mapping: dict[Any, Any], key: Any) -> bool:
    """Return whether a map has the key; raise as `find` does."""
    if key.__class__ is str:
        return key in mapping and mapping[key].__class__ is not Unreadable
    return find(mapping, key) is not MISSING


_HASHED: Final = frozenset({bool, int, UInt, float, str})


def _hashed_form(value: Any) -> Any:
    return ("bool", value) if value.__class__ is bool else value


def constant_set(values: Sequence[Any]) -> frozenset[Any] | None:
    """Return the set that constants right of ``in`` become, or None if they stay a list.

    Membership is then a look-up rather than a comparison: numbers match across types when the
    conversion is exact (``interpreter/decorators.go``, ``maybeOptimizeSetMembership``).
    """
    if not values or any(value.__class__ not in _HASHED for value in values):
        return None
    # Go adds an integer's nearest double too, even where that is another number.
    doubles = [float(value) for value in values if value.__class__ in (int, UInt)]
    return frozenset([*map(_hashed_form, values), *doubles])


def is_member(members: frozenset[Any], value: Any) -> bool:
    """Return whether the set has the value. Raises CelInternalError: Go cannot hash the value."""
    if value.__class__ in _HASHED:
        return _hashed_form(value) in members
    check_hashable(value)
    return False
