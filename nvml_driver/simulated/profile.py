"""Reads profiles: which GPUs a simulated NVML shows, as JSON that a person writes.

The checks are all here, so that the C library need not know JSON: it gets short text lines, one
``key value`` each, from ``Profile.describe``. Numbers in a shipped profile have a source, and the
profile names it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pynvml
from pydantic import Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from nvml_driver.errors import ProfileError, format_problems
from nvml_driver.simulated import list_shipped_profiles
from nvml_driver.simulated.migtable import (
    BootInstance,
    MigTable,
    Model,
    check_instances,
    nvml_constant,
)

_LARGEST = 2**20  # bytes of a profile; the largest that is shipped has a fortieth of it
_LINE = r"^[\x20-\x7e]{1,80}$"
_USUAL_EVENTS = (
    pynvml.nvmlEventTypeSingleBitEccError
    | pynvml.nvmlEventTypeDoubleBitEccError
    | pynvml.nvmlEventTypeXidCriticalError
)
_MIG_EVENT = pynvml.nvmlEventMigConfigChange
_LAST = 2**32 - 1  # of a fault that never ends

Brand = Annotated[int, nvml_constant("NVML_BRAND_"), Field(ge=0, le=2**31 - 1)]
Architecture = Annotated[int, nvml_constant("NVML_DEVICE_ARCH_"), Field(ge=0, le=2**32 - 1)]
ErrorCode = Annotated[int, nvml_constant("NVML_ERROR_"), Field(ge=1, le=999)]


class FaultWindow(Model):
    """A fault that does not last.

    Attributes:
        error: what the function answers, as NVML's number or name (``NOT_SUPPORTED``).
        first: the first call of the function that fails, counted from 1.
        last: the last that fails; None: all from ``first`` on.
    """

    error: ErrorCode
    first: int = Field(default=1, ge=1, le=_LAST)
    last: int | None = Field(default=None, ge=1, le=_LAST)


Faults = dict[
    Annotated[str, Field(pattern=r"^(\*|nvml[A-Za-z0-9_]{1,80})$")], ErrorCode | FaultWindow
]


def fault_line(function: str, fault: int | FaultWindow) -> str:
    """Return the line that describes a fault to the C library, without the ``fault`` before it."""
    if isinstance(fault, int):
        return f"{function} {fault}"
    return f"{function} {fault.error} {fault.first} {fault.last or _LAST}"


class SimulatedGpu(Model):
    """One GPU, in NVML's own terms.

    Attributes:
        memory_bytes: what nvmlDeviceGetMemoryInfo gives as total; None: NOT_SUPPORTED.
        pci_bus_id: domain:bus:device.function in hexadecimal, for example ``0000:00:1e.0``.
        sysfs_path: where the device hangs below ``/sys/devices``; None: sysfs does not know it.
        numa_node: what sysfs says; -1: the platform does not report.
        mig_mode: after a boot; None: a GPU without MIG.
        mig: what it can be partitioned into; None where nobody showed a table of real hardware.
        event_types: bits of ``nvmlEventType*`` that can be registered for; None: XIDs and ECC
            errors and, of a GPU that can be partitioned, changes of its MIG devices.
        bound_to: the kernel driver; a GPU of ``vfio-pci`` is in sysfs, but not in NVML.
        iommu_group: number in sysfs; None: the platform has no IOMMU.
        faults: NVML function (or ``*``) to the error that it answers, always or in some calls.
    """

    uuid: str = Field(pattern=r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
    name: str = Field(pattern=_LINE)
    minor: int = Field(ge=0, le=2**20 - 1)
    brand: Brand
    architecture: Architecture
    cuda_compute_capability: str = Field(pattern=r"^\d{1,2}\.\d{1,2}$")
    memory_bytes: int | None = Field(default=None, ge=0, le=2**63 - 1)
    pci_bus_id: str = Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.0$")
    pci_device_id: int = Field(default=0, ge=0, le=2**32 - 1)
    pci_subsystem_id: int = Field(default=0, ge=0, le=2**32 - 1)
    sysfs_path: str | None = Field(
        default=None, pattern=r"^pci[0-9a-f]{4}:[0-9a-f]{2}(/[0-9a-f:.]+)*$"
    )
    numa_node: int = Field(default=-1, ge=-1, le=1023)
    addressing_mode: Literal["NONE", "HMM", "ATS"] | None = None
    mig_mode: Literal["enabled", "disabled"] | None = None
    mig: MigTable | None = None
    mig_instances: tuple[BootInstance, ...] = Field(default=(), strict=False, max_length=8)
    event_types: int | None = Field(default=None, ge=0, le=0xFFFFFFFF)
    bound_to: Literal["nvidia", "vfio-pci"] = "nvidia"
    iommu_group: int | None = Field(default=None, ge=0, le=2**20)
    faults: Faults = Field(default_factory=dict)

    @model_validator(mode="after")
    def _instances_fit(self) -> Self:
        if self.mig_instances and self.mig_mode != "enabled":
            raise ValueError("migInstances need migMode enabled")
        check_instances(self.mig, self.mig_instances)
        return self

    def describe(self) -> list[str]:
        """Return the lines that describe this GPU to the C library."""
        lines = [
            "gpu",
            f"uuid {self.uuid}",
            f"name {self.name}",
            f"minor {self.minor}",
            f"brand {self.brand}",
            f"architecture {self.architecture}",
            f"compute_capability {self.cuda_compute_capability}",
            f"pci_bus_id {self.pci_bus_id}",
            f"pci_device_id {self.pci_device_id}",
            f"pci_subsystem_id {self.pci_subsystem_id}",
        ]
        if self.memory_bytes is not None:
            lines.append(f"memory_total {self.memory_bytes}")
        if self.addressing_mode is not None:
            mode = getattr(pynvml, f"NVML_DEVICE_ADDRESSING_MODE_{self.addressing_mode}")
            lines.append(f"addressing_mode {mode}")
        if self.mig_mode is not None:
            lines.append(f"mig_mode {int(self.mig_mode == 'enabled')}")
        if self.mig is not None:
            lines.append(f"mig_slices {self.mig.memory_slices}")
            lines += [profile.describe() for profile in self.mig.profiles]
            for instance in self.mig_instances:
                profile = self.mig.find_profile(instance.profile)
                assert profile is not None  # checked when the profile was read
                lines.append(f"mig_instance {profile.index} {instance.start}")
        usual = _USUAL_EVENTS if self.mig is None else _USUAL_EVENTS | _MIG_EVENT
        lines.append(f"event_types {usual if self.event_types is None else self.event_types}")
        return lines + [f"fault {fault_line(*fault)}" for fault in self.faults.items()]


class Profile(Model):
    """A node's GPUs and its NVIDIA driver, as NVML reports them; ``sources``: of the numbers.

    ``cuda_driver_version``: major * 1000 + minor * 10, as NVML encodes it.
    """

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    description: str
    sources: tuple[str, ...] = Field(strict=False)
    driver_version: str = Field(pattern=_LINE)
    nvml_version: str = Field(pattern=_LINE)
    cuda_driver_version: int = Field(ge=0, le=2**31 - 1)
    gpus: tuple[SimulatedGpu, ...] = Field(strict=False, max_length=256)
    faults: Faults = Field(default_factory=dict)

    @model_validator(mode="after")
    def _no_two_alike(self) -> Self:
        for field in ("uuid", "minor", "pci_bus_id"):
            values = [getattr(gpu, field) for gpu in self.gpus]
            duplicates = sorted({str(value) for value in values if values.count(value) > 1})
            if duplicates:
                raise ValueError(
                    f"two GPUs have the same {to_camel(field)}: {', '.join(duplicates)}"
                )
        return self

    def describe(self, *, state: Path | None = None, control: Path | None = None) -> bytes:
        """Return the whole description for the C library (its format is at the top of describe.c).

        ``state`` is the file that keeps MIG mode and instances from one process to the next,
        ``control`` the one whose lines inject events and faults.
        """
        lines = [
            "nvml-simulated 2",
            f"driver_version {self.driver_version}",
            f"nvml_version {self.nvml_version}",
            f"cuda_driver_version {self.cuda_driver_version}",
            *(f"fault {fault_line(*fault)}" for fault in self.faults.items()),
        ]
        if state is not None:
            lines.append(f"state {state}")
        if control is not None:
            lines.append(f"control {control}")
        for gpu in self.shown:
            lines += gpu.describe()
        return ("\n".join(lines) + "\n").encode()

    @property
    def shown(self) -> tuple[SimulatedGpu, ...]:
        """The GPUs that NVML shows, in its order: those of NVIDIA's kernel driver."""
        return tuple(gpu for gpu in self.gpus if gpu.bound_to == "nvidia")


