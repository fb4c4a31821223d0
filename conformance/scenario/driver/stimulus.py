"""``stimulate``: devices that get unhealthy, and how a driver is told of it.

Real hardware does not get unhealthy at will. A driver that runs on simulated hardware, or has a way
of its own to be tried out, can be told; its profile says how.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, field_validator

from conformance.scenario.base import Strict

Health = Literal["Healthy", "Unhealthy", "Unknown"]
"""What a pod's status says of a device (k8s.io/api/core/v1, ``ResourceHealthStatus``)."""

DEVICE_HEALTH: Final = "device-health"
"""The ability of a target whose driver can be told; see `Capabilities`."""

_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z][\w./-]*)\}")


class Stimulus(Strict):
    """How a driver is told what happens to a device: by lines in a file that it follows."""

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

        Raises:
            ValueError: the device has no such attribute, or the profile no lines for the health.
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
