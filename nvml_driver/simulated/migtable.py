"""Describes a GPU's possible partitions in a profile, as ``nvidia-smi mig`` lists them.

A table is only as good as where it came from: device names, placements and counters are all made
of it. So a shipped profile has a table only where a listing of real hardware (``-lgip`` and
``-lgipp``) was found, and its sources say which.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

import pynvml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


def nvml_constant(prefix: str) -> BeforeValidator:
    """Return a validator that lets a profile say ``TURING`` for ``NVML_DEVICE_ARCH_TURING``."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        number = getattr(pynvml, prefix + value, None)
        if not isinstance(number, int):
            raise ValueError(f"NVML has no {prefix}{value}")
        return number

    return BeforeValidator(read)


class Model(BaseModel):
    """Base class of a profile's parts: strict, frozen, camelCase in JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


Count = Annotated[int, Field(ge=0, le=255)]


class MigProfile(Model):
    """One row of ``nvidia-smi mig -lgip``, and its line of ``-lgipp``.

    Attributes:
        name: without ``MIG``, for example ``1g.5gb+me``.
        index: NVML's index (``NVML_GPU_INSTANCE_PROFILE_*``), for example ``1_SLICE_REV1``.
        id: the profile's id on this GPU, which is what ``-cgi`` takes.
        starts: first memory slices of the possible placements.
        size: memory slices of each placement.
    """

    name: str = Field(pattern=r"^[1-9]g\.[0-9]+gb([+-][a-z.]+)?$")
    index: Annotated[int, nvml_constant("NVML_GPU_INSTANCE_PROFILE_"), Field(ge=0, le=63)]
    id: int = Field(ge=0, le=1023)
    slices: int = Field(ge=1, le=8)
    instances: int = Field(ge=1, le=8)
    multiprocessors: int = Field(ge=0, le=65535)
    copy_engines: Count
    decoders: Count
    encoders: Count = 0
    jpeg_engines: Count
    ofa_engines: Count
    memory_mib: int = Field(ge=0, le=2**31 - 1)
    starts: tuple[int, ...] = Field(strict=False, min_length=1, max_length=8)
    size: int = Field(ge=1, le=8)

    @model_validator(mode="after")
    def _aligned(self) -> Self:
        if self.size & (self.size - 1):
            raise ValueError(f"size must be a power of two, not {self.size}")
        if any(start % self.size or not 0 <= start <= 8 - self.size for start in self.starts):
            raise ValueError(f"starts must be multiples of size {self.size} within 8 slices")
        return self

    def describe(self) -> str:
        """Return the line that describes this profile to the C library."""
        numbers = (
            *(self.index, self.id, self.slices, self.instances, self.multiprocessors),
            *(self.copy_engines, self.decoders, self.encoders, self.jpeg_engines),
            *(self.ofa_engines, self.memory_mib, self.size),
        )
        starts = ",".join(map(str, self.starts))
        return f"mig_profile {' '.join(map(str, numbers))} {starts} {self.name}"


class MigTable(Model):
    """The possible partitions of a GPU; it has 8 memory slices, the A30 has 4."""

    memory_slices: int = Field(ge=4, le=8)
    profiles: tuple[MigProfile, ...] = Field(strict=False, min_length=1, max_length=18)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.memory_slices not in (4, 8):
            raise ValueError("memorySlices must be 4 or 8")
        for field in ("name", "index", "id"):
            values = [getattr(profile, field) for profile in self.profiles]
            if len(set(values)) != len(values):
                raise ValueError(f"two profiles have the same {field}")
        for profile in self.profiles:
            if any(start + profile.size > self.memory_slices for start in profile.starts):
                raise ValueError(f"{profile.name} has a placement beyond memorySlices")
        return self

    def find_profile(self, name: str) -> MigProfile | None:
        """Return the profile of that name, or None."""
        return next((profile for profile in self.profiles if profile.name == name), None)


class BootInstance(Model):
    """A MIG device that exists from the start, as an administrator would have made it."""

    profile: str
    start: int = Field(ge=0, le=7)


def check_instances(table: MigTable | None, instances: tuple[BootInstance, ...]) -> dict[str, Any]:
    """Return the instance at each memory slice.

    Raises ValueError: unknown profile or place, overlap.
    """
    instance_by_slice: dict[str, Any] = {}
    for instance in instances:
        profile = table.find_profile(instance.profile) if table else None
        if profile is None:
            raise ValueError(f"migInstances: this GPU has no MIG profile {instance.profile}")
        if instance.start not in profile.starts:
            raise ValueError(f"migInstances: {instance.profile} cannot start at {instance.start}")
        for at in range(instance.start, instance.start + profile.size):
            if instance_by_slice.setdefault(str(at), instance) is not instance:
                raise ValueError(f"migInstances: two instances take memory slice {at}")
    return instance_by_slice
