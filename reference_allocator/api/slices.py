"""ResourceSlices: what drivers publish (resource.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from reference_allocator.api import reading
from reference_allocator.api.nodes import NodeSelector
from reference_allocator.api.quantity import Quantity
from reference_allocator.api.records import At, Record, read_quantity, read_shared
from reference_allocator.api.semver import SemverError, parse_semver

AttributeKind = Literal["int", "bool", "string", "version"]
Scalar = int | bool | str

_PARSE: Mapping[AttributeKind, Callable[[object], Scalar]] = {
    "int": reading.expect_int64,
    "bool": reading.expect_boolean,
    "string": reading.expect_text,
    "version": reading.expect_text,
}


def _as_tuple(parse: Callable[[object], Scalar]) -> Callable[[object], tuple[Scalar, ...]]:
    return lambda value: (parse(value),)


_KINDS: Mapping[str, tuple[AttributeKind, bool, Callable[[object], tuple[Scalar, ...]]]] = {
    **{kind: (kind, False, _as_tuple(parse)) for kind, parse in _PARSE.items()},
    **{f"{kind}s": (kind, True, reading.list_of(parse)) for kind, parse in _PARSE.items()},
}


class PoolId(NamedTuple):
    """The key of a pool in the cluster: pools of different drivers may have the same name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """The key of a device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """v1.DeviceAttribute: one value, or a list of values of one kind (KEP-5491).

    An attribute without a value (a kind that a newer API version added) has kind None.

    Attributes:
        always_converts: whether it is a value for every expression, in each minor.
    """

    kind: AttributeKind | None
    values: tuple[Scalar, ...]
    is_list: bool = False
    always_converts: bool = field(default=False, compare=False, repr=False)

    @classmethod
    def from_dict(cls, value: object) -> Attribute:
        """Read one attribute. Raises InputError: more than one of the value fields is set."""
        source = reading.expect_object(value)
        attribute: Attribute | None = None
        for name, content in source.items():
            if content is None or name not in _KINDS:
                continue
            kind, is_list, parse = _KINDS[name]
            values = reading.read_child(source, name, parse)
            if not values:
                continue
            if attribute is not None:
                raise reading.InputError("exactly one value must be specified")
            # Devices of a cluster have the same few values: one object for all keeps it small.
            attribute = cls(kind, values, is_list) if is_list else _single_value(kind, values[0])
        return attribute or cls(None, ())


@lru_cache(maxsize=16_384, typed=True)
def _single_value(kind: AttributeKind, value: Scalar) -> Attribute:
    return Attribute(kind, (value,), always_converts=kind != "version" or _is_semver(value))


def _is_semver(value: Scalar) -> bool:
    try:
        return bool(parse_semver(str(value)))
    except SemverError:
        return False


@dataclass(frozen=True, slots=True)
class ValidRange(Record):
    """v1.CapacityRequestPolicyRange."""

    min: Quantity | None
    max: Quantity | None
    step: Quantity | None

    def as_since_1_38(self) -> ValidRange:
        """Return what 1.38 reads, see `Quantity.as_since_1_38`."""
        bounds = (self.min, self.max, self.step)
        return ValidRange(*(bound and bound.as_since_1_38() for bound in bounds))


@dataclass(frozen=True, slots=True)
class RequestPolicy(Record):
    """v1.CapacityRequestPolicy: how much of a capacity one request may consume."""

    default: Quantity | None
    valid_values: tuple[Quantity, ...] | None
    valid_range: ValidRange | None

    def as_since_1_38(self) -> RequestPolicy:
        """Return what 1.38 reads, see `Quantity.as_since_1_38`."""
        values = self.valid_values
        return RequestPolicy(
            self.default and self.default.as_since_1_38(),
            None if values is None else tuple([value.as_since_1_38() for value in values]),
            self.valid_range and self.valid_range.as_since_1_38(),
        )


@dataclass(frozen=True, slots=True)
class DeviceCapacity(Record):
    """v1.DeviceCapacity."""

    value: Annotated[Quantity, At(required=True)]
    request_policy: RequestPolicy | None

    def as_since_1_38(self) -> DeviceCapacity:
        """Return what 1.38 reads, see `Quantity.as_since_1_38`."""
        policy = self.request_policy
        return DeviceCapacity(self.value.as_since_1_38(), policy and policy.as_since_1_38())


def _read_counter(value: object) -> Quantity:
    return reading.required_child(reading.expect_object(value), "value", read_quantity)


@dataclass(frozen=True, slots=True)
class CounterConsumption(Record):
    """v1.DeviceCounterConsumption: what a device takes of one counter set of its pool."""

    counter_set: str
    counters: Annotated[Mapping[str, Quantity], At(parse=reading.map_of(_read_counter))]
    compatibility_groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Taint(Record):
    """v1.DeviceTaint."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Device(Record):
    """v1.Device."""

    name: Annotated[str, At(required=True)]
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, DeviceCapacity]
    consumes_counters: tuple[CounterConsumption, ...]
    node_name: str | None
    node_selector: NodeSelector | None
    all_nodes: bool
    taints: tuple[Taint, ...]
    binds_to_node: bool
    binding_conditions: tuple[str, ...] | None
    """None where the field is absent; an empty list still sorts the pool last."""
    binding_failure_conditions: tuple[str, ...]
    allow_multiple_allocations: bool | None
    raw: Annotated[Mapping[str, Any], At(".")] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class CounterSet(Record):
    """v1.CounterSet."""

    name: str
    counters: Annotated[Mapping[str, Quantity], At(parse=reading.map_of(_read_counter))]


@dataclass(frozen=True, slots=True, eq=False)
class ResourceSlice(Record):
    """v1.ResourceSlice. Compared by identity: two slices are two objects in the cluster."""

    name: Annotated[str, At("metadata.name")]
    pool: Annotated[str, At("spec.pool.name", required=True)]
    generation: Annotated[int, At("spec.pool.generation")]
    resource_slice_count: Annotated[int, At("spec.pool.resourceSliceCount")]
    driver: Annotated[str, At("spec.driver", required=True)]
    node_name: Annotated[str | None, At("spec.nodeName")]
    node_selector: Annotated[NodeSelector | None, At("spec.nodeSelector")]
    all_nodes: Annotated[bool, At("spec.allNodes")]
    per_device_node_selection: Annotated[bool | None, At("spec.perDeviceNodeSelection")]
    devices: Annotated[
        tuple[Device, ...], At("spec.devices", parse=reading.list_of(read_shared(Device.from_dict)))
    ]
    shared_counters: Annotated[tuple[CounterSet, ...], At("spec.sharedCounters")]
    skip_node_operations: Annotated[tuple[str, ...], At("spec.skipNodeOperations")]

    @property
    def pool_id(self) -> PoolId:
        return PoolId(self.driver, self.pool)

    @property
    def uses_compatibility_groups(self) -> bool:
        """Return whether a device names compatibility groups (KEP-5963)."""
        return any(
            consumption.compatibility_groups
            for device in self.devices
            for consumption in device.consumes_counters
        )
