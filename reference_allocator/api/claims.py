"""ResourceClaims and DeviceClasses: what is asked for (resource.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reference_allocator.api.quantity import Quantity
from reference_allocator.api.reading import (
    child,
    entries,
    items,
    mapping,
    optional_boolean,
    optional_string,
    required_child,
    required_string,
    string,
    text_item,
)
from reference_allocator.api.requests import DeviceRequest, read_selector
from reference_allocator.api.slices import DeviceId, quantity


@dataclass(frozen=True, slots=True)
class Constraint:
    """v1.DeviceConstraint: applies to the named requests, or to all if there are none."""

    requests: frozenset[str]
    match_attribute: str | None
    distinct_attribute: str | None

    @classmethod
    def from_dict(cls, value: object) -> Constraint:
        """Reads one constraint."""
        source = mapping(value)
        return cls(
            frozenset(items(source, "requests", text_item)),
            optional_string(source, "matchAttribute"),
            optional_string(source, "distinctAttribute"),
        )


@dataclass(frozen=True, slots=True)
class ClaimConfig:
    """v1.DeviceClaimConfiguration and DeviceClassConfiguration.

    `configuration` is the part that a result copies: v1.DeviceConfiguration, `opaque` or nothing.
    """

    requests: tuple[str, ...]
    configuration: Mapping[str, Any]

    @classmethod
    def from_dict(cls, value: object) -> ClaimConfig:
        """Reads one configuration."""
        source = mapping(value)
        opaque = child(source, "opaque", mapping)
        configuration: dict[str, Any] = {}
        if opaque is not None:
            driver, parameters = string(opaque, "driver"), opaque.get("parameters")
            configuration["opaque"] = {"driver": driver, "parameters": parameters}
        return cls(items(source, "requests", text_item), configuration)


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """v1.DeviceRequestAllocationResult, as far as other allocations depend on it."""

    request: str
    id: DeviceId
    admin_access: bool
    share_id: str | None
    consumed_capacity: Mapping[str, Quantity]

    @classmethod
    def from_dict(cls, value: object) -> AllocatedDevice:
        """Reads one result of an allocation."""
        source = mapping(value)
        return cls(
            string(source, "request"),
            DeviceId(
                required_string(source, "driver"),
                required_string(source, "pool"),
                required_string(source, "device"),
            ),
            optional_boolean(source, "adminAccess") or False,
            optional_string(source, "shareID"),
            entries(source, "consumedCapacity", quantity),
        )


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """v1.ResourceClaim."""

    namespace: str
    name: str
    uid: str
    requests: tuple[DeviceRequest, ...]
    constraints: tuple[Constraint, ...]
    config: tuple[ClaimConfig, ...]
    results: tuple[AllocatedDevice, ...] | None
    """`status.allocation.devices.results`; None where the claim is not allocated."""

    @property
    def ref(self) -> str:
        """`namespace/name`, as errors name the claim."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def from_dict(cls, value: object) -> ResourceClaim:
        """Reads a v1 ResourceClaim.

        Raises:
            InputError: the object has not the form of a ResourceClaim; names the path.
        """
        source = mapping(value)
        metadata = child(source, "metadata", _names) or ("", "", "")
        devices = child(source, "spec", lambda spec: child(mapping(spec), "devices", _devices))
        requests, constraints, config = devices or ((), (), ())
        return cls(
            *metadata, requests, constraints, config, child(source, "status", _allocated_devices)
        )


_Devices = tuple[tuple[DeviceRequest, ...], tuple[Constraint, ...], tuple[ClaimConfig, ...]]


def _names(value: object) -> tuple[str, str, str]:
    source = mapping(value)
    return string(source, "namespace"), string(source, "name"), string(source, "uid")


def _devices(value: object) -> _Devices:
    source = mapping(value)
    return (
        items(source, "requests", DeviceRequest.from_dict),
        items(source, "constraints", Constraint.from_dict),
        items(source, "config", ClaimConfig.from_dict),
    )


def _allocated_devices(value: object) -> tuple[AllocatedDevice, ...] | None:
    return child(mapping(value), "allocation", read_results)


def read_results(value: object) -> tuple[AllocatedDevice, ...]:
    """The device results of a v1.AllocationResult.

    Raises:
        InputError: the object has not the form of an AllocationResult; names the path.
    """
    results = child(
        mapping(value),
        "devices",
        lambda devices: items(mapping(devices), "results", AllocatedDevice.from_dict),
    )
    return results or ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """v1.DeviceClass."""

    name: str
    selectors: tuple[str | None, ...]
    config: tuple[ClaimConfig, ...]
    extended_resource_name: str | None

    @classmethod
    def from_dict(cls, value: object) -> DeviceClass:
        """Reads a v1 DeviceClass.

        Raises:
            InputError: the object has not the form of a DeviceClass; names the path.
        """
        source = mapping(value)
        name = required_child(
            source, "metadata", lambda metadata: required_string(mapping(metadata), "name")
        )
        spec = child(source, "spec", lambda spec: cls._from_spec(name, mapping(spec)))
        return spec or cls(name, (), (), None)

    @classmethod
    def _from_spec(cls, name: str, spec: Mapping[str, Any]) -> DeviceClass:
        return cls(
            name,
            items(spec, "selectors", read_selector),
            items(spec, "config", ClaimConfig.from_dict),
            optional_string(spec, "extendedResourceName"),
        )
