"""Driver profiles: what the suite must know of a driver, and nothing that it could find out.

A profile names the driver's DeviceClasses, a few attributes, selectors and configurations that
scenarios refer to as ``${...}``, and says how a container shows which devices it got. What a driver
does only with a feature gate or setting of its own is an option.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from conformance.data import scenarios_dir
from conformance.errors import UsageError
from conformance.scenario.base import DnsName, Named, Strict, api_objects
from conformance.scenario.documents.validate import hint, load_document
from conformance.scenario.driver.probe_ways import published_attributes
from conformance.scenario.driver.probing import Probe
from conformance.scenario.driver.simulated import OWN_PROBE, Allocated, Simulated, Stimulus
from conformance.scenario.registry import load_registry

Trait = Literal[
    "cdiPerClaim",
    "deviceMetadata",
    "explainsHealth",
    "namesShares",
    "nodeLocal",
    "refusesDevicesInUse",
    "rollingUpdate",
    "taintsUnhealthyDevices",
]
"""What a driver may do or not, and scenarios may ask for."""

Inability = Literal[
    "claimOfSeveralContainers",
    "claimOfSeveralPods",
    "deviceOfOneContainer",
    "severalDevicesOnOneNode",
]
"""What a driver can as a rule, and one of a certain kind cannot by nature."""


class DriverOption(Strict):
    """A feature gate or a setting of the driver, and what the profile has with it.

    It is off unless ``--driver-option`` names it: of a driver that runs, nobody can see its gates.
    """

    description: str = Field(
        min_length=10, description="what it is in the driver, and how it is switched on there"
    )
    config: dict[str, dict[str, Any]] = Field(
        default={}, description="configurations that the driver knows with it, as in `config`"
    )
    traits: tuple[Trait, ...] = Field(
        default=(), description="what the driver does with it, as in `traits`"
    )

    @model_validator(mode="after")
    def _brings_something(self) -> DriverOption:
        if not self.config and not self.traits:
            raise ValueError("brings neither config nor traits, so nothing depends on it")
        return self


class ClassProfile(Strict):
    """A DeviceClass of the driver."""

    name: DnsName = Field(description="its name in a cluster where the driver is installed")
    spec: dict[str, Any] = Field(
        description="its spec, with which it is made in a cluster that has none of that name"
    )


REFUSED = "refused"  # Name of a configuration with which a driver prepares no claim.


class ProfileSpec(Strict):
    """What the suite must know of a driver."""

    driver: DnsName = Field(description="its name in ResourceSlices")
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
    capacity: dict[str, str] = Field(
        default={}, description="${capacity.NAME} -> name of a capacity of the devices"
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
    synthetic_devices: bool = Field(
        default=False,
        description=(
            "the devices are simulated: there is no hardware behind them, as a conformance report"
            " then says"
        ),
    )
    claims: tuple[str, ...] = Field(
        default=(),
        description=(
            "features (features.yaml) that the driver claims beside the core: in a conformance"
            " report each of their scenarios must pass, none may be skipped"
        ),
    )
    traits: tuple[Trait, ...] = Field(
        default=(),
        description=(
            "what the driver does and not every driver must: cdiPerClaim (it writes a CDI spec for"
            " each prepared claim and removes it again), deviceMetadata (containers have files that"
            " describe their devices), explainsHealth (it reports to the kubelet why a device"
            " is unhealthy), namesShares (what it answers for a share of a device has the share's"
            " id), nodeLocal (each device is of one node),"
            " refusesDevicesInUse (it prepares no claim with a device that is prepared for another"
            " one), rollingUpdate (two instances, told apart by POD_UID in their environment, run"
            " side by side on a node), taintsUnhealthyDevices (while a device is unhealthy, no new"
            " pod gets it)"
        ),
    )
    cannot: dict[Inability, Annotated[str, Field(min_length=10, max_length=200)]] = Field(
        default={},
        description=(
            "what cannot exist for this driver -> the reason, which the conformance report shows:"
            " claimOfSeveralContainers (containers of a pod use a claim at the same time),"
            " claimOfSeveralPods (pods do), deviceOfOneContainer (a container of a pod has a device"
            " that others of the pod do not see), severalDevicesOnOneNode (a node has more than one"
            " device). A scenario that needs it is skipped, and the conformance profile can be a"
            " success without it"
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
    stimulus: Stimulus | None = Field(
        default=None, description="how to make a device unhealthy, if the driver supports it"
    )
    simulated: Simulated = Field(default_factory=Simulated)

    @field_validator("claims")
    @classmethod
    def _claims(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        known = load_registry().features
        for name in value:
            if name not in known:
                raise ValueError(f"unknown feature {name}; {hint(name, known)}")
        return value

    @field_validator("tolerations")
    @classmethod
    def _tolerations(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        return api_objects(value, "core/v1.Toleration", "a toleration")

    @model_validator(mode="after")
    def _probe_reads_what_is_shown(self) -> Self:
        if not self.simulated.shows_devices:
            return self
        known = published_attributes(self.simulated.devices, self.driver)
        for name in self.simulated.ways:
            if name not in self.probe.ways:
                raise ValueError(f"simulated: ways.{name}: {hint(name, self.probe.ways)}")
        for place, device in enumerate(self.simulated.devices):
            name = str(device.get("name"))
            try:
                shown = self.simulated.shown(Allocated(device, place))
            except ValueError as error:
                raise ValueError(f"simulated: {error}") from None
            view = shown.view(self.driver)
            ways = self.simulated_probe.seen(view, self.driver, known)
            for way, seen in (ways or {"environment": frozenset()}).items():
                if seen != {name}:
                    raise ValueError(
                        f"probe: reads {sorted(seen) or 'no device'} from the {way} that"
                        f" simulated shows of the device {name}"
                    )
        return self

    @property
    def simulated_probe(self) -> Probe:
        """How containers show devices on the reference, if they do as ``simulated`` says."""
        ways = {
            name: way
            for name, way in self.probe.ways.items()
            if name in self.simulated.ways or way.kind in ("env", "deviceNodes")
        }
        return self.probe.model_copy(update={"ways": ways})


class DriverProfile(Strict):
    """What the suite must know of a driver, and nothing that it could find out."""

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["DriverProfile"]
    metadata: Named
    spec: ProfileSpec

    @property
    def driver(self) -> str:
        return self.spec.driver

    def with_options(self, names: Collection[str]) -> DriverProfile:
        """The profile with these of its options on, and not listed any more. Raises UsageError."""
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
        probe = spec.simulated_probe
        if not spec.simulated.shows_devices:
            probe = OWN_PROBE.model_copy(update={"config_env": probe.config_env})
        # A description has no tool, no files, and does not know of claims.
        probe = probe.model_copy(update={"claim_env": None, "hardware": {}})
        traits = tuple(trait for trait in spec.traits if trait != "deviceMetadata")
        changed = spec.model_copy(update={"config": config, "probe": probe, "traits": traits})
        return self.model_copy(update={"spec": changed})


def load_profile(name_or_file: str, directory: Path) -> DriverProfile:
    """Load a shipped profile by name, or any by its file. Raises UsageError: none, or malformed."""
    shipped = {file.stem: file for file in sorted(directory.glob("*.yaml"))}
    file = shipped.get(name_or_file) or Path(name_or_file)
    if not file.is_file():
        raise UsageError(
            f"no driver profile {name_or_file!r}: shipped are {', '.join(shipped) or 'none'};"
            " give one of these, or the path of a profile file"
        )
    return load_document(DriverProfile, file, "driver profile")


@cache
def shipped_profiles() -> tuple[DriverProfile, ...]:
    """All that the suite ships, by name."""
    folder = scenarios_dir() / "drivers"
    return tuple(load_profile(file.stem, folder) for file in sorted(folder.glob("*.yaml")))
