"""What a driver profile says of containers: how devices, requests, claims and hardware show."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator

from conformance.scenario.base import Strict


class HardwareCommand(Strict):
    """A command of the vendor's, and how its output in a container names devices."""

    run: str = Field(
        pattern=r"^[^'\n]+$",
        description="the command, for the image's shell, like nvidia-smi -L; without single quotes",
    )
    device: str = Field(
        description=(
            "regular expression for a line of its output that shows a device; each group has the"
            " name of an attribute or a capacity of the device's ResourceSlice, and shows its value"
        )
    )

    @field_validator("device")
    @classmethod
    def _regex(cls, value: str) -> str:
        return _regular_expression(value)

    def devices(self, output: str) -> list[dict[str, str]]:
        """The devices that an output shows, each as group -> text."""
        found = (re.match(self.device, line) for line in output.splitlines())
        return [match.groupdict("") for match in found if match is not None]


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return text


class Probe(Strict):
    """How a container shows which devices it got: by its environment or its device nodes.

    With both, each device must show in both ways: one alone is half a device.
    """

    env: str | None = Field(
        default=None,
        description=(
            "regular expression for a line NAME=value of the environment; the group `device` is the"
            " device's name as in the ResourceSlice"
        ),
    )
    device_nodes: str | None = Field(
        default=None,
        description="regular expression for the path of a device node; groups as in env",
    )
    device_name: str | None = Field(
        default=None,
        description="the device's name where there is no group `device`: gpu-{index} takes a group",
    )
    request_env: str | None = Field(
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

    claim_env: str | None = Field(
        default=None,
        description=(
            "where a container shows its claims: regular expression for a line of the environment;"
            " the group `claim` is the claim's uid"
        ),
    )
    hardware: dict[Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9]*$")], HardwareCommand] = Field(
        default={},
        description=(
            "NAME -> a command that containers of the device tier run, and that shows their"
            " hardware; the shipped scenarios use list (uuid) and query (model and memory, too)"
        ),
    )

    @field_validator("env", "device_nodes", "request_env", "claim_env")
    @classmethod
    def _regex(cls, value: str | None) -> str | None:
        return value and _regular_expression(value)

    def is_device_node(self, path: str) -> bool:
        """Whether a file in a container identifies devices of the driver."""
        return self.device_nodes is not None and re.match(self.device_nodes, path) is not None

    def devices(self, environment: dict[str, str], device_nodes: tuple[str, ...]) -> frozenset[str]:
        """Names of the devices that a container with this environment and these nodes sees."""
        return frozenset().union(*self.ways(environment, device_nodes).values())

    def ways(
        self, environment: dict[str, str], device_nodes: tuple[str, ...]
    ) -> dict[str, frozenset[str]]:
        """Names of the devices that a container sees in each of the ways that are given."""
        lines = [f"{name}={value}" for name, value in environment.items()]
        ways = {"environment": (self.env, lines), "device nodes": (self.device_nodes, device_nodes)}
        return {
            way: frozenset().union(*(self._match(pattern, text) for text in shown))
            for way, (pattern, shown) in ways.items()
            if pattern is not None
        }

    def requests(self, environment: dict[str, str]) -> frozenset[str]:
        """The requests that a container with this environment sees, as CLAIM_REQUEST."""
        lines = (f"{name}={value}" for name, value in environment.items())
        found = (re.match(self.request_env, line) for line in lines if self.request_env)
        return frozenset(match["request"] for match in found if match)

    def _match(self, pattern: str, text: str) -> set[str]:
        match = re.match(pattern, text)
        if match is None:
            return set()
        groups = match.groupdict()
        if groups.get("device"):
            return {groups["device"]}
        return {(self.device_name or "{0}").format(match.group(0), **groups)}
