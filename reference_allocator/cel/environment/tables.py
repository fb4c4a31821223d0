"""The functions, types and macros of one Kubernetes minor's CEL environment.

Each minor has a table of its own, dumped from its real environment (``ci/upstream/celdump``), so
that they cannot drift from it unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from reference_allocator.cel import types
from reference_allocator.cel.types import CelType
from reference_allocator.gates import MINORS

_ORDERS_OF_DOUBLES: Final = frozenset(
    f"{order}_{types_of_arguments}"
    for order in ("less", "less_equals", "greater", "greater_equals")
    for types_of_arguments in (
        "double double_int64 double_uint64 int64_double uint64_double".split()
    )
)

CHANGED: Final = {
    "1.37": frozenset(  # cel-go 0.29
        "lists_range matches string_index_of_string_int string_last_index_of_string_int".split()
    ),
    "1.38": frozenset({"string_to_quantity"}) | _ORDERS_OF_DOUBLES,  # cel-go 0.33
}
"""Minor -> the overloads that it evaluates or charges otherwise than the minors before it."""

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
class Overload:
    """One signature of a function; ``member`` ones have their receiver as first argument."""

    id: str
    member: bool
    args: tuple[CelType, ...]
    result: CelType
    type_params: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """The type that ``Name{field: value}`` may name: a protobuf message, or a scalar.

    No scalar can be built like that, but the checker knows it.

    Attributes:
        type: the static type of the value, such as ``wrapper(int)`` for an Int64Value.
        fields: name -> type.
    """

    type: CelType
    fields: Mapping[str, CelType]


@dataclass(frozen=True, slots=True)
class Variant:
    """The differences from the table for a choice of features.

    Attributes:
        absent: overloads that do not exist here.
        attribute: the static type of an attribute's value.
        device_fields: the fields of the variable ``device``.
    """

    absent: frozenset[str]
    attribute: CelType
    device_fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class Table:
    """The environment of a minor with everything on.

    Attributes:
        functions: name -> overloads, in the order in which they are tried.
        type_names: dotted name -> type, for types used as values.
        messages: dotted name -> message, also of those that are not values (see ``type_names``).
        constants: dotted name -> number of an enum's value.
        macros: name and number of arguments.
        variants: (stored, consumable capacity, list type attributes) -> what is left.
    """

    functions: Mapping[str, tuple[Overload, ...]]
    type_names: Mapping[str, CelType]
    messages: Mapping[str, Message]
    constants: Mapping[str, int]
    macros: frozenset[tuple[str, int]]
    variants: Mapping[tuple[bool, bool, bool], Variant]


def _split_params(text: str) -> list[str]:
    """Return the comma-separated texts at the outermost level."""
    params, level, start = [], 0, 0
    for index, char in enumerate(text):
        level += (char == "(") - (char == ")")
        if char == "," and level == 0:
            params.append(text[start:index].strip())
            start = index + 1
    return [*params, text[start:].strip()]


def _read_type(text: str, kinds: Mapping[str, str], type_params: frozenset[str]) -> CelType:
    """Return the type of a text in the table, such as ``map(string, list(T))``."""
    name, parenthesis, arguments = text.partition("(")
    if not parenthesis:
        if name in type_params:
            return types.param_type(name)
        return _BUILTIN.get(name) or CelType(kinds[name], name)
    params = tuple(
        _read_type(argument, kinds, type_params) for argument in _split_params(arguments[:-1])
    )
    if name == "wrapper":
        return types.wrapper_type(params[0])
    kind = name if name in ("list", "map", "type") else kinds[name]
    return CelType(kind, name, params)


def name_overload(overload: str, minor: str) -> str:
    """Return the name of an overload as a minor has it: "ID@1.36" is what changed after 1.36."""
    position = MINORS.index(minor)
    for changed_in, overloads in CHANGED.items():
        if MINORS.index(changed_in) > position and overload in overloads:
            return f"{overload}@{MINORS[MINORS.index(changed_in) - 1]}"
    return overload


def _read_overload(item: Mapping[str, Any], kinds: Mapping[str, str], minor: str) -> Overload:
    names = frozenset(item.get("typeParams", ()))
    args = tuple(_read_type(text, kinds, names) for text in item["args"])
    result = _read_type(item["result"], kinds, names)
    return Overload(
        name_overload(item["id"], minor),
        item.get("member", False),
        args,
        result,
        tuple(sorted(names)),
    )


def _read_message(item: Mapping[str, Any], kinds: Mapping[str, str]) -> Message:
    fields = item.get("fields", {})
    return Message(
        _read_type(item["type"], kinds, frozenset()),
        {name: _read_type(text, kinds, frozenset()) for name, text in fields.items()},
    )


@cache
def load_table(minor: str) -> Table:
    """Return the table of a minor such as ``1.37``. Raises ValueError: there is no table for it."""
    if minor not in MINORS:
        message = f"no CEL declarations for Kubernetes {minor!r}; known: {', '.join(MINORS)}"
        raise ValueError(message)
    data = files("reference_allocator.cel.environment").joinpath("data", f"kubernetes-{minor}.json")
    table: dict[str, Any] = json.loads(data.read_text(encoding="utf-8"))
    kinds = {item["name"]: "struct" for item in table["messages"]}
    kinds |= {item["name"]: item["kind"] for item in table["types"]}
    named: dict[str, CelType] = {
        "list": types.list_of(types.DYN),
        "map": types.map_of(types.DYN, types.DYN),
        "optional_type": types.optional_of(types.DYN),
    }
    for item in table["types"]:
        if item.get("ident") and item["name"] not in named:
            named[item["name"]] = _read_type(item["name"], kinds, frozenset())
    messages = {item["name"]: _read_message(item, kinds) for item in table["messages"]}
    for item in table["messages"]:
        if item.get("ident") and item["name"] not in named:
            named[item["name"]] = messages[item["name"]].type
    return Table(
        functions={
            function["name"]: tuple(
                _read_overload(item, kinds, minor) for item in function["overloads"]
            )
            for function in table["functions"]
        },
        type_names=named,
        messages=messages,
        constants={item["name"]: item["value"] for item in table["constants"]},
        macros=frozenset((item["name"], item["args"]) for item in table["macros"]),
        variants={
            (item["stored"], item["consumableCapacity"], item["listTypeAttributes"]): Variant(
                frozenset(item["absent"]),
                _read_type(item["attribute"], kinds, frozenset()),
                frozenset(item["fields"]),
            )
            for item in table["variants"]
        },
    )