def load_profile(profile: str | Path | Profile) -> Profile:
    """Read a profile by its name (``t4x1``: ``t4x4`` with fewer GPUs), or from a file.

    Raises ProfileError.
    """
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, str) and (shipped_profile := _find_shipped(profile)) is not None:
        return shipped_profile
    path = Path(profile)
    try:
        if path.exists() and not path.is_file():  # a device or a pipe might never end
            raise OSError("it is not a regular file")
        if path.stat().st_size > _LARGEST:
            raise OSError(f"it is larger than {_LARGEST} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProfileError(
            f"profile {str(profile)!r} is neither a file that can be read ({reason}) "
            f"nor one of the shipped: {', '.join(list_shipped_profiles())}, or with fewer GPUs "
            "(t4x1)"
        ) from None
    return parse_profile(text, str(path))


def _find_shipped(name: str) -> Profile | None:
    """Return the shipped profile of that name, or of another number of the same GPUs."""
    if name in list_shipped_profiles():
        return _load_shipped(name)
    kind, _, number = name.rpartition("x")
    for other in list_shipped_profiles():
        if number.isdecimal() and other.rpartition("x")[0] == kind:
            profile = _load_shipped(other)
            if int(number) <= len(profile.gpus):
                gpus = profile.gpus[: int(number)]
                return profile.model_copy(update={"name": name, "gpus": gpus})
    return None


