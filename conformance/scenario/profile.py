"""Driver profiles: what the suite must know of a driver, and nothing that it could find out.

A profile names the driver's DeviceClasses, a few attributes, selectors and configurations that
scenarios refer to as ``${...}``, and says how a container shows which devices it got.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from conformance.errors import UsageError
from conformance.scenario.base import Strict, api_objects, dns_name
from conformance.scenario.driveroption import DriverOption, Trait
from conformance.scenario.validate import load_document


class ClassProfile(Strict):
    """A DeviceClass of the driver."""

    name: str = Field(description="its name in a cluster where the driver is installed")
    spec: dict[str, Any] = Field(
        description="its spec, with which it is made in a cluster that has none of that name"
    )

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        return dns_name(value)


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
        alias="deviceNodes",
        description="regular expression for the path of a device node; groups as in env",
    )
    device_name: str | None = Field(
        default=None,
        alias="deviceName",
        description="the device's name where there is no group `device`: gpu-{index} takes a group",
    )
    request_env: str | None = Field(
        default=None,
        alias="requestEnv",
        description=(
            "where a container shows requests instead of devices: regular expression for a line of"
            " the environment; the group `request` is CLAIM_REQUEST, with each character but"
            " letters and digits as _"
        ),
    )
    config_env: dict[str, dict[str, str]] = Field(
        default={},
        alias="configEnv",
        description="configuration name -> regular expression of a variable -> its value",
    )

    @field_validator("env", "device_nodes", "request_env")
    @classmethod
    def _regex(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from None
        return value

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
        default=(), alias="deviceNodes", description="device files of a container, per device"
    )
    config_env: dict[str, dict[str, str]] = Field(
        default={},
        alias="configEnv",
        description="configuration name -> further environment of a container, per device",
    )
    own_driver: bool = Field(
        default=False,
        alias="ownDriver",
        description=(
            "the driver is the suite's own: beside a cluster, too, the reference runs that on"
            " simulated GPUs, not a description of what the cluster's driver has published"
        ),
    )

    @field_validator("devices")
    @classmethod
    def _devices(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        return api_objects(value, "resource/v1.Device", "a device")

    @property
    def shows_devices(self) -> bool:
        """Whether it says how a container shows its devices."""
        return bool(self.env or self.device_nodes)

    def shown(
        self, device: str, place: int, configs: Iterable[str] = ()
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """The environment and the device files of a container that has a device.

        Args:
            device: its name.
            place: its place among the devices of its node.
            configs: names of the configurations that it was allocated with.
        """
        number = re.search(r"\d+$", device)
        index = number[0] if number else str(place)

        def filled(text: str) -> str:
            return text.replace("{device}", device).replace("{index}", index)

        env = dict(self.env if self.shows_devices else _OWN_ENV)
        for name in configs:
            env |= self.config_env.get(name, {})
        environment = {filled(name): filled(value) for name, value in env.items()}
        return environment, tuple(filled(path) for path in self.device_nodes)


_OWN_ENV = {"DRA_CONFORMANCE_DEVICE_{device}": "{device}"}
_OWN_PROBE = Probe(env=r"^DRA_CONFORMANCE_DEVICE_[^=]+=(?P<device>.+)$")


REFUSED = "refused"
"""Name of a configuration with which a driver prepares no claim."""


class ProfileSpec(Strict):
    """What the suite must know of a driver."""

    driver: str = Field(description="its name in ResourceSlices")
    description: str = ""
    source: str = Field(
        default="",
        description="repository and version or commit of the driver that this was written against",
    )
    classes: dict[str, ClassProfile] = Field(
        description="${class.NAME} -> a DeviceClass; the shipped scenarios use ${class.gpu}"
    )
    attributes: dict[str, str] = Field(
        default={}, description="${attribute.NAME} -> name of an attribute of the devices"
    )
    selectors: dict[str, str] = Field(
        default={},
        description=(
            "${selector.NAME} -> CEL over a device; the shipped scenarios use match (some device"
            " fits) and noMatch (none does)"
        ),
    )
    config: dict[str, dict[str, Any]] = Field(
        default={},
        description=(
            "${config.NAME} -> parameters of an opaque configuration; `refused` is one with which"
            " the driver prepares no claim"
        ),
    )
    tolerations: tuple[dict[str, Any], ...] = Field(
        default=(),
        description=(
            "${tolerations} -> of pods that use the devices: for the taints that keep other pods"
            " away from the devices' nodes"
        ),
    )
    traits: tuple[Trait, ...] = Field(
        default=(),
        description=(
            "what the driver does and not every driver must: cdiPerClaim (it writes a CDI spec for"
            " each prepared claim and removes it again), nodeLocal (each device is of one node),"
            " refusesDevicesInUse (it prepares no claim with a device that is prepared for another)"
        ),
    )
    options: dict[str, DriverOption] = Field(
        default={},
        description=(
            "NAME -> a feature gate or setting of the driver that is off by default; what depends"
            " on it is asked only with --driver-option NAME"
        ),
    )
    probe: Probe = Field(default_factory=Probe)
    simulated: Simulated = Field(default_factory=Simulated)

    @field_validator("driver")
    @classmethod
    def _driver(cls, value: str) -> str:
        return dns_name(value)

    @field_validator("tolerations")
    @classmethod
    def _tolerations(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        return api_objects(value, "core/v1.Toleration", "a toleration")

    @model_validator(mode="after")
    def _probe_reads_what_is_shown(self) -> Self:
        if self.simulated.shows_devices:
            for place, device in enumerate(self.simulated.devices):
                name = str(device.get("name"))
                ways = self.probe.ways(*self.simulated.shown(name, place))
                for way, seen in (ways or {"environment": frozenset()}).items():
                    if set(seen) != {name}:
                        raise ValueError(
                            f"probe: reads {sorted(seen) or 'no device'} from the {way} that"
                            f" simulated shows of the device {name}"
                        )
        return self


class ProfileMetadata(Strict):
    """The name by which ``--driver`` finds a profile."""

    name: str


class DriverProfile(Strict):
    """What the suite must know of a driver, and nothing that it could find out."""

    api_version: Literal["dra-conformance/v1"] = Field(alias="apiVersion")
    kind: Literal["DriverProfile"]
    metadata: ProfileMetadata
    spec: ProfileSpec

    @property
    def driver(self) -> str:
        """The driver's name as in ResourceSlices."""
        return self.spec.driver

    def with_options(self, names: Collection[str]) -> DriverProfile:
        """The profile of the driver with these of its options on; they are among them no more.

        Raises:
            UsageError: it has no such option.
        """
        spec = self.spec
        for name in names:
            if name not in spec.options:
                known = ", ".join(spec.options) or "none"
                raise UsageError(
                    f"--driver-option {name}: the driver profile {self.metadata.name} has no such"
                    f" option; it has: {known}"
                )
        on = [spec.options[name] for name in dict.fromkeys(names)]
        changed = {
            "config": spec.config | {key: value for one in on for key, value in one.config.items()},
            "traits": tuple(dict.fromkeys([*spec.traits, *(t for one in on for t in one.traits)])),
            "options": {name: one for name, one in spec.options.items() if name not in names},
        }
        return self.model_copy(update={"spec": spec.model_copy(update=changed)})

    def off(self, kind: Literal["config", "traits"], wanted: str) -> str:
        """How to have what the driver has with an option that is off; "" where none brings it."""
        for name, option in self.spec.options.items():
            if wanted in getattr(option, kind):
                return f"; it has with --driver-option {name}: {option.description}"
        return ""

    def for_reference(self) -> DriverProfile:
        """The profile as it is for the reference, which shows devices as ``simulated`` says.

        A configuration whose effect on containers the reference cannot show is not in it.
        """
        spec, shown = self.spec, self.spec.simulated.config_env
        config = {
            name: value
            for name, value in spec.config.items()
            if name in shown or name not in spec.probe.config_env
        }
        probe = spec.probe
        if not spec.simulated.shows_devices:
            probe = _OWN_PROBE.model_copy(update={"config_env": probe.config_env})
        changed = spec.model_copy(update={"config": config, "probe": probe})
        return self.model_copy(update={"spec": changed})


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
