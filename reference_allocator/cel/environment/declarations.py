"""The functions, type names and variables of a Kubernetes environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from reference_allocator.cel import types
from reference_allocator.cel.environment.tables import Message, Table, load_table
from reference_allocator.cel.runtime.values import TypeValue
from reference_allocator.cel.types import CelType
from reference_allocator.gates import LATEST, MINORS


@dataclass(frozen=True, slots=True)
class CelFeatures:
    """The rules that an expression follows: a Kubernetes minor and what its gates allow.

    Attributes:
        consumable_capacity: whether the gate DRAConsumableCapacity is on.
        list_type_attributes: whether the gate DRAListTypeAttributes is on.
        stored: whether the expression is in the API already, where gates do not matter any more;
            the scheduler compiles all selectors that way. (In 1.36 the type of an attribute
            depends on the gate even then.)
        kubernetes: the minor, one of `reference_allocator.gates.MINORS`.
    """

    consumable_capacity: bool = True
    list_type_attributes: bool = True
    stored: bool = True
    kubernetes: str = LATEST


@dataclass(frozen=True, slots=True)
class Environment:
    """All names that an expression may use.

    Attributes:
        table: functions, types, messages and constants.
        variables: name -> type.
        attribute: the type of a device attribute's value.
        kubernetes: the minor, one of `reference_allocator.gates.MINORS`.
    """

    table: Table
    variables: Mapping[str, CelType]
    attribute: CelType = types.DYN
    kubernetes: str = LATEST

    def is_since(self, minor: str) -> bool:
        """Return whether the rules are those of a minor or a later one."""
        return MINORS.index(self.kubernetes) >= MINORS.index(minor)

    def can_select(self, checked: CelType) -> bool:
        """Return whether an expression of the type may be a selector."""
        if self.is_since("1.37"):
            return checked in (types.BOOL, self.attribute)
        return checked in (types.BOOL, types.ANY, self.attribute) and not checked.nullable


def type_value(checked: CelType) -> TypeValue:
    """Return a type as a value of an expression."""
    return TypeValue({"null": "null_type"}.get(checked.name, checked.declared.partition("(")[0]))


_DEVICE: Final = "kubernetes.DRADevice"


@cache
def device_environment(features: CelFeatures) -> Environment:
    """Return the environment of a device selector: one variable, ``device``.

    Source: ``k8s.io/dynamic-resource-allocation/cel/compile.go``, ``newCompiler``.
    Raises ValueError: there is no table for the minor.
    """
    table = load_table(features.kubernetes)
    variant = table.variants[
        (features.stored, features.consumable_capacity, features.list_type_attributes)
    ]
    functions = {
        name: tuple(item for item in overloads if item.id.partition("@")[0] not in variant.absent)
        for name, overloads in table.functions.items()
    }
    quantity = types.struct_type("kubernetes.Quantity")
    fields = {
        "driver": types.STRING,
        "attributes": types.map_of(types.STRING, types.map_of(types.STRING, variant.attribute)),
        "capacity": types.map_of(types.STRING, types.map_of(types.STRING, quantity)),
        "allowMultipleAllocations": types.BOOL,
    }
    device = {name: fields[name] for name in fields if name in variant.device_fields}
    narrowed = replace(
        table,
        functions={name: overloads for name, overloads in functions.items() if overloads},
        messages={**table.messages, _DEVICE: Message(types.struct_type(_DEVICE), device)},
    )
    variables = {"device": types.struct_type(_DEVICE)}
    return Environment(narrowed, variables, variant.attribute, features.kubernetes)


def generic_environment(variables: Mapping[str, CelType]) -> Environment:
    """Return the same functions with other variables, for expressions about any JSON object."""
    return Environment(load_table(LATEST), dict(variables))
