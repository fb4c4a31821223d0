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
from conformance.scenario.base import DnsName, Named, Strict, api_objects
from conformance.scenario.documents.validate import hint, load_document
from conformance.scenario.driver.probe_ways import published_attributes
from conformance.scenario.driver.probing import Probe
from conformance.scenario.driver.simulated import OWN_PROBE, Allocated, Simulated, Stimulus
from conformance.scenario.registry import load_registry
from kube.base.errors import UsageError

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
    def _check_claims(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        features = load_registry().features
        for name in value:
            if name not in features:
                raise ValueError(f"unknown feature {name}; {hint(name, features)}")
        return value

    @field_validator("tolerations")
    @classmethod
    def _tolerations(cls, value: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        return api_objects(value, "core/v1.Toleration", "a toleration")

    @model_validator(mode="after")
    def _probe_reads_what_is_shown(self) -> Self:
        if not self.simulated.shows_devices:
            return self
        attributes = published_attributes(self.simulated.devices, self.driver)
        for name in self.simulated.ways:
            if name not in self.probe.ways:
                raise ValueError(f"simulated: ways.{name}: {hint(name, self.probe.ways)}")
        for index, device in enumerate(self.simulated.devices):
            name = str(device.get("name"))
            try:
                edits = self.simulated.make_edits(Allocated(device, index))
            except ValueError as error:
                raise ValueError(f"simulated: {error}") from None
            view = edits.make_view(self.driver)
            ways = self.simulated_probe.read_devices(view, self.driver, attributes)
            for way, devices_read in (ways or {"environment": frozenset()}).items():
                if devices_read != {name}:
                    raise ValueError(
                        f"probe: reads {sorted(devices_read) or 'no device'} from the {way} that"
                        f" simulated shows of the device {name}"
                    )
        return self

    @property
    def simulated_probe(self) -> Probe:
        """Return how containers show devices on the reference, if they do as ``simulated`` says."""
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
        """Return the profile with these options on, and not listed any more. Raises UsageError."""
        spec = self.spec
        for name in names:
            if name not in spec.options:
                option_names = ", ".join(spec.options) or "none"
                raise UsageError(
                    f"--driver-option {name}: the driver profile {self.metadata.name} has no such"
                    f" option; it has: {option_names}"
                )
        options_on = [spec.options[name] for name in dict.fromkeys(names)]
        changed = {
            "config": spec.config
            | {key: value for option in options_on for key, value in option.config.items()},
            "traits": tuple(
                dict.fromkeys([*spec.traits, *(t for option in options_on for t in option.traits)])
            ),
            "options": {name: option for name, option in spec.options.items() if name not in names},
        }
        return self.model_copy(update={"spec": spec.model_copy(update=changed)})

    def suggest_option(self, kind: Literal["config", "traits"], name_wanted: str) -> str:
        """Return how to get what an option that is off brings; "" if no option brings it."""
        for name, option in self.spec.options.items():
            if name_wanted in getattr(option, kind):
                return f"; it has with --driver-option {name}: {option.description}"
        return ""

    def for_reference(self) -> DriverProfile:
        """Return the profile as it is for the reference, which shows devices as ``simulated`` says.

        A configuration whose effect on containers the reference cannot show is not in it.
        """
        spec, shown_config = self.spec, self.spec.simulated.config_env
        config = {
            name: value
            for name, value in spec.config.items()
            if name in shown_config or name not in spec.probe.config_env
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
    """Load a shipped profile by name, or any by its file. Raises UsageError if that fails."""
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
    """Return all profiles that the suite ships, sorted by name."""
    folder = scenarios_dir() / "drivers"
    return tuple(load_profile(file.stem, folder) for file in sorted(folder.glob("*.yaml")))
