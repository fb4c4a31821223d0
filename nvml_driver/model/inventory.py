"""Devices of a node as plain values: all that slices, prepare and CDI need to know of NVML.

Frozen, so that an inventory can be shared between threads and compared to find out whether
anything changed. Names, attribute types and effects are those of the API
(k8s.io/api/resource/v1: ``Device``, ``DeviceAttribute``, ``CounterSet``, ``DeviceTaint``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

AttributeType = Literal["string", "version", "int", "bool", "ints"]
Kind = Literal["full", "mig", "mig-partition", "vfio"]
Health = Literal["Healthy", "Unhealthy", "Unknown"]
TaintEffect = Literal["None", "NoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One value of a device, typed as in ResourceSlice's ``attributes``."""

    type: AttributeType
    value: str | int | bool | tuple[int, ...]

    def to_api(self) -> dict[str, Any]:
        """Return the attribute as on the wire, for example ``{"version": "7.5.0"}``."""
        return {self.type: list(self.value) if isinstance(self.value, tuple) else self.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPolicy:
    """Says how much of a capacity one allocation takes (``CapacityRequestPolicy``), in its unit.

    ``minimum`` and ``step`` are of ``validRange``; ``default`` is for a request that does not say.
    """

    default: int
    minimum: int
    step: int


@dataclass(frozen=True, slots=True)
class CounterConsumption:
    """The amounts that a device takes of one counter set of its pool, by counter name."""

    counter_set: str
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CounterSet:
    """The amounts that the devices of one GPU share, by counter name."""

    name: str
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a device; ``time_added`` is RFC 3339 with whole seconds, ``""`` if not known."""

    key: str
    value: str
    effect: TaintEffect
    time_added: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigPlace:
    """A profile at a placement of a GPU: where a MIG device is, or can be made.

    Attributes:
        parent_minor: the GPU, by the number in ``/dev/nvidia<minor>``.
        profile: NVIDIA's name, for example ``1g.5gb`` or ``1g.5gb+me``.
        gi_profile_id: id of the GPU instance profile, as NVML reports it (19 for ``1g.5gb``).
        gi_profile_index: index by which NVML knows the profile (``NVML_GPU_INSTANCE_PROFILE_*``).
        ci_profile_index: likewise for the compute instance that takes the whole GPU instance.
    """

    parent_minor: int
    profile: str
    gi_profile_id: int
    gi_profile_index: int
    ci_profile_index: int
    start: int
    size: int

    def overlaps(self, other: MigPlace) -> bool:
        """Return whether the two have a memory slice of the same GPU in common."""
        return (
            self.parent_minor == other.parent_minor
            and self.start < other.start + other.size
            and other.start < self.start + self.size
        )

    def is_same(self, other: MigPlace) -> bool:
        """Compare profile id and start, because names of profiles can change with the driver."""
        return (self.parent_minor, self.gi_profile_id, self.start) == (
            other.parent_minor,
            other.gi_profile_id,
            other.start,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """A MIG device that exists.

    Attributes:
        place: where it is.
        ci_id: of the compute instance in it; None for a GPU instance that has none, which is what a
            crash between the two leaves.
        uuid: ``MIG-...``, as published; None where NVML does not report it.
        gi_capability: minor number of ``/dev/nvidia-caps/nvidia-cap<n>`` for the GPU instance; None
            where /proc does not report it.
    """

    place: MigPlace
    gi_id: int
    ci_id: int | None
    uuid: str | None = None
    gi_capability: int | None = None
    ci_capability: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device that the node publishes.

    Attributes:
        name: in its pool: ``gpu-<minor>``, ``gpu-<minor>-mig-<profile>-<id>-<start>``,
            ``gpu-vfio-<index>``.
        minor: the number in ``/dev/nvidia<minor>``, of the parent for a MIG device; None for VFIO.
        uuid: as published, None where NVML does not report it or the device does not exist yet.
        capacity: name to bytes or count, as published.
        kind: ``full``; ``mig``, which exists; ``mig-partition``, which preparing makes; ``vfio``.
        parent: name of the full GPU's device (``gpu-<minor>``), which need not be published.
        pci_bus_id: ``0000:3b:00.0``, None where not known.
        place: of ``mig`` and ``mig-partition``.
        instance: of ``mig``.
        iommu_group: of ``vfio``: the file in ``/dev/vfio``; None where the kernel shows none.
        iommufd: of ``vfio``: the file in ``/dev/vfio/devices``; None where the node has none.
        request_policies: of capacities that are shared out; by capacity name.
    """

    name: str
    minor: int | None
    uuid: str | None
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, int]
    kind: Kind = "full"
    parent: str | None = None
    pci_bus_id: str | None = None
    place: MigPlace | None = None
    instance: MigInstance | None = None
    iommu_group: int | None = None
    iommufd: str | None = None
    request_policies: Mapping[str, RequestPolicy] = field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    allow_multiple_allocations: bool = False
    taints: tuple[Taint, ...] = ()
    health: Health = "Healthy"
    health_message: str = ""

    @property
    def gpu_name(self) -> str:
        """The name of the full GPU (``gpu-<minor>``) that the device is, or is a part of."""
        return self.parent or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All devices of a node, in NVML's order (by PCI address), the parts of a GPU after it.

    Attributes:
        left_out: what was not published, and why; for people.
        foreign_instances: MIG devices that this driver did not make, published or not.
        mig_modes: GPU (``gpu-<minor>``) to whether it is in MIG mode, of those that the driver does
            not switch itself.
    """

    devices: tuple[Device, ...]
    simulated: bool
    left_out: tuple[str, ...] = ()
    counter_sets: tuple[CounterSet, ...] = ()
    foreign_instances: frozenset[MigInstance] = frozenset()
    mig_modes: Mapping[str, bool] = field(default_factory=dict)
    _by_name: dict[str, Device] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {device.name: device for device in self.devices})

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)

    def __len__(self) -> int:
        return len(self.devices)

    def get(self, name: str) -> Device | None:
        """Return the device of that name, or None if the node has none."""
        return self._by_name.get(name)

    def with_devices(self, devices: tuple[Device, ...]) -> Inventory:
        """Return a copy with other devices, for example with taints."""
        return replace(self, devices=devices)
