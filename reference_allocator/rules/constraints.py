"""Constraints between the devices of one claim: matchAttribute and distinctAttribute.

A constraint's state is a value, not an object that changes: the search keeps the state before each
device and goes back to it for free, and equal states can be recognised. The state is None until the
first device is added. Sources: matchAttributeConstraint in allocator_experimental.go and
distinctAttributeConstraint in constraint.go; list semantics: KEP-5491.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from reference_allocator.api import Attribute, Constraint, Device, DeviceId
from reference_allocator.api.semver import SemverError, parse_semver
from reference_allocator.errors import AllocationError
from reference_allocator.gates import MinorRules

Key = tuple[str, object] | None
"""One scalar value with its kind; None stands for a value that equals nothing."""

State = frozenset[Key] | None
"""For match the values that all devices so far share, for distinct all values so far."""

_INCOMPARABLE: Final[frozenset[Key]] = frozenset({None})


def find_attribute(device: Device, driver: str, name: str) -> Attribute | None:
    """Return the attribute of a device with this fully qualified name, or None.

    The exact name comes first, then, where the domain is the driver, the bare name.
    """
    exact_match = device.attributes.get(name)
    if exact_match is not None:
        return exact_match
    domain, slash, bare_name = name.partition("/")
    return device.attributes.get(bare_name) if slash and domain == driver else None


def comparable_values(attribute: Attribute, *, lists: bool) -> frozenset[Key] | None:
    """Return the values that constraints compare since 1.38; None where one cannot be read.

    Build metadata is no part of a version (versionWithoutBuild, semver.Version.Equals).
    """
    if attribute.kind is None or (attribute.is_list and not lists):
        return None
    if attribute.kind != "version":
        return _share(frozenset((attribute.kind, value) for value in attribute.values))
    try:
        versions = [parse_semver(str(value)) for value in attribute.values]
    except SemverError:
        return None
    return _share(frozenset(("version", version.precedence) for version in versions))


@lru_cache(maxsize=4096)
def _share(values: frozenset[Key]) -> frozenset[Key]:
    """Return one object for equal values, which the devices of a cluster mostly have."""
    return values


@dataclass(frozen=True, slots=True)
class AttributeConstraint:
    """One constraint of a claim, in the form in which the search asks it.

    Attributes:
        kind: whether values have to be equal or to differ.
        attribute: the fully qualified name.
        requests: requests (`req` or `req/sub`) that it is about; empty means all.
        lists: whether ListTypeAttributes is on: then values are sets, scalars sets of one.
        rules: those of the minor.
    """

    kind: Literal["match", "distinct"]
    attribute: str
    requests: frozenset[str]
    lists: bool
    rules: MinorRules

    @classmethod
    def from_api(
        cls, constraint: Constraint, rules: MinorRules, *, lists: bool
    ) -> AttributeConstraint | None:
        """Read a constraint of the API; return None for a kind that is not known."""
        if constraint.match_attribute is not None:
            return cls("match", constraint.match_attribute, constraint.requests, lists, rules)
        if constraint.distinct_attribute is not None:
            return cls("distinct", constraint.distinct_attribute, constraint.requests, lists, rules)
        return None

    def applies_to(self, request: str, parent: str | None) -> bool:
        """Return whether it is about a request, or a subrequest of the request `parent`."""
        if not self.requests:
            return True
        if parent is None:
            return request in self.requests
        return parent in self.requests or f"{parent}/{request}" in self.requests

    def values_of(self, attribute: Attribute) -> frozenset[Key] | None:
        """Return the values that the constraint compares; None where they can never be used."""
        if self.lists:
            if attribute.kind is None:
                return None
            return _share(frozenset((attribute.kind, value) for value in attribute.values))
        if attribute.kind is None or attribute.is_list:
            return _INCOMPARABLE
        return _share(frozenset({(attribute.kind, attribute.values[0])}))

    def values_to_admit(
        self, attribute: Attribute | None, device: DeviceId, *, derived: bool = False
    ) -> frozenset[Key] | None:
        """Return the values of a device for `admit`; None where the device can never be used.

        A device without the attribute never satisfies a constraint.

        Raises:
            AllocationError: since 1.38, the value cannot be compared.
        """
        if attribute is None:
            return None
        if not self.rules.reads_inner_types:
            return self.values_of(attribute)
        if derived and self.lists and attribute.kind is None:
            return frozenset()  # An empty list is no value of the API, and one of an expression.
        values = comparable_values(attribute, lists=self.lists)
        if values is None:
            raise AllocationError(
                f"device {device}: unsupported attribute value for {self.attribute}"
            )
        return values

    def admit(self, state: State, values: frozenset[Key] | None) -> State:
        """Return the state after adding a device with these values; None where it is not let in.

        Without ListTypeAttributes the first device is let in whatever the type of its value is, and
        nothing fits beside it if that is not a scalar.
        """
        if values is None or state is None:
            return values
        if self.kind == "distinct":
            if state & values or (not self.lists and None in values):
                return None
            return state | values
        if values is state and state and state is not _INCOMPARABLE:  # See `_share`.
            return state
        shared = (state & values) - _INCOMPARABLE
        return shared or None
