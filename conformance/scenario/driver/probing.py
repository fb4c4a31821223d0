"""What a driver profile says of containers: how devices, requests, claims and hardware show."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, model_validator

from conformance.scenario.base import Strict
from conformance.scenario.driver.probe_ways import (
    Attributes,
    RegularExpression,
    Way,
    check_template,
    output_name,
)
from kube.observations import ContainerView

Name = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9]*$")]


class HardwareCommand(Strict):
    """A command of the vendor's, and how its output in a container names devices."""

    run: str = Field(
        pattern=r"^[^'\n]+$",
        description="the command, for the image's shell, like nvidia-smi -L; without single quotes",
    )
    device: RegularExpression = Field(
        description=(
            "regular expression for a line of its output that shows a device; each group has the"
            " name of an attribute or a capacity of the device's ResourceSlice, and shows its value"
        )
    )

    def read_devices(self, output: str) -> list[dict[str, str]]:
        """Return the devices that an output shows, each as group -> text."""
        matches = (re.match(self.device, line) for line in output.splitlines())
        return [match.groupdict("") for match in matches if match is not None]


class Probe(Strict):
    """How a container shows which devices it got: by its environment, device nodes, other ways.

    With several, each device must show in all of them: one alone is half a device.
    """

    env: RegularExpression | None = Field(
        default=None,
        description=(
            "regular expression for a line NAME=value of the environment; the group `device` is the"
            " device's name as in the ResourceSlice"
        ),
    )
    device_nodes: RegularExpression | None = Field(
        default=None,
        description="regular expression for the path of a device node; groups as in env",
    )
    device_name: str | None = Field(
        default=None,
        description="the device's name where there is no group `device`: gpu-{index} takes a group",
    )
    ways: dict[Name, Way] = Field(
        default={},
        description=(
            "NAME -> another way in which containers show devices: network interfaces, CPUs,"
            " memory, mounts, a file, a command; or the first two with an attribute, a table, a set"
        ),
    )
    request_env: RegularExpression | None = Field(
        default=None,
        description=(
            "where a container shows requests instead of devices: regular expression for a line of"
            " the environment; the group `request` is CLAIM_REQUEST, with each character but"
            " letters and digits as _"
        ),
    )
    config_env: dict[str, dict[str, str]] = Field(
        default={},
        description="configuration name -> regular expression of a variable -> its value",
    )

    claim_env: RegularExpression | None = Field(
        default=None,
        description=(
            "where a container shows its claims: regular expression for a line of the environment;"
            " the group `claim` is the claim's uid"
        ),
    )
    hardware: dict[Name, HardwareCommand] = Field(
        default={},
        description=(
            "NAME -> a command that containers of the device tier run, and that shows their"
            " hardware; the shipped scenarios use list (uuid) and query (model and memory, too)"
        ),
    )

    @model_validator(mode="after")
    def _something_is_confirmed(self) -> Probe:
        for pattern in filter(None, (self.env, self.device_nodes)):
            if template := self._template(pattern):
                check_template(template, pattern)
        confirming = [name for name, way in self.ways.items() if way.confirms]
        if confirming and len(confirming) == len(self._all_ways):
            raise ValueError(
                f"ways.{confirming[0]} confirms what another way shows, and there is no other"
            )
        return self

    @property
    def shows_devices(self) -> bool:
        """Return whether containers show devices, in whatever way."""
        return bool(self._all_ways)

    @property
    def shows_device_nodes(self) -> bool:
        return any(way.kind == "deviceNodes" for way in self._all_ways.values())

    @property
    def _all_ways(self) -> dict[str, Way]:
        first_ways: dict[str, Way] = {}
        if self.env is not None:
            template = self._template(self.env)
            first_ways["environment variables"] = Way(
                kind="env", line=self.env, device_name=template
            )
        if self.device_nodes is not None:
            first_ways["device nodes"] = Way(
                kind="deviceNodes",
                line=self.device_nodes,
                device_name=self._template(self.device_nodes),
            )
        return {**first_ways, **self.ways}

    def _template(self, pattern: str) -> str | None:
        return None if "device" in re.compile(pattern).groupindex else self.device_name

    def list_scripts(self, driver: str) -> dict[str, str]:
        """Return what containers run for the ways: name of an output -> for the image's shell."""
        scripts = {output_name(driver, name): way.script for name, way in self.ways.items()}
        return {name: script for name, script in scripts.items() if script is not None}

    def is_device_node(self, path: str) -> bool:
        """Return whether a file in a container identifies devices of the driver."""
        nodes = (way.line for way in self._all_ways.values() if way.kind == "deviceNodes")
        return any(re.match(line, path) for line in nodes)

    def read_devices(
        self, view: ContainerView, driver: str, attributes: Attributes
    ) -> dict[str, frozenset[str]]:
        """Return the names of the devices that a container shows, by each of the ways.

        A way that only confirms is left out where no other shows a device.
        """
        ways = self._all_ways
        devices_by_way = {
            label: way.find_device_names(way.read_lines(view, driver, label), attributes)
            for label, way in ways.items()
        }
        shows = any(devices_by_way[label] for label, way in ways.items() if not way.confirms)
        return {
            label: devices
            for label, devices in devices_by_way.items()
            if shows or not ways[label].confirms
        }

    def read_requests(self, environment: dict[str, str]) -> frozenset[str]:
        """Return the requests that a container with this environment sees, as CLAIM_REQUEST."""
        lines = (f"{name}={value}" for name, value in environment.items())
        matches = (re.match(self.request_env, line) for line in lines if self.request_env)
        return frozenset(match["request"] for match in matches if match)
