"""Driver profiles: what the suite must know of a driver, and nothing that it could find out.

A profile names the driver's DeviceClasses, a few attributes, selectors and configurations that
scenarios refer to as ``${...}``, and says how a container shows which devices it got.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from conformance.errors import UsageError
from conformance.scenario.base import Strict
from conformance.scenario.validate import load_document


class ClassProfile(Strict):
    """A DeviceClass of the driver; ``spec`` is used where the cluster has none of that name."""

    name: str
    spec: dict[str, Any]


class Probe(Strict):
    """How a container's devices are read from its environment and its device nodes.

    ``env`` is matched against ``NAME=value`` lines, ``device_nodes`` against paths. The device's
    name (as in the ResourceSlice) is the group ``device`` or, failing that, ``device_name`` filled
    with the match's groups.
    """

    env: str | None = None
    device_nodes: str | None = Field(default=None, alias="deviceNodes")
    device_name: str | None = Field(default=None, alias="deviceName")
    config_env: dict[str, dict[str, str]] = Field(
        default={},
        alias="configEnv",
        description="configuration name -> regular expression of a variable -> its value",
    )

    @field_validator("env", "device_nodes")
    @classmethod
    def _regex(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from None
        return value

    def devices(self, environment: dict[str, str], device_nodes: tuple[str, ...]) -> frozenset[str]:
        """Names of the devices that a container with this environment and these nodes sees."""
        found: set[str] = set()
        if self.env is not None:
            for name, value in environment.items():
                found |= self._match(self.env, f"{name}={value}")
        if self.device_nodes is not None:
            for path in device_nodes:
                found |= self._match(self.device_nodes, path)
        return frozenset(found)

    def _match(self, pattern: str, text: str) -> set[str]:
        match = re.match(pattern, text)
        if match is None:
            return set()
        groups = match.groupdict()
        if groups.get("device"):
            return {groups["device"]}
        return {(self.device_name or "{0}").format(match.group(0), **groups)}


class ProfileSpec(Strict):
    """The contents of a driver profile."""

    driver: str
    description: str = ""
    classes: dict[str, ClassProfile]
    attributes: dict[str, str] = Field(default={})
    selectors: dict[str, str] = Field(default={})
    config: dict[str, dict[str, Any]] = Field(default={})
    probe: Probe = Probe()


class ProfileMetadata(Strict):
    """The name by which ``--driver`` finds a profile."""

    name: str


class DriverProfile(Strict):
    """A document of kind DriverProfile."""

    api_version: Literal["dra-conformance/v1"] = Field(alias="apiVersion")
    kind: Literal["DriverProfile"]
    metadata: ProfileMetadata
    spec: ProfileSpec

    @property
    def driver(self) -> str:
        """The driver's name as in ResourceSlices."""
        return self.spec.driver


def load_profile(name_or_file: str, directory: Path) -> DriverProfile:
    """Load a shipped profile by name, or any by its file name.

    Raises:
        UsageError: there is none of that name (the message lists them), or it is malformed.
    """
    shipped = {file.stem: file for file in sorted(directory.glob("*.yaml"))}
    file = shipped.get(name_or_file) or Path(name_or_file)
    if not file.is_file():
        raise UsageError(
            f"no driver profile {name_or_file!r}: shipped are {', '.join(shipped) or 'none'};"
            " give one of these, or the path of a profile file"
        )
    return load_document(DriverProfile, file, "driver profile")
