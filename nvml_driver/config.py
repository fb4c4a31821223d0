"""Opaque configuration: what a claim or a class asks of the driver beyond "this device".

Kinds and fields as NVIDIA's driver has them (``resource.nvidia.com/v1beta1``,
kubernetes-sigs/dra-driver-nvidia-gpu ``api/nvidia.com/resource/v1beta1``), decoded strictly: a
misspelt field is an error, not a silent default. The order is the scheduler's list with what comes
from the class before what comes from the claim; the last that applies to a request wins.

The effect shows in the container's environment. Without any configuration nothing is set, so that
a container can tell "the default was asked for" from "nothing reached the driver".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from nvml_driver.errors import ConfigError

API_VERSION = "resource.nvidia.com/v1beta1"
OTHER_KINDS = ("MigDeviceConfig", "VfioDeviceConfig")
"""Kinds of the API for device types that are not full GPUs."""

Settings = tuple[tuple[str, str], ...]
_Quantity = Annotated[
    str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$")
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class TimeSlicingConfig(_Strict):
    """How long a process keeps the GPU."""

    interval: Literal["Default", "Short", "Medium", "Long"] = "Default"


class MpsConfig(_Strict):
    """Settings of the Multi-Process Service."""

    default_active_thread_percentage: int | None = Field(default=None, ge=0, le=100)
    default_pinned_device_memory_limit: _Quantity | None = None
    default_per_device_pinned_memory_limit: dict[str, _Quantity] | None = None
    multi_user: bool | None = None


class GpuSharing(_Strict):
    """How the processes that use a GPU share it."""

    strategy: Literal["TimeSlicing", "MPS"]
    time_slicing_config: TimeSlicingConfig | None = None
    mps_config: MpsConfig | None = None


class GpuConfig(_Strict):
    """Configuration of a full GPU."""

    api_version: Literal["resource.nvidia.com/v1beta1"]
    kind: Literal["GpuConfig"]
    sharing: GpuSharing | None = None

    def problem(self, *, simulated: bool) -> str | None:
        """Why the configuration cannot be met, None if it can.

        Args:
            simulated: simulated GPUs only show what was asked for; a real GPU would have to do it.
        """
        sharing = self.sharing
        if sharing is None:
            return None
        if sharing.strategy == "TimeSlicing":
            if sharing.mps_config is not None:
                return "sharing.mpsConfig: not allowed with strategy TimeSlicing"
            interval = sharing.time_slicing_config
            if not simulated and interval is not None and interval.interval != "Default":
                return "sharing.timeSlicingConfig.interval: only Default is supported on real GPUs"
        else:
            if sharing.time_slicing_config is not None:
                return "sharing.timeSlicingConfig: not allowed with strategy MPS"
            if not simulated:
                return "sharing.strategy: MPS is not supported on real GPUs"
        return None

    def settings(self) -> Settings:
        """The configuration as suffix and value of environment variables."""
        sharing = self.sharing
        if sharing is None:
            return ()
        result: list[tuple[str, str]] = [("SHARING_STRATEGY", sharing.strategy)]
        if sharing.strategy == "TimeSlicing":
            slicing = sharing.time_slicing_config or TimeSlicingConfig()
            result.append(("TIMESLICE_INTERVAL", slicing.interval))
        elif sharing.mps_config is not None:
            mps = sharing.mps_config
            if mps.default_active_thread_percentage is not None:
                percentage = str(mps.default_active_thread_percentage)
                result.append(("MPS_ACTIVE_THREAD_PERCENTAGE", percentage))
            if mps.default_pinned_device_memory_limit is not None:
                limit = mps.default_pinned_device_memory_limit
                result.append(("MPS_PINNED_DEVICE_MEMORY_LIMIT", limit))
        return tuple(result)


@dataclass(frozen=True, slots=True)
class _Source:
    """One configuration of the allocation, decoded."""

    requests: tuple[str, ...]
    config: GpuConfig

    def applies_to(self, request: str) -> bool:
        """Whether it is for a result's request (``req`` or ``req/sub``)."""
        base = request.partition("/")[0]
        return not self.requests or request in self.requests or base in self.requests


def settings_for(
    driver_name: str,
    configs: Iterable[Mapping[str, Any]],
    requests: Sequence[str],
    *,
    simulated: bool,
) -> dict[str, Settings]:
    """What each request's devices are set to.

    Args:
        driver_name: configurations for other drivers are not looked at.
        configs: the claim's ``status.allocation.devices.config``.
        requests: the ``request`` of each of this driver's results.
        simulated: whether the GPUs are.

    Returns:
        Request (as in ``requests``) to settings, empty for one without configuration.

    Raises:
        ConfigError: a configuration that cannot be read or met, also one that a later overrides.
    """
    mine: list[tuple[int, Mapping[str, Any]]] = [
        (index, entry)
        for index, entry in enumerate(configs)
        if (entry.get("opaque") or {}).get("driver") == driver_name
    ]
    # FromClass before FromClaim, else as listed (the sort is stable).
    mine.sort(key=lambda pair: pair[1].get("source") != "FromClass")
    sources = [
        decoded
        for index, entry in mine
        if (decoded := _decode(index, entry, simulated=simulated)) is not None
    ]
    result: dict[str, Settings] = {}
    for request in requests:
        applying = [source for source in sources if source.applies_to(request)]
        result[request] = applying[-1].config.settings() if applying else ()
    return result


def _decode(index: int, entry: Mapping[str, Any], *, simulated: bool) -> _Source | None:
    requests = tuple(entry.get("requests") or ())
    origin = "class" if entry.get("source") == "FromClass" else "claim"
    scope = f" for requests {', '.join(requests)}" if requests else ""
    where = f"configuration {index} (from the {origin}{scope})"
    parameters = entry["opaque"].get("parameters")
    if not isinstance(parameters, Mapping):
        raise ConfigError(f"{where}: parameters must be an object")
    api_version, kind = parameters.get("apiVersion"), parameters.get("kind")
    if api_version == API_VERSION and kind in OTHER_KINDS:
        if requests:
            raise ConfigError(f"{where}: {kind} is not for the full GPUs of these requests")
        return None  # for whatever other devices the claim has
    if (api_version, kind) != (API_VERSION, "GpuConfig"):
        raise ConfigError(
            f"{where}: unknown apiVersion {api_version!r} or kind {kind!r}; "
            f"expected {API_VERSION} GpuConfig"
        )
    try:
        config = GpuConfig.model_validate(dict(parameters))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: "
            + ("unknown field" if problem["type"] == "extra_forbidden" else problem["msg"])
            for problem in error.errors(include_url=False)
        )
        raise ConfigError(f"{where}: {problems}") from None
    problem = config.problem(simulated=simulated)
    if problem is not None:
        raise ConfigError(f"{where}: {problem}")
    return _Source(requests, config)