@cache
def _load_shipped(name: str) -> Profile:
    file = resources.files("nvml_driver.simulated").joinpath("profiles", f"{name}.json")
    return parse_profile(file.read_text(encoding="utf-8"), f"shipped profile {name}")


def parse_profile(text: str, where: str) -> Profile:
    """Read a profile from JSON text; ``where`` is what to call it in a message.

    ``defaults`` beside ``gpus`` holds what all GPUs have in common, and ``kinds`` what those have
    in common that name it: ``"kind": "T4"``. A ProfileError has line and column, or the field's
    path.
    """
    try:
        document: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise ProfileError(f"{where}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:  # too deep, or a number of thousands of digits
        raise ProfileError(f"{where}: not readable as JSON: {error}") from None
    if not isinstance(document, dict):
        raise ProfileError(f"{where}: a profile is a JSON object")
    document = dict(document)
    defaults = document.pop("defaults", {})
    gpus = document.get("gpus")
    kinds = document.pop("kinds", {})
    if isinstance(defaults, dict) and isinstance(gpus, list) and isinstance(kinds, dict):
        document["gpus"] = [_fill_gpu(gpu, defaults, kinds) for gpu in gpus]
    try:
        return Profile.model_validate(document)
    except ValidationError as error:
        raise ProfileError(f"{where}: {format_problems(error, root='profile')}") from None


def _fill_gpu(gpu: object, defaults: dict[str, Any], kinds: dict[str, Any]) -> object:
    if not isinstance(gpu, dict):
        return gpu
    fields = dict(gpu)
    kind = kinds.get(fields.get("kind", ""))
    if isinstance(kind, dict):
        del fields["kind"]
    else:
        kind = {}
    return {**defaults, **kind, **fields}
