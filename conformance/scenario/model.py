"""The scenario document: what a YAML file may say. The JSON Schema is generated from this model.

One document describes one behaviour. It is data: object manifests as Kubernetes knows them, and
expectations on what a conformant implementation makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from conformance.scenario.accounts import Account, AccountName
from conformance.scenario.base import (
    Duration,
    Manifest,
    ObjectSelector,
    ServerSelector,
    Strict,
    VersionRange,
    parse_duration,
)
from conformance.scenario.changes import CapturedName, Changes, Delete
from conformance.scenario.churn import Churn
from conformance.scenario.driver.profile import Trait
from conformance.scenario.expectations import AnyExpectation
from conformance.scenario.stimulus import Stimulate

NAME = r"^[a-z0-9]([-a-z0-9]{0,78}[a-z0-9])?$"


class Metadata(Strict):
    """The scenario's name, which with its path is its public id and is never reused."""

    name: str = Field(pattern=NAME)


class Requires(Strict):
    """What a target must have; a scenario whose needs are not met is skipped with the reason."""

    kubernetes: VersionRange = Field(
        default=">=1.34", description="version range, for example >=1.35"
    )
    devices: int = Field(
        default=0, ge=0, le=4096, description="free devices of the driver, on whatever nodes"
    )
    devices_on_one_node: int = Field(
        default=0,
        alias="devicesOnOneNode",
        ge=0,
        le=4096,
        description="free devices that one node has, or can use, for example those of one claim",
    )
    other_devices: int = Field(
        default=0,
        alias="otherDevices",
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
    feature_gates: tuple[str, ...] = Field(
        default=(), alias="featureGates", description="feature gates that must be on"
    )
    feature_gates_off: tuple[str, ...] = Field(
        default=(), alias="featureGatesOff", description="feature gates that must be off"
    )
    apis: tuple[str, ...] = Field(default=(), description="served group/versions")
    abilities: tuple[str, ...] = Field(
        default=(),
        description=(
            "what the target can do beyond the API: cdi, kubelet-metrics,"
            " metrics:<component>, pod-resources, double-allocation, distinct-devices,"
            " root-containers, device-health, fault:<component>"
        ),
    )
    traits: tuple[Trait, ...] = Field(
        default=(), description="what the driver profile must say of the driver"
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
    def devices_in_all(self) -> int:
        """How many devices it uses at once."""
        return max(self.devices, self.devices_on_one_node)


def _limit(default: str, description: str, alias: str | None = None) -> Any:
    """A duration with its default as one writes it."""
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
        "180s",
        "until a pod has started or ended, pulling its image included",
        alias="podRunning",
    )
    consistently: Duration = _limit("1s", "how long a state must stay as it is")
    cleanup: Duration = _limit("120s", "until all that was made is gone")


NextVersion = Literal["startNext", "startUnregistered", "killNext", "replace"]
"""What a rolling update of a driver does: its next version runs beside it for a while."""


class Fault(Strict):
    """Disturb a component of the cluster, where the target can (``requires.abilities``).

    What a scenario has stopped is started again at its end.
    """

    component: str = Field(
        description=(
            "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, or of each node:"
            " containerd, kubelet, driver, other-driver, node (the whole of it)"
        ),
    )
    action: Literal["restart", "kill", "stop", "start"] | NextVersion = Field(
        default="restart",
        description=(
            "kill: stop at once; restart of a node: reboot; of a driver also startNext (its next"
            " version beside it), startUnregistered (one that never registers), killNext (what was"
            " started beside it), replace (startNext unless it was done, then stop)"
        ),
    )
    node: str | None = Field(default=None, description="of this node only")
    node_of: str | None = Field(
        default=None, alias="nodeOf", description="of the node only on which this pod is"
    )

    @model_validator(mode="after")
    def _one_place(self) -> Fault:
        if self.node is not None and self.node_of is not None:
            raise ValueError("give node or nodeOf, not both")
        if self.of_next_version and self.component != "driver":
            raise ValueError(f"only a driver has a next version to {self.action}")
        return self

    @property
    def of_next_version(self) -> bool:
        """Whether it is about a second instance of a driver."""
        return self.action in get_args(NextVersion)

    def describe(self) -> str:
        """In words, for example ``stop driver of the node of pod0``."""
        where = f" of {self.node}" if self.node else ""
        where = f" of the node of {self.node_of}" if self.node_of else where
        return f"{self.action} {self.component}{where}"


class CopyAllocation(Strict):
    """Allocate to a ResourceClaim the devices that another one has, as if no pod used them.

    A scheduler that has lost count does so (kubernetes/kubernetes#141471), and a driver is the last
    that can notice. Needs ``requires: {abilities: [double-allocation]}``, and ``exclusive: true``
    where the devices are a driver's.
    """

    source: str = Field(alias="from", description="a ResourceClaim that is allocated")
    to: str = Field(description="one that is not, with requests of the same names")


class Step(Changes):
    """One step: exactly one of its fields, but for those that say how."""

    name: CapturedName | None = Field(
        default=None, description="by which `since` of a later expectation knows this step"
    )
    parallel: bool = Field(
        default=False,
        description="at the same time as the steps directly before and after it that say so, too",
    )
    apply: tuple[Manifest, ...] | None = Field(
        default=None, min_length=1, description="objects that the API server must accept"
    )
    expect: tuple[AnyExpectation, ...] | None = Field(
        default=None, min_length=1, description="what must be so, one after the other"
    )
    delete: tuple[Delete, ...] | None = Field(
        default=None, min_length=1, description="objects that are there, and are deleted"
    )
    fault: Fault | None = Field(default=None, description="stop, start or restart a component")
    capture: dict[CapturedName, ObjectSelector] | None = Field(
        default=None,
        min_length=1,
        description="name -> an object as it is now, which CEL of later expectations can read",
    )
    watch: dict[CapturedName, ServerSelector] | None = Field(
        default=None,
        min_length=1,
        description="name -> what is watched from now on, for `watched` of later expectations",
    )
    wait: Duration | None = Field(default=None, description="let time pass, like 5s")
    churn: Churn | None = Field(
        default=None, description="do many things at random, and see that no rule is broken"
    )
    copy_allocation: CopyAllocation | None = Field(
        default=None, alias="copyAllocation", description="give one device to two claims"
    )
    stimulate: Stimulate | None = Field(
        default=None, description="have the driver find devices healthy or not"
    )

    @model_validator(mode="after")
    def _one(self) -> Step:
        if len(self.verbs) != 1:
            raise ValueError(
                "a step has exactly one of apply, expect, patch, update, serverSideApply, delete,"
                " evict, bind, capture, watch, churn, fault, stimulate, wait, copyAllocation"
                f" (found {', '.join(self.verbs) or 'none'})"
            )
        changes = {"bind", "delete", "evict", "patch", "server_side_apply", "update"}
        if self.dry_run and self.action not in changes:
            raise ValueError("dryRun goes with patch, update, delete, evict and bind")
        if self.account is not None and self.action not in changes | {"apply"}:
            raise ValueError("as goes with apply, patch, update, delete, evict and bind")
        if self.parallel and self.action not in changes | {"apply"}:
            raise ValueError("parallel goes with apply, patch, update, delete, evict and bind")
        return self

    @property
    def action(self) -> str:
        """The one field that is set."""
        return self.verbs[0]


def together(steps: Sequence[Step]) -> list[list[int]]:
    """Indices of steps, in their order; those that are carried out at the same time in one list."""
    found: list[list[int]] = []
    for index, step in enumerate(steps):
        if step.parallel and found and steps[index - 1].parallel:
            found[-1].append(index)
        else:
            found.append([index])
    return found


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
        default=False,
        description="new, and tried out: it counts for nobody in a conformance report",
    )
    requires: Requires = Field(default_factory=Requires)
    covers: tuple[str, ...] = Field(
        default=(), description="ids from the behaviour list (behaviours.yaml) that it shows"
    )
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

    api_version: Literal["dra-conformance/v1"] = Field(alias="apiVersion")
    kind: Literal["Scenario"]
    metadata: Metadata
    spec: Spec
