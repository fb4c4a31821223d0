"""ResourceSlices: what drivers publish (resource.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reference_allocator.api.attributes import Attribute
from reference_allocator.api.nodes import NodeSelector
from reference_allocator.api.quantity import Quantity, QuantityError, parse_quantity
from reference_allocator.api.reading import (
    InputError,
    boolean,
    child,
    describe,
    entries,
    integer,
    items,
    mapping,
    optional_boolean,
    optional_string,
    required_child,
    required_string,
    sequence,
    string,
    text_item,
)


class PoolId(NamedTuple):
    """A pool: pools of different drivers may have the same name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """A device, unique in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


def quantity(value: object) -> Quantity:
    """Reads a resource.Quantity from a JSON string or number.

    Raises:
        InputError: the text is no quantity.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(f"expected a quantity, got {describe(value)}")
    text = str(value).strip()
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise InputError(f"{describe(text)} is not a quantity: {error}") from None


@dataclass(frozen=True, slots=True)
class ValidRange:
    """v1.CapacityRequestPolicyRange."""

    min: Quantity | None
    max: Quantity | None
    step: Quantity | None

    @classmethod
    def from_dict(cls, value: object) -> ValidRange:
        """Reads the range of a request policy."""
        source = mapping(value)
        return cls(
            child(source, "min", quantity),
            child(source, "max", quantity),
            child(source, "step", quantity),
        )


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """v1.CapacityRequestPolicy: how much of a capacity one request may consume."""

    default: Quantity | None
    valid_values: tuple[Quantity, ...] | None
    valid_range: ValidRange | None

    @classmethod
    def from_dict(cls, value: object) -> RequestPolicy:
        """Reads a request policy."""
        source = mapping(value)
        return cls(
            child(source, "default", quantity),
            sequence(source, "validValues", quantity),
            child(source, "validRange", ValidRange.from_dict),
        )


@dataclass(frozen=True, slots=True)
class DeviceCapacity:
    """v1.DeviceCapacity."""

    value: Quantity
    request_policy: RequestPolicy | None

    @classmethod
    def from_dict(cls, value: object) -> DeviceCapacity:
        """Reads one capacity of a device."""
        source = mapping(value)
        return cls(
            required_child(source, "value", quantity),
            child(source, "requestPolicy", RequestPolicy.from_dict),
        )


def _counter(value: object) -> Quantity:
    return required_child(mapping(value), "value", quantity)


@dataclass(frozen=True, slots=True)
class CounterConsumption:
    """v1.DeviceCounterConsumption: what a device takes of one counter set of its pool."""

    counter_set: str
    counters: Mapping[str, Quantity]
    compatibility_groups: frozenset[str]

    @classmethod
    def from_dict(cls, value: object) -> CounterConsumption:
        """Reads one consumption."""
        source = mapping(value)
        return cls(
            string(source, "counterSet"),
            entries(source, "counters", _counter),
            frozenset(items(source, "compatibilityGroups", text_item)),
        )


@dataclass(frozen=True, slots=True)
class Taint:
    """v1.DeviceTaint."""

    key: str
    value: str
    effect: str

    @classmethod
    def from_dict(cls, value: object) -> Taint:
        """Reads one taint."""
        source = mapping(value)
        return cls(string(source, "key"), string(source, "value"), string(source, "effect"))


@dataclass(frozen=True, slots=True)
class Device:
    """v1.Device."""

    name: str
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
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_dict(cls, value: object) -> Device:
        """Reads one device of a slice."""
        source = mapping(value)
        return cls(
            name=required_string(source, "name"),
            attributes=entries(source, "attributes", Attribute.from_dict),
            capacity=entries(source, "capacity", DeviceCapacity.from_dict),
            consumes_counters=items(source, "consumesCounters", CounterConsumption.from_dict),
            node_name=optional_string(source, "nodeName"),
            node_selector=child(source, "nodeSelector", NodeSelector.from_dict),
            all_nodes=boolean(source, "allNodes"),
            taints=items(source, "taints", Taint.from_dict),
            binds_to_node=boolean(source, "bindsToNode"),
            binding_conditions=sequence(source, "bindingConditions", text_item),
            binding_failure_conditions=items(source, "bindingFailureConditions", text_item),
            allow_multiple_allocations=optional_boolean(source, "allowMultipleAllocations"),
            raw=source,
        )


@dataclass(frozen=True, slots=True)
class _CounterSet:
    name: str
    counters: Mapping[str, Quantity]

    @classmethod
    def from_dict(cls, value: object) -> _CounterSet:
        source = mapping(value)
        return cls(string(source, "name"), entries(source, "counters", _counter))


@dataclass(frozen=True, slots=True, eq=False)
class ResourceSlice:
    """v1.ResourceSlice. Compared by identity: two slices are two objects in the cluster."""

    name: str
    driver: str
    pool: str
    generation: int
    resource_slice_count: int
    node_name: str | None
    node_selector: NodeSelector | None
    all_nodes: bool
    per_device_node_selection: bool | None
    devices: tuple[Device, ...]
    shared_counters: tuple[_CounterSet, ...]
    skip_node_operations: tuple[str, ...]

    @property
    def pool_id(self) -> PoolId:
        """The pool that the slice belongs to."""
        return PoolId(self.driver, self.pool)

    @property
    def uses_compatibility_groups(self) -> bool:
        """Whether a device names compatibility groups (KEP-5963)."""
        return any(
            consumption.compatibility_groups
            for device in self.devices
            for consumption in device.consumes_counters
        )

    @classmethod
    def from_dict(cls, value: object) -> ResourceSlice:
        """Reads a v1 ResourceSlice.

        Raises:
            InputError: the object has not the form of a ResourceSlice; names the path.
        """
        source = mapping(value)
        name = child(source, "metadata", lambda metadata: string(mapping(metadata), "name")) or ""
        return required_child(source, "spec", lambda spec: cls._from_spec(name, mapping(spec)))

    @classmethod
    def _from_spec(cls, name: str, spec: Mapping[str, Any]) -> ResourceSlice:
        pool = required_child(spec, "pool", _read_pool)
        return cls(
            name=name,
            driver=required_string(spec, "driver"),
            pool=pool[0],
            generation=pool[1],
            resource_slice_count=pool[2],
            node_name=optional_string(spec, "nodeName"),
            node_selector=child(spec, "nodeSelector", NodeSelector.from_dict),
            all_nodes=boolean(spec, "allNodes"),
            per_device_node_selection=optional_boolean(spec, "perDeviceNodeSelection"),
            devices=items(spec, "devices", Device.from_dict),
            shared_counters=items(spec, "sharedCounters", _CounterSet.from_dict),
            skip_node_operations=items(spec, "skipNodeOperations", text_item),
        )


def _read_pool(value: object) -> tuple[str, int, int]:
    source = mapping(value)
    return (
        required_string(source, "name"),
        integer(source, "generation"),
        integer(source, "resourceSliceCount"),
    )
