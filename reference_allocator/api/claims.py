"""ResourceClaims and DeviceClasses: what is asked for, and what was given (resource.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from reference_allocator.api.quantity import Quantity
from reference_allocator.api.reading import (
    expect_object,
    list_of,
    read_child,
    read_items,
    read_string,
    required_string,
)
from reference_allocator.api.records import At, ReadObject, Record, read_shared
from reference_allocator.api.slices import DeviceId


@dataclass(frozen=True, slots=True)
class Toleration(Record):
    """v1.DeviceToleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the v1 DeviceToleration, without empty fields."""
        fields = {
            "key": self.key,
            "operator": self.operator,
            "value": self.value,
            "effect": self.effect,
            "tolerationSeconds": self.toleration_seconds,
        }
        return {name: value for name, value in fields.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class CapacityRequests(Record):
    """v1.CapacityRequirements: capacity name -> how much of it the request needs."""

    requests: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class DerivedAttribute(Record):
    """v1.DeviceDerivedAttribute: a virtual attribute that only constraints see."""

    name: str
    expression: str


def _read_selector(value: object) -> str | None:
    """Return the CEL expression of a v1.DeviceSelector; None for a kind that is not known."""
    return read_child(
        expect_object(value), "cel", lambda cel: read_string(expect_object(cel), "expression")
    )


@dataclass(frozen=True, slots=True)
class RequestSpec(Record):
    """The fields that ExactDeviceRequest and DeviceSubRequest have in common.

    A subrequest has no admin access. `selectors` holds CEL expressions; None stands for a selector
    of another kind, which the allocator refuses.
    """

    name: Annotated[str, At(required=True)]
    device_class_name: str
    allocation_mode: str
    count: int
    selectors: Annotated[tuple[str | None, ...], At(parse=list_of(_read_selector))]
    admin_access: bool | None
    tolerations: tuple[Toleration, ...]
    capacity: CapacityRequests | None
    derived_attributes: tuple[DerivedAttribute, ...]


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """v1.DeviceRequest: `exactly` or alternatives in order of preference (KEP-4816)."""

    name: str
    exactly: RequestSpec | None
    first_available: tuple[RequestSpec, ...]

    @classmethod
    def from_dict(cls, value: object) -> DeviceRequest:
        """Read one request of a claim; `exactly` gets its name."""
        source = expect_object(value)
        name = required_string(source, "name")

        def exactly(spec: object) -> RequestSpec:
            return RequestSpec.from_dict({**expect_object(spec), "name": name})

        def alternative(spec: object) -> RequestSpec:
            return RequestSpec.from_dict({**expect_object(spec), "adminAccess": None})

        return cls(
            name,
            read_child(source, "exactly", exactly),
            read_items(source, "firstAvailable", alternative),
        )


@dataclass(frozen=True, slots=True)
class Constraint(Record):
    """v1.DeviceConstraint: applies to the named requests, or to all if there are none."""

    requests: frozenset[str]
    match_attribute: str | None
    distinct_attribute: str | None


def _read_opaque(value: object) -> dict[str, Any]:
    opaque = expect_object(value)
    return {
        "opaque": {"driver": read_string(opaque, "driver"), "parameters": opaque.get("parameters")}
    }


@dataclass(frozen=True, slots=True)
class ClaimConfig(Record):
    """v1.DeviceClaimConfiguration and DeviceClassConfiguration.

    `configuration` is the part that a result copies: v1.DeviceConfiguration, `opaque` or nothing.
    """

    requests: tuple[str, ...]
    configuration: Annotated[Mapping[str, Any], At("opaque", parse=_read_opaque)]


def _read_device_id(source: Mapping[str, Any]) -> DeviceId:
    driver, pool, device = source.get("driver"), source.get("pool"), source.get("device")
    if driver and pool and device and str is driver.__class__ is pool.__class__ is device.__class__:
        return DeviceId(driver, pool, device)
    return DeviceId(*(required_string(source, key) for key in ("driver", "pool", "device")))


@dataclass(frozen=True, slots=True)
class AllocatedDevice(Record):
    """v1.DeviceRequestAllocationResult, as far as other allocations depend on it."""

    request: str
    id: Annotated[DeviceId, At(".", parse=_read_device_id)]
    admin_access: bool
    share_id: Annotated[str | None, At("shareID")]
    consumed_capacity: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class _Results(Record):
    results: tuple[AllocatedDevice, ...]


def read_results(value: object) -> tuple[AllocatedDevice, ...]:
    """Read the device results of a v1.AllocationResult.

    Raises InputError: the object has not the form of an AllocationResult; names the path.
    """
    devices = read_child(expect_object(value), "devices", _Results.from_dict)
    return devices.results if devices is not None else ()


@dataclass(frozen=True, slots=True)
class ResourceClaim(Record):
    """v1.ResourceClaim."""

    namespace: Annotated[str, At("metadata.namespace")]
    name: Annotated[str, At("metadata.name")]
    uid: Annotated[str, At("metadata.uid")]
    requests: Annotated[
        tuple[DeviceRequest, ...],
        At("spec.devices.requests", parse=read_shared(list_of(DeviceRequest.from_dict))),
    ]
    constraints: Annotated[tuple[Constraint, ...], At("spec.devices.constraints")]
    config: Annotated[tuple[ClaimConfig, ...], At("spec.devices.config")]
    results: Annotated[
        tuple[AllocatedDevice, ...] | None, At("status.allocation", parse=read_results)
    ]
    """`status.allocation.devices.results`; None where the claim is not allocated."""

    @property
    def ref(self) -> str:
        """`namespace/name`, as errors name the claim."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class AllocatedClaim(Record):
    """v1.ResourceClaim, as far as other allocations depend on it: they are many."""

    namespace: Annotated[str, At("metadata.namespace")]
    name: Annotated[str, At("metadata.name")]
    results: Annotated[
        tuple[AllocatedDevice, ...] | None, At("status.allocation", parse=read_results)
    ]

    @classmethod
    def read(cls, claim: Mapping[str, Any] | ResourceClaim) -> AllocatedClaim | ResourceClaim:
        """Return what others depend on of a claim, which may have been read already."""
        if isinstance(claim, ResourceClaim | ReadObject):
            return ResourceClaim.from_dict(claim)
        return cls.from_dict(claim)


@dataclass(frozen=True, slots=True)
class DeviceClass(Record):
    """v1.DeviceClass."""

    name: Annotated[str, At("metadata.name", required=True)]
    selectors: Annotated[
        tuple[str | None, ...], At("spec.selectors", parse=list_of(_read_selector))
    ]
    config: Annotated[tuple[ClaimConfig, ...], At("spec.config")]
