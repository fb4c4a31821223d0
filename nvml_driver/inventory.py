"""The GPUs of a node as plain values: all that slices, prepare and CDI need to know of NVML.

Frozen, so that an inventory can be shared between threads and compared to find out whether
anything changed. The types of attributes are those of the API (``DeviceAttribute``: one of string,
version, int, bool).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

AttributeType = Literal["string", "version", "int", "bool"]

SIMULATED_ATTRIBUTE = "dra-conformance.dev/simulated"
"""Carried by every device that a simulated NVML shows, so that nobody takes it for hardware."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One value of a device, typed as in ResourceSlice's ``attributes``."""

    type: AttributeType
    value: str | int | bool

    def to_api(self) -> dict[str, str | int | bool]:
        """As on the wire, for example ``{"version": "7.5.0"}``."""
        return {self.type: self.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A full GPU.

    Attributes:
        name: the device's name in its pool, ``gpu-<minor>``.
        minor: the number in ``/dev/nvidia<minor>``.
        uuid: NVML's, None where NVML does not tell it.
        attributes: name to value, as published.
        capacity: name to bytes or count, as published.
    """

    name: str
    minor: int
    uuid: str | None
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All devices of a node.

    Attributes:
        devices: in NVML's order, which is by PCI address.
        simulated: whether a simulated NVML showed them.
        left_out: what was not published, and why; for people.
    """

    devices: tuple[Gpu, ...]
    simulated: bool
    left_out: tuple[str, ...] = ()
    _by_name: dict[str, Gpu] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {gpu.name: gpu for gpu in self.devices})

    def __iter__(self) -> Iterator[Gpu]:
        return iter(self.devices)

    def __len__(self) -> int:
        return len(self.devices)

    def get(self, name: str) -> Gpu | None:
        """The device of that name."""
        return self._by_name.get(name)
