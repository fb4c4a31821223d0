"""What a driver profile says of simulated devices: what they are, and how they get unhealthy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import Field, field_validator

from conformance.scenario.base import Strict, api_objects
from conformance.scenario.driver.probing import Probe

_OWN_ENV = {"DRA_CONFORMANCE_DEVICE_{device}": "{device}"}
OWN_PROBE = Probe(env=r"^DRA_CONFORMANCE_DEVICE_[^=]+=(?P<device>.+)$")
"""Reads what the reference shows in its own way."""


class Simulated(Strict):
    """What the reference publishes, and shows to containers, in the driver's place.

    In names and values `{device}` stands for the device's name and `{index}` for the number at
    its end (failing that, its place among `devices`). What is shown must be what `probe` reads
    back; if neither `env` nor `deviceNodes` is given, the reference has a way of its own.
    """

    devices: tuple[dict[str, Any], ...] = Field(
        default=(),
        description="devices of each node, as in a ResourceSlice: name, attributes, capacity ...",
    )
    env: dict[str, str] = Field(default={}, description="environment of a container, per device")
    device_nodes: tuple[str, ...] = Field(
        default=(), description="device files of a container, per device"
    )
    config_env: dict[str, dict[str, str]] = Field(
        default={},
        description="configuration name -> further environment of a container, per device",
    )
    own_driver: bool = Field(
        default=False,
        description=(
            "the driver is the suite's own: beside a cluster, too, the reference runs that on"
            " simulated GPUs, not a description of what the cluster's driver has published"
        ),
    )

    prefix: str = Field(
        default="",
        pattern="^([a-z][a-z0-9]{0,15})?$",
        description=(
            "with ownDriver: what stands before the names of the variables and device files that it"
            " gives to containers (its --container-prefix), where two of it run on a node"
        ),
    )

    @field_validator("devices")
    @classmethod
    def _devices(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        return api_objects(value, "resource/v1.Device", "a device")

    @property
    def shows_devices(self) -> bool:
        return bool(self.env or self.device_nodes)

    def shown(
        self, device: str, place: int, configs: Iterable[str] = ()
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Environment and device files of a container with a device, by its place on the node."""
        number = re.search(r"\d+$", device)
        index = number[0] if number else str(place)

        def filled(text: str) -> str:
            return text.replace("{device}", device).replace("{index}", index)

        env = dict(self.env if self.shows_devices else _OWN_ENV)
        for name in configs:
            env |= self.config_env.get(name, {})
        environment = {filled(name): filled(value) for name, value in env.items()}
        return environment, tuple(filled(path) for path in self.device_nodes)


Health = Literal["Healthy", "Unhealthy", "Unknown"]
"""What a pod's status says of a device (k8s.io/api/core/v1, ``ResourceHealthStatus``)."""

DEVICE_HEALTH: Final = "device-health"
"""The ability of a target whose devices' health can be set; see `Capabilities`."""

_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z][\w./-]*)\}")


class Stimulus(Strict):
    """How a device's health is set: by lines in a file that the driver follows."""

    file: str = Field(
        pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$",
        description=(
            "the file, below the folder that a local cluster gives to the driver of a node"
            " ($DRA_CONFORMANCE_DRIVER_DIRECTORY); the driver makes it"
        ),
    )
    health: dict[Health, tuple[str, ...]] = Field(
        description=(
            "health -> lines that are appended; {device} stands for the device's name, {index} for"
            " the number at its end, {NAME} for its attribute NAME"
        )
    )

    @field_validator("health")
    @classmethod
    def _can_be_undone(cls, value: dict[Health, tuple[str, ...]]) -> dict[Health, tuple[str, ...]]:
        if not value.get("Healthy"):
            raise ValueError("must define how a device gets Healthy again")
        for line in (line for lines in value.values() for line in lines):
            if "\n" in line:
                raise ValueError(f"{line!r} is more than one line")
        return value

    def lines(self, health: Health, device: Mapping[str, Any]) -> str:
        """The lines to append to the file for a device, given as its ResourceSlice has it.

        Raises ValueError: the device has no such attribute, or the profile no lines for the health.
        """
        if health not in self.health:
            raise ValueError(f"the driver profile does not define how a device gets {health}")
        name = str(device["name"])
        number = re.search(r"\d+$", name)
        known = _attributes(device) | {"device": name} | ({"index": number[0]} if number else {})

        def filled(match: re.Match[str]) -> str:
            if match[1] not in known:
                raise ValueError(f"stimulus: the device {name} has no attribute {match[1]}")
            return known[match[1]]

        return "".join(_PLACEHOLDER.sub(filled, line) + "\n" for line in self.health[health])


def _attributes(device: Mapping[str, Any]) -> dict[str, str]:
    """Name of an attribute -> its value as a ResourceSlice in JSON has it."""
    return {
        name: str(one).lower() if isinstance(one, bool) else str(one)
        for name, value in (device.get("attributes") or {}).items()
        for one in value.values()
    }
