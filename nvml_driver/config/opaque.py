"""Applies opaque configuration: what a claim or a class asks of the driver beyond "this device".

The order is the scheduler's list with what comes from the class before what comes from the claim;
the last that applies to a request wins. A configuration of another kind than the device is skipped
when it is for all requests, and an error when it names the request. What the kinds are and how
they are decoded is in `config.kinds`.

The effect shows in the container's environment. Without any configuration nothing is set, so that
a container can tell "the default was asked for" from "nothing reached the driver".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nvml_driver.config.kinds import DeviceConfig, Settings, decode_config
from nvml_driver.errors import ConfigError
from nvml_driver.model.inventory import Kind

_NOUNS: Mapping[Kind, str] = {
    "full": "the full GPUs",
    "mig": "the MIG devices",
    "mig-partition": "the MIG devices",
    "vfio": "the VFIO devices",
}


@dataclass(frozen=True, slots=True)
class _Source:
    """One configuration of the allocation, decoded."""

    where: str
    requests: tuple[str, ...]
    config: DeviceConfig

    def names_request(self, request: str) -> bool:
        """Return whether it is scoped to a result's request (``req`` or ``req/sub``)."""
        return request in self.requests or request.partition("/")[0] in self.requests


def settings_for(
    driver_name: str,
    configs: Iterable[Mapping[str, Any]],
    devices: Iterable[tuple[str, Kind]],
    *,
    simulated: bool,
) -> list[Settings]:
    """Return what each device is set to, in the order of ``devices``; empty without configuration.

    Args:
        driver_name: configurations for other drivers are not looked at.
        configs: the claim's ``status.allocation.devices.config``.
        devices: request (``req`` or ``req/sub``) and kind of each device of the claim.
        simulated: simulated GPUs show what was asked for, real ones have to do it.

    Raises ConfigError: a configuration that cannot be read or met, also one that a later overrides.
    """
    own_configs: list[tuple[int, Mapping[str, Any]]] = [
        (index, entry)
        for index, entry in enumerate(configs)
        if (entry.get("opaque") or {}).get("driver") == driver_name
    ]
    # FromClass before FromClaim, else as listed (the sort is stable).
    own_configs.sort(key=lambda pair: pair[1].get("source") != "FromClass")
    sources = [_decode_source(index, entry, simulated=simulated) for index, entry in own_configs]
    return [_choose_settings(sources, request, kind) for request, kind in devices]


def _choose_settings(sources: Iterable[_Source], request: str, kind: Kind) -> Settings:
    """Return the settings of the last configuration that applies to a device of a request."""
    settings: Settings = ()
    for source in sources:
        named = source.names_request(request)
        if source.requests and not named:
            continue
        if kind in source.config.device_kinds:
            settings = source.config.list_settings()
        elif named:
            kind_name = type(source.config).__name__
            raise ConfigError(
                f"{source.where}: {kind_name} is not for {_NOUNS[kind]} of these requests"
            )
    return settings


def _decode_source(index: int, entry: Mapping[str, Any], *, simulated: bool) -> _Source:
    requests = tuple(entry.get("requests") or ())
    origin = "class" if entry.get("source") == "FromClass" else "claim"
    scope = f" for requests {', '.join(requests)}" if requests else ""
    where = f"configuration {index} (from the {origin}{scope})"
    try:
        config = decode_config(entry["opaque"].get("parameters"))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    problem = None if simulated else config.explain_unsupported()
    if problem is not None:
        raise ConfigError(f"{where}: {problem}")
    return _Source(where, requests, config)
