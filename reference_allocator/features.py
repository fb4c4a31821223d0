"""The switches of the allocator, as data.

Upstream keeps three near-copies of one allocator (stable, incubating, experimental) and picks one
by features; here there is one implementation that asks `Features`. The fields are those of
structured.Features (structured/internal/types.go of k8s.io/dynamic-resource-allocation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from reference_allocator.api.reading import expect_object, read_boolean, refuse_unknown_keys
from reference_allocator.gates import gates_for_version

# Feature -> the gates that it needs (AllocatorFeatures in the scheduler's dynamicresources.go).
_GATES: Final[Mapping[str, tuple[str, ...]]] = {
    "admin_access": ("DRAAdminAccess",),
    "prioritized_list": ("DRAPrioritizedList",),
    "partitionable_devices": ("DRAPartitionableDevices",),
    "device_taints": ("DRADeviceTaints",),
    "device_binding_and_status": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    "consumable_capacity": ("DRAConsumableCapacity",),
    "fractional_capacity_range": ("DRAFractionalCapacityRange",),
    "list_type_attributes": ("DRAListTypeAttributes",),
    "optional_node_operations": ("DRAOptionalNodeOperations",),
    "derived_attributes": ("DRADerivedAttributes",),
    "compatibility_groups": ("DRADeviceCompatibilityGroups",),
}


@dataclass(frozen=True, slots=True)
class Features:
    """The features that the allocator may use. All are off by default, as Go's zero value is."""

    admin_access: bool = False
    prioritized_list: bool = False
    partitionable_devices: bool = False
    device_taints: bool = False
    device_binding_and_status: bool = False
    consumable_capacity: bool = False
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False

    @property
    def are_stable(self) -> bool:
        """Return whether upstream's stable implementation has all of them, in 1.38."""
        return not (
            self.list_type_attributes
            or self.optional_node_operations
            or self.derived_attributes
            or self.compatibility_groups
        )

    @classmethod
    def all(cls) -> Features:
        """Return features that are all on."""
        return cls(**dict.fromkeys(_GATES, True))

    @classmethod
    def for_version(cls, version: str, gates: Mapping[str, bool] | None = None) -> Features:
        """Return the features of a Kubernetes version ("1.37", "v1.36.2") with its default gates.

        Args:
            version: a version whose minor is in `reference_allocator.gates.MINORS`.
            gates: gates set explicitly, on top of the defaults; gates that the allocator does not
                ask are ignored.

        Raises ValueError: the minor is not known.
        """
        merged = {name: gate.default for name, gate in gates_for_version(version).items()}
        merged.update(gates or {})
        return cls.from_gates(merged)

    @classmethod
    def from_gates(cls, gates: Mapping[str, bool]) -> Features:
        """Return the features of a scheduler with these gates (name -> on); absent ones are off."""
        return cls(
            **{
                field: all(gates.get(name, False) for name in names)
                for field, names in _GATES.items()
            }
        )

    def with_gates(self, version: str, gates: Mapping[str, bool]) -> Features:
        """Return these features with some gates set otherwise.

        A feature that needs several gates gets those that are not in ``gates`` from the version's
        defaults.

        Raises ValueError: the minor is not known.
        """
        other = Features.for_version(version, gates)
        changed_fields = [
            field for field, names in _GATES.items() if not gates.keys().isdisjoint(names)
        ]
        return replace(self, **{field: getattr(other, field) for field in changed_fields})

    @classmethod
    def from_dict(cls, value: object) -> Features:
        """Read upstream's lowerCamel field names: {"adminAccess": true, ...}.

        Raises InputError: the value is no object, has an unknown field, or one that is no boolean.
        """
        source = expect_object(value)
        names = {_lower_camel(field.name): field.name for field in fields(cls)}
        refuse_unknown_keys(source, names)
        return cls(**{field: read_boolean(source, name) for name, field in names.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `from_dict` reads."""
        return {_lower_camel(field.name): getattr(self, field.name) for field in fields(self)}


def gates_of(feature: str) -> tuple[str, ...]:
    """Return the gates that a feature needs, by upstream's field name ("adminAccess").

    Returns () for a name that is no feature's.
    """
    return next((gates for name, gates in _GATES.items() if _lower_camel(name) == feature), ())


def _lower_camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.title() for word in tail)
