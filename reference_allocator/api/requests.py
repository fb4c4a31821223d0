"""One request of a claim, in all its forms: which devices, how many (resource.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reference_allocator.api.quantity import Quantity
from reference_allocator.api.reading import (
    child,
    entries,
    int64,
    integer,
    items,
    mapping,
    optional_boolean,
    required_string,
    string,
)
from reference_allocator.api.slices import quantity


@dataclass(frozen=True, slots=True)
class Toleration:
    """v1.DeviceToleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    @classmethod
    def from_dict(cls, value: object) -> Toleration:
        """Reads one toleration."""
        source = mapping(value)
        return cls(
            string(source, "key"),
            string(source, "operator"),
            string(source, "value"),
            string(source, "effect"),
            child(source, "tolerationSeconds", int64),
        )

    def to_dict(self) -> dict[str, Any]:
        """The v1 DeviceToleration, without empty fields."""
        fields = {
            "key": self.key,
            "operator": self.operator,
            "value": self.value,
            "effect": self.effect,
            "tolerationSeconds": self.toleration_seconds,
        }
        return {name: value for name, value in fields.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class CapacityRequests:
    """v1.CapacityRequirements: capacity name -> how much of it the request needs."""

    requests: Mapping[str, Quantity]

    @classmethod
    def from_dict(cls, value: object) -> CapacityRequests:
        """Reads the capacity part of a request."""
        return cls(entries(mapping(value), "requests", quantity))


@dataclass(frozen=True, slots=True)
class DerivedAttribute:
    """v1.DeviceDerivedAttribute: a virtual attribute that only constraints see."""

    name: str
    expression: str

    @classmethod
    def from_dict(cls, value: object) -> DerivedAttribute:
        """Reads one derived attribute."""
        source = mapping(value)
        return cls(string(source, "name"), string(source, "expression"))


def read_selector(value: object) -> str | None:
    """The CEL expression of a v1.DeviceSelector; None for a kind that is not known."""
    return child(mapping(value), "cel", lambda cel: string(mapping(cel), "expression"))


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What ExactDeviceRequest and DeviceSubRequest have in common.

    A subrequest has no admin access. `selectors` holds CEL expressions; None stands for a selector
    of another kind, which the allocator refuses.
    """

    name: str
    device_class_name: str
    allocation_mode: str
    count: int
    selectors: tuple[str | None, ...]
    admin_access: bool | None
    tolerations: tuple[Toleration, ...]
    capacity: CapacityRequests | None
    derived_attributes: tuple[DerivedAttribute, ...]

    @classmethod
    def read(cls, name: str, source: Mapping[str, Any], *, exactly: bool) -> RequestSpec:
        """Reads the common fields of a request (`exactly`) or a subrequest."""
        return cls(
            name=name,
            device_class_name=string(source, "deviceClassName"),
            allocation_mode=string(source, "allocationMode"),
            count=integer(source, "count"),
            selectors=items(source, "selectors", read_selector),
            admin_access=optional_boolean(source, "adminAccess") if exactly else None,
            tolerations=items(source, "tolerations", Toleration.from_dict),
            capacity=child(source, "capacity", CapacityRequests.from_dict),
            derived_attributes=items(source, "derivedAttributes", DerivedAttribute.from_dict),
        )


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """v1.DeviceRequest: `exactly` or alternatives in order of preference (KEP-4816)."""

    name: str
    exactly: RequestSpec | None
    first_available: tuple[RequestSpec, ...]

    @classmethod
    def from_dict(cls, value: object) -> DeviceRequest:
        """Reads one request of a claim."""
        source = mapping(value)
        name = required_string(source, "name")
        return cls(
            name=name,
            exactly=child(
                source,
                "exactly",
                lambda exactly: RequestSpec.read(name, mapping(exactly), exactly=True),
            ),
            first_available=items(source, "firstAvailable", _subrequest),
        )


def _subrequest(value: object) -> RequestSpec:
    source = mapping(value)
    return RequestSpec.read(required_string(source, "name"), source, exactly=False)
