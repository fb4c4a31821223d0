"""What an expression may use: functions, type names and variables of a Kubernetes environment.

The functions are a table dumped from the real environment of one Kubernetes minor
(``ci/upstream/celdump``), so they cannot drift from it unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from reference_allocator.cel import types
from reference_allocator.cel.runtime.values import TypeValue
from reference_allocator.cel.types import CelType

__all__ = [
    "ATTRIBUTE_TYPES",
    "CelFeatures",
    "Environment",
    "Overload",
    "device_environment",
    "generic_environment",
]

_TABLE: Final = "kubernetes-1.37.json"

_BUILTIN: Final = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "dyn": types.DYN,
    "google.protobuf.Any": types.ANY,
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "int": types.INT,
    "null_type": types.NULL,
    "string": types.STRING,
    "type": types.TYPE,
    "uint": types.UINT,
}


@dataclass(frozen=True, slots=True)
class CelFeatures:
    """What the API server lets new expressions use (feature gates of the same names).

    Expressions that are stored already ignore the gates (``stored``, the default): the scheduler
    compiles all selectors that way, so everything is on.
    """

    consumable_capacity: bool = True
    list_type_attributes: bool = True
    stored: bool = True


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function; ``member`` ones have their receiver as first argument."""

    id: str
    member: bool
    args: tuple[CelType, ...]
    result: CelType
    type_params: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Environment:
    """All names that an expression may use.

    Attributes:
        functions: name -> overloads, in the order in which they are tried.
        type_names: dotted name -> type, for types used as values.
        variables: name -> type.
        fields: name of an object type -> field -> type.
    """

    functions: Mapping[str, tuple[Overload, ...]]
    type_names: Mapping[str, CelType]
    variables: Mapping[str, CelType]
    fields: Mapping[str, Mapping[str, CelType]] = field(default_factory=dict)


def _split(text: str) -> list[str]:
    """The comma-separated parts at the outermost level."""
    parts, level, start = [], 0, 0
    for index, char in enumerate(text):
        level += (char == "(") - (char == ")")
        if char == "," and level == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def _type(text: str, kinds: Mapping[str, str], type_params: frozenset[str]) -> CelType:
    """A type from its text in the table, such as ``map(string, list(T))``."""
    name, parenthesis, rest = text.partition("(")
    if not parenthesis:
        if name in type_params:
            return types.param(name)
        return _BUILTIN.get(name) or CelType(kinds[name], name)
    params = tuple(_type(part, kinds, type_params) for part in _split(rest[:-1]))
    kind = name if name in ("list", "map", "type") else kinds[name]
    return CelType(kind, name, params)


@cache
def _table() -> dict[str, Any]:
    text = files("reference_allocator.cel").joinpath("data", _TABLE).read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


@cache
def _functions(features: CelFeatures) -> dict[str, tuple[Overload, ...]]:
    table = _table()
    absent: set[str] = set()
    if not features.stored:
        for gate in table["newExpressions"]:
            wanted = {
                "EnableConsumableCapacity": features.consumable_capacity,
                "EnableListTypeAttributes": features.list_type_attributes,
            }
            if gate["features"] == wanted:
                absent = set(gate["absent"])
    kinds = {item["name"]: item["kind"] for item in table["types"]}
    functions: dict[str, tuple[Overload, ...]] = {}
    for function in table["functions"]:
        overloads = []
        for item in function["overloads"]:
            if item["id"] in absent:
                continue
            names = frozenset(item.get("typeParams", ()))
            args = tuple(_type(text, kinds, names) for text in item["args"])
            result = _type(item["result"], kinds, names)
            member = item.get("member", False)
            overloads.append(Overload(item["id"], member, args, result, tuple(sorted(names))))
        if overloads:
            functions[function["name"]] = tuple(overloads)
    return functions


@cache
def _type_names() -> dict[str, CelType]:
    kinds = {item["name"]: item["kind"] for item in _table()["types"]}
    named: dict[str, CelType] = {
        "list": types.list_of(types.DYN),
        "map": types.map_of(types.DYN, types.DYN),
        "optional_type": types.optional_of(types.DYN),
    }
    for item in _table()["types"]:
        if item.get("ident") and item["name"] not in named:
            named[item["name"]] = _type(item["name"], kinds, frozenset())
    return named


def type_value(checked: CelType) -> TypeValue:
    """The value of a type's name."""
    return TypeValue({"null": "null_type"}.get(checked.name, checked.declared.partition("(")[0]))


ATTRIBUTE_TYPES: Final = ("dyn", "any")
_DEVICE: Final = "kubernetes.DRADevice"


@cache
def device_environment(features: CelFeatures) -> Environment:
    """The environment of a device selector: one variable, ``device``.

    Source: ``k8s.io/dynamic-resource-allocation/cel/compile.go``, ``newCompiler``.
    """
    lists = features.stored or features.list_type_attributes
    attribute = types.DYN if lists else types.ANY
    quantity = types.struct("kubernetes.Quantity")
    fields = {
        "driver": types.STRING,
        "attributes": types.map_of(types.STRING, types.map_of(types.STRING, attribute)),
        "capacity": types.map_of(types.STRING, types.map_of(types.STRING, quantity)),
    }
    if features.stored or features.consumable_capacity:
        fields["allowMultipleAllocations"] = types.BOOL
    return Environment(
        functions=_functions(features),
        type_names=_type_names(),
        variables={"device": types.struct(_DEVICE)},
        fields={_DEVICE: fields},
    )


def generic_environment(variables: Mapping[str, CelType]) -> Environment:
    """The same functions with other variables, for expressions about any JSON object."""
    return Environment(
        functions=_functions(CelFeatures()), type_names=_type_names(), variables=dict(variables)
    )
