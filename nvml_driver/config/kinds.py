"""Decodes each kind of opaque configuration strictly: a misspelt field is an error.

Kinds, fields and rules are those of NVIDIA's driver (``resource.nvidia.com/v1beta1``,
kubernetes-sigs/dra-driver-nvidia-gpu ``api/nvidia.com/resource/v1beta1``). The admission policy
in ``ci/deploy`` says the same in CEL; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from nvml_driver.errors import ConfigError
from nvml_driver.model.inventory import Kind

API_VERSION = "resource.nvidia.com/v1beta1"

Settings = tuple[tuple[str, str], ...]  # Suffixes and values of environment variables.
Quantity = Annotated[
    str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$")
]
DeviceKey = Annotated[
    str, Field(pattern=r"^([0-9]{1,3}|(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$")
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class TimeSlicingConfig(_Strict):
    """How long a process keeps the GPU."""

    interval: Literal["Default", "Short", "Medium", "Long"] = "Default"


class MpsConfig(_Strict):
    """Settings of the Multi-Process Service; limits of devices are by index or UUID."""

    default_active_thread_percentage: int | None = Field(default=None, ge=0, le=100)
    default_pinned_device_memory_limit: Quantity | None = None
    default_per_device_pinned_memory_limit: dict[DeviceKey, Quantity] | None = None
    multi_user: bool | None = None

    def list_settings(self) -> Settings:
        """Return the settings that are not left to their defaults, as suffixes and values."""
        limits = self.default_per_device_pinned_memory_limit or {}
        variables = {
            "MPS_ACTIVE_THREAD_PERCENTAGE": self.default_active_thread_percentage,
            "MPS_PINNED_DEVICE_MEMORY_LIMIT": self.default_pinned_device_memory_limit,
            "MPS_PER_DEVICE_PINNED_MEMORY_LIMIT": ",".join(
                f"{device}={limit}" for device, limit in sorted(limits.items())
            )
            or None,
            "MPS_MULTI_USER": None if self.multi_user is None else str(self.multi_user).lower(),
        }
        return tuple((name, str(value)) for name, value in variables.items() if value is not None)


class MigDeviceSharing(_Strict):
    """How the processes that use a MIG device share it; its time slices cannot be set."""

    strategy: Literal["TimeSlicing", "MPS"]
    mps_config: MpsConfig | None = None

    @model_validator(mode="after")
    def _one_strategy(self) -> Self:
        if self.strategy != "MPS" and self.mps_config is not None:
            raise ValueError(f"mpsConfig: not allowed with strategy {self.strategy}")
        return self

    def list_settings(self) -> Settings:
        """Return the strategy and the settings that belong to it."""
        strategy = (("SHARING_STRATEGY", str(self.strategy)),)
        return strategy + (self.mps_config.list_settings() if self.mps_config is not None else ())


class GpuSharing(MigDeviceSharing):
    """How the processes that use a GPU share it."""

    time_slicing_config: TimeSlicingConfig | None = None

    @model_validator(mode="after")
    def _slices_with_time_slicing(self) -> Self:
        if self.strategy != "TimeSlicing" and self.time_slicing_config is not None:
            raise ValueError(f"timeSlicingConfig: not allowed with strategy {self.strategy}")
        return self

    def list_settings(self) -> Settings:
        """Return the strategy and its settings; time slices have an interval in any case."""
        result = super().list_settings()
        if self.strategy == "TimeSlicing":
            slicing = self.time_slicing_config or TimeSlicingConfig()
            result += (("TIMESLICE_INTERVAL", slicing.interval),)
        return result


class DeviceConfig(_Strict):
    """The fields that all kinds of configuration have."""

    device_kinds: ClassVar[tuple[Kind, ...]]
    api_version: Literal["resource.nvidia.com/v1beta1"]

    def explain_unsupported(self) -> str | None:
        """Return what this driver cannot do to real GPUs, None if nothing."""
        return None

    def list_settings(self) -> Settings:
        """Return suffixes and values of the container's environment variables."""
        return ()


class _Shared(DeviceConfig):
    sharing: MigDeviceSharing | None = None

    def explain_unsupported(self) -> str | None:
        if self.sharing is None or self.sharing.strategy != "MPS":
            return None
        return (
            "sharing.strategy: MPS is not supported on real GPUs, for this driver does not run MPS "
            "control daemons; use TimeSlicing, or a driver that does"
        )

    def list_settings(self) -> Settings:
        """Return how the device is shared; nothing if the configuration does not say."""
        return self.sharing.list_settings() if self.sharing is not None else ()


class GpuConfig(_Shared):
    """Configuration of a full GPU."""

    device_kinds = ("full",)
    kind: Literal["GpuConfig"]
    sharing: GpuSharing | None = None


class MigDeviceConfig(_Shared):
    """Configuration of a MIG device."""

    device_kinds = ("mig", "mig-partition")
    kind: Literal["MigDeviceConfig"]


class Iommu(_Strict):
    """Which of the kernel's two interfaces to pass on, and whether with its control file."""

    backend_policy: Literal["LegacyOnly", "PreferIommuFD"] = "LegacyOnly"
    enable_api_device: bool = Field(default=True, alias="enableAPIDevice")


class VfioDeviceConfig(DeviceConfig):
    """Configuration of a GPU that is passed to a virtual machine."""

    device_kinds = ("vfio",)
    kind: Literal["VfioDeviceConfig"]
    iommu: Iommu | None = None

    def list_settings(self) -> Settings:
        """Return the IOMMU interface to pass on; nothing if the configuration does not say."""
        if self.iommu is None:
            return ()
        return (
            ("IOMMU_BACKEND_POLICY", self.iommu.backend_policy),
            ("IOMMU_API_DEVICE", str(self.iommu.enable_api_device).lower()),
        )


KINDS: Mapping[str, type[DeviceConfig]] = {
    kind.__name__: kind for kind in (GpuConfig, MigDeviceConfig, VfioDeviceConfig)
}


def decode_config(parameters: object) -> DeviceConfig:
    """Decode a configuration from its ``parameters``. Raises ConfigError with each wrong field."""
    if not isinstance(parameters, Mapping):
        raise ConfigError("parameters must be an object")
    api_version, kind = parameters.get("apiVersion"), parameters.get("kind")
    if api_version != API_VERSION or not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(
            f"unknown apiVersion {api_version!r} or kind {kind!r}; "
            f"expected {API_VERSION} and one of {', '.join(KINDS)}"
        )
    try:
        return KINDS[kind].model_validate(dict(parameters))
    except ValidationError as error:
        raise ConfigError(
            "; ".join(map(_format_problem, error.errors(include_url=False)))
        ) from None


def _format_problem(problem: Any) -> str:
    """Return pydantic's error as one line, with the path of the field."""
    path = ".".join(str(key) for key in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{path}: unknown field"
    if problem["type"] == "value_error":  # ours, which begins with the field below the path
        return f"{path}.{problem['ctx']['error']}" if path else str(problem["ctx"]["error"])
    return f"{path}: {problem['msg']}"
