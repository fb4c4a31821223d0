"""Constraints between the devices of one claim: matchAttribute and distinctAttribute.

A constraint's state is a value, not an object that changes: the search keeps the state before each
device and goes back to it for free, and equal states can be recognised. The state is None until the
first device is added. Sources: matchAttributeConstraint in allocator_experimental.go and
distinctAttributeConstraint in constraint.go; list semantics: KEP-5491.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from reference_allocator.api import Attribute, Constraint, Device

Key = tuple[str, object] | None
"""One scalar value with its kind; None stands for a value that equals nothing."""

State = frozenset[Key] | None
"""match: the values that all devices so far share; distinct: all values so far."""

_INCOMPARABLE: Final[frozenset[Key]] = frozenset({None})


def lookup(device: Device, driver: str, name: str) -> Attribute | None:
    """The attribute of a device with this fully qualified name.

    Looked for by its exact name, then, where the domain is the driver, by the bare name.
    """
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, bare = name.partition("/")
    return device.attributes.get(bare) if slash and domain == driver else None


@dataclass(frozen=True, slots=True)
class AttributeConstraint:
    """One constraint of a claim, ready to be asked.

    Attributes:
        kind: whether values have to be equal or to differ.
        attribute: the fully qualified name.
        requests: requests (`req` or `req/sub`) that it is about; empty means all.
        lists: ListTypeAttributes is on: values are sets, scalars sets of one.
    """

    kind: Literal["match", "distinct"]
    attribute: str
    requests: frozenset[str]
    lists: bool

    @classmethod
    def of(cls, constraint: Constraint, *, lists: bool) -> AttributeConstraint | None:
        """Reads a constraint of the API; None for a kind that is not known."""
        if constraint.match_attribute is not None:
            return cls("match", constraint.match_attribute, constraint.requests, lists)
        if constraint.distinct_attribute is not None:
            return cls("distinct", constraint.distinct_attribute, constraint.requests, lists)
        return None

    def applies_to(self, request: str, parent: str | None) -> bool:
        if not self.requests:
            return True
        if parent is None:
            return request in self.requests
        return parent in self.requests or f"{parent}/{request}" in self.requests

    def values(self, attribute: Attribute) -> frozenset[Key] | None:
        """The attribute as the constraint compares it; None where it can never be used."""
        if self.lists:
            if attribute.kind is None:
                return None
            return frozenset((attribute.kind, value) for value in attribute.values)
        if attribute.kind is None or attribute.is_list:
            return frozenset({None})
        return frozenset({(attribute.kind, attribute.values[0])})

    def compared(self, attribute: Attribute | None) -> frozenset[Key] | None:
        """What `admit` wants to know of a device; None where it can never be used.

        A device without the attribute never satisfies a constraint.
        """
        return None if attribute is None else self.values(attribute)

    def admit(self, state: State, values: frozenset[Key] | None) -> State:
        """The state after adding a device with these values, or None where it is not let in.

        Without ListTypeAttributes the first device is let in whatever the type of its value is, and
        nothing fits beside it if that is not a scalar.
        """
        if values is None or state is None:
            return values
        if self.kind == "distinct":
            if state & values or (not self.lists and None in values):
                return None
            return state | values
        if state == values and None not in state:
            return state
        shared = (state & values) - _INCOMPARABLE
        return shared or None
