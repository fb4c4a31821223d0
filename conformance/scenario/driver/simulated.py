"""What a driver profile says of simulated devices: what they are, and how they get unhealthy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

from pydantic import Field, field_validator

from conformance.scenario.base import Strict, api_objects
from conformance.scenario.driver.probe_ways import output_name
from conformance.scenario.driver.probing import Probe
from kube.observations import ContainerView, Health

_OWN_ENV = {"DRA_CONFORMANCE_DEVICE_{device}": "{device}"}
OWN_PROBE = Probe(env=r"^DRA_CONFORMANCE_DEVICE_[^=]+=(?P<device>.+)$")
"""Reads what the reference shows in its own way."""


class Simulated(Strict):
    """What the reference publishes, and shows to containers, in the driver's place.

    In names and values `{device}` stands for the device's name, `{index}` for the number at its
    end (failing that, its place among `devices`), `{indexes}` for the set of these of its request,
    like 0-3,7; `{claim}` for the claim's uid, `{request}` for the request, `{NAME}` for an
    attribute of the device. What is shown must be what `probe` reads back; if neither `env`,
    `deviceNodes` nor `ways` is given, the reference has a way of its own.
    """

    devices: tuple[dict[str, Any], ...] = Field(
        default=(),
        description="devices of each node, as in a ResourceSlice: name, attributes, capacity ...",
    )
    env: dict[str, str] = Field(default={}, description="environment of a container, per device")
    device_nodes: tuple[str, ...] = Field(
        default=(), description="device files of a container, per device"
    )
    ways: dict[str, tuple[str, ...]] = Field(
        default={},
        description="name of one of probe.ways -> lines that a container shows there, per device",
    )
    config_env: dict[str, dict[str, str]] = Field(
        default={},
        description="configuration name -> further environment of a container, per device",
    )
    own_driver: bool = Field(
        default=False,
        description=(
            "the driver is the suite's own: beside a cluster with simulated GPUs, too, the"
            " reference runs that, not a description of what the cluster's driver has published"
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
        return bool(self.env or self.device_nodes or self.ways)

    def make_edits(self, allocated: Allocated, configs: Iterable[str] = ()) -> Edits:
        """Return what a container gets with a device. Raises ValueError for a missing attribute."""
        env = dict(self.env if self.shows_devices else _OWN_ENV)
        for name in configs:
            env |= self.config_env.get(name, {})
        fill = allocated.fill_placeholders
        return Edits(
            {fill(name): fill(value) for name, value in env.items()},
            tuple(map(fill, self.device_nodes)),
            {name: tuple(map(fill, lines)) for name, lines in self.ways.items()},
        )


class Edits(NamedTuple):
    """What a container gets with a device: environment, device files, lines of `Probe.ways`."""

    environment: dict[str, str]
    device_nodes: tuple[str, ...]
    ways: dict[str, tuple[str, ...]]

    def make_view(self, driver: str) -> ContainerView:
        """Return what a container with no more than these edits shows."""
        outputs = {output_name(driver, name): "\n".join(lines) for name, lines in self.ways.items()}
        return ContainerView(self.environment, self.device_nodes, outputs)


@dataclass(frozen=True, slots=True)
class Allocated:
    """A device, by the place that it has on its node, as a claim has it.

    ``together``: the devices of the same request, with their places.
    """

    device: Mapping[str, Any]
    index: int = 0
    claim: str = "claim"
    request: str = "request"
    together: Mapping[str, int] = field(default_factory=dict)

    def fill_placeholders(self, text: str) -> str:
        """Return a text with its placeholders filled. Raises ValueError if one is unknown."""
        name = str(self.device["name"])
        together = {name: self.index, **self.together}
        values = {
            "device": name,
            "index": _index_of(name, self.index),
            "indexes": _format_ranges(int(_index_of(*item)) for item in together.items()),
            "claim": self.claim,
            "request": self.request,
        }
        return _fill_template(text, attributes_of(self.device) | values, name)


def _index_of(device: str, place: int) -> str:
    number = re.search(r"\d+$", device)
    return number[0] if number else str(place)


def _format_ranges(numbers: Iterable[int]) -> str:
    """Return numbers as Linux writes a set of CPUs: ``0-3,7``."""
    ordered = sorted(set(numbers))
    runs = groupby(enumerate(ordered), lambda item: item[1] - item[0])
    runs_of_numbers = [[number for _, number in run] for _, run in runs]
    return ",".join(
        f"{run_numbers[0]}-{run_numbers[-1]}" if len(run_numbers) > 1 else str(run_numbers[0])
        for run_numbers in runs_of_numbers
    )


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

    def make_lines(self, health: Health, device: Mapping[str, Any]) -> str:
        """Return the lines to append to the file for a device, given as its ResourceSlice has it.

        Raises ValueError: the device has no such attribute, or the profile no lines for the health.
        """
        if health not in self.health:
            raise ValueError(f"the driver profile does not define how a device gets {health}")
        name = str(device["name"])
        number = re.search(r"\d+$", name)
        values = attributes_of(device) | {"device": name} | ({"index": number[0]} if number else {})
        return "".join(f"{_fill_template(line, values, name)}\n" for line in self.health[health])


def _fill_template(text: str, values: Mapping[str, str], device: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise ValueError(f"{{{match[1]}}}: the device {device} has no attribute {match[1]}")
        return values[match[1]]

    return _PLACEHOLDER.sub(value, text)


def attributes_of(device: Mapping[str, Any]) -> dict[str, str]:
    """Return a device's attributes: name -> value as a ResourceSlice in JSON has it."""
    return {
        name: str(attribute_value).lower()
        if isinstance(attribute_value, bool)
        else str(attribute_value)
        for name, value in (device.get("attributes") or {}).items()
        for attribute_value in value.values()
    }
