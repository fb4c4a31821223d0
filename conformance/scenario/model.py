"""The scenario document: what a YAML file may say. The JSON Schema is generated from this model.

One document describes one behaviour. It is data: object manifests as Kubernetes knows them, and
expectations on what a conformant implementation makes of them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from conformance.scenario.base import Duration, Strict, VersionRange, parse_duration
from conformance.scenario.changes import KUBELET, Account, AccountName
from conformance.scenario.driver.profile import Inability, Trait
from conformance.scenario.steps import Step

NAME = r"^[a-z0-9]([-a-z0-9]{0,78}[a-z0-9])?$"


class Metadata(Strict):
    """The scenario's name, which with its path is its public id and is never reused."""

    name: str = Field(pattern=NAME)


class Requires(Strict):
    """What a target must have; a scenario whose needs are not met is skipped with the reason."""

    kubernetes: VersionRange = Field(
        default=">=1.34", description="version range, for example >=1.35"
    )
    scheduler: VersionRange = Field(
        default="",
        description=(
            "version range of the scheduler, where what it decides is all that depends on the"
            " version; else it has to be in that of kubernetes, as the API server"
        ),
    )
    devices: int = Field(
        default=0, ge=0, le=4096, description="free devices of the driver, on whatever nodes"
    )
    devices_on_one_node: int = Field(
        default=0,
        ge=0,
        le=4096,
        description="free devices that one node has, or can use, for example those of one claim",
    )
    devices_in_one_request: int = Field(
        default=0,
        ge=0,
        le=32,
        description=(
            "different free devices of one node, as one request for several gets: shares of a"
            " device count once"
        ),
    )
    other_devices: int = Field(
        default=0,
        ge=0,
        le=4,
        description=(
            "free devices of another driver, on a node that has those of devicesOnOneNode; what"
            " traits names is required of both drivers"
        ),
    )
    nodes: int = Field(default=0, ge=0, le=64, description="nodes with a kubelet")
    exclusive: bool = Field(
        default=False,
        description="depends on how many devices are free, so no other node scenario may run",
    )
    feature_gates: tuple[str, ...] = Field(default=(), description="feature gates that must be on")
    feature_gates_off: tuple[str, ...] = Field(
        default=(), description="feature gates that must be off"
    )
    apis: tuple[str, ...] = Field(default=(), description="served group/versions")
    abilities: tuple[str, ...] = Field(
        default=(),
        description=(
            "what the target can do beyond the API: cdi, kubelet-metrics,"
            " metrics:<component>, pod-resources, double-allocation, distinct-devices,"
            " shared-devices, partitions, root-containers, another-scheduler, device-health,"
            " upgrade, feature-gates, fault:<component>"
        ),
    )
    traits: tuple[Trait, ...] = Field(
        default=(), description="what the driver profile must say of the driver"
    )
    driver_can: tuple[Inability, ...] = Field(
        default=(), description="what the driver profile must not say that the driver cannot"
    )
    config: tuple[str, ...] = Field(
        default=(), description="names below config: that the driver profile must have"
    )
    attributes: tuple[str, ...] = Field(
        default=(), description="names below attributes: that the driver profile must have"
    )
    capacity: tuple[str, ...] = Field(
        default=(), description="names below capacity: that the driver profile must have"
    )

    @property
    def versions(self) -> str:
        """Return the version range of a cluster of one version."""
        return ",".join(filter(None, (self.kubernetes, self.scheduler)))

    @property
    def devices_in_all(self) -> int:
        """Return how many devices it uses at once."""
        return max(self.devices, self.devices_on_one_node)

    @property
    def of_the_driver(self) -> tuple[Inability, ...]:
        """Return what the driver must be able to do, sorted; see ``cannot`` of a driver profile."""
        several: set[Inability] = set()
        if self.devices_on_one_node > 1:
            several.add("severalDevicesOnOneNode")
        return tuple(sorted(several.union(self.driver_can)))


def _limit(default: str, description: str, alias: str | None = None) -> Any:
    """Return a duration with its default as one writes it."""
    return Field(
        default=parse_duration(default),
        alias=alias,
        description=description,
        json_schema_extra={"default": default},
    )


class Timeouts(Strict):
    """The longest that a conformant implementation may take, by what is waited for.

    An expectation may set its own with `eventually` and `consistently`.
    """

    eventually: Duration = _limit("60s", "until an expectation holds")
    pod_running: Duration = _limit(
        "180s", "until a pod has started or ended, pulling its image included", alias="podRunning"
    )
    consistently: Duration = _limit("1s", "how long a state must stay as it is")
    cleanup: Duration = _limit("120s", "until all that was made is gone")


class Spec(Strict):
    """What the scenario shows, what it needs and its steps."""

    summary: str = Field(min_length=10, max_length=200, description="the behaviour, in a sentence")
    level: Literal["core", "extended"] = Field(
        description="core: what the stable API promises on a default cluster"
    )
    feature: str = Field(description="a name from the feature registry (features.yaml)")
    tier: Literal["allocation", "node", "device"] = Field(
        description=(
            "allocation: scheduler and API only, pods never run; node: also a kubelet and a driver"
            " that prepares devices; device: also the vendor's tools in containers, which show the"
            " hardware"
        )
    )
    provisional: bool = Field(
        default=False, description="new and on trial: it does not count in conformance reports"
    )
    requires: Requires = Field(default_factory=Requires)
    references: tuple[str, ...] = Field(
        min_length=1,
        description=(
            "where the behaviour is written down: URLs or documents; the enhancement of the feature"
            " need not be named"
        ),
    )
    nodes: tuple[str, ...] = Field(
        default=(), description="hollow nodes that the scenario brings; ${node.NAME} names one"
    )
    accounts: dict[AccountName, Account] = Field(
        default_factory=dict, description="service accounts that steps name with `as`"
    )
    timeouts: Timeouts = Field(default_factory=Timeouts)
    steps: tuple[Step, ...] = Field(min_length=1, description="carried out in their order")

    @field_validator("accounts")
    @classmethod
    def _check_kubelet(cls, accounts: dict[AccountName, Account]) -> dict[AccountName, Account]:
        kubelet = accounts.get(KUBELET)
        if kubelet is not None and (kubelet.node is None or kubelet.rules):
            raise ValueError(f"{KUBELET}: say whose it is (node); its rights are not given (rules)")
        return accounts

    @model_validator(mode="after")
    def _coherent(self) -> Spec:
        if self.nodes and self.tier != "allocation":
            raise ValueError("hollow nodes are for the allocation tier: no kubelet runs there")
        if self.requires.other_devices and self.tier == "allocation":
            raise ValueError("otherDevices are a driver's; this tier makes devices of its own")
        churns = [step.churn for step in self.steps if step.churn and self.tier != "allocation"]
        if any(churn.mix.finish or churn.of_kind("ResourceSlice") for churn in churns):
            raise ValueError(
                "churn in this tier: slices are the driver's, and the kubelet ends pods; leave"
                " ResourceSlices out, and write mix: {finish: 0}"
            )
        if not any(step.expect or step.churn for step in self.steps):
            raise ValueError("no step expects anything, so the scenario could not fail")
        return self


class Scenario(Strict):
    """One scenario document."""

    model_config = ConfigDict(defer_build=False)

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["Scenario"]
    metadata: Metadata
    spec: Spec
