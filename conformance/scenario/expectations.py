"""The expectations that a scenario may have. Each is known by the one key that begins it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)


def _seconds(value: Any) -> float:
    from conformance.scenario.model import parse_duration  # model.py builds on this module

    return parse_duration(value)


Seconds = Annotated[
    float | None,
    BeforeValidator(_seconds, json_schema_input_type=str),
    Field(description="a duration like 500ms, 3s or 2m"),
]
Cel = Annotated[str, Field(min_length=1, max_length=10_240)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class _Timed(_Strict):
    """When the expectation must hold: at some time (the default), or all the time."""

    eventually: Seconds = None
    consistently: Seconds = None

    @model_validator(mode="after")
    def _not_both(self) -> _Timed:
        if self.eventually is not None and self.consistently is not None:
            raise ValueError("give eventually or consistently, not both")
        return self


class ObjectSelector(_Strict):
    """Names objects of one kind: by name, or by how they relate to others."""

    api_version: str | None = Field(
        default=None, alias="apiVersion", description="the version to read; default: the stable one"
    )
    kind: str
    name: str | None = None
    owned_by: str | None = Field(
        default=None, alias="ownedBy", description="name of the controlling owner"
    )
    pod_claim: str | None = Field(
        default=None,
        alias="podClaim",
        description="name in pod.spec.resourceClaims for which a ResourceClaim was generated",
    )
    labels: dict[str, str] | None = None


class PodSelector(_Strict):
    """Several pods: those of a Job, or those with given labels."""

    job: str | None = None
    labels: dict[str, str] | None = None

    @model_validator(mode="after")
    def _one(self) -> PodSelector:
        if (self.job is None) == (self.labels is None):
            raise ValueError("give job or labels")
        return self


class Pending(_Strict):
    """The PodScheduled condition of a pod that waits."""

    reason: str = "Unschedulable"
    message: str | None = Field(default=None, description="a part of the condition's message")


class PodExpectation(_Timed):
    """A pod's phase, where it was scheduled to, or why it was not."""

    pod: str
    phase: Literal["Pending", "Running", "Succeeded", "Failed"] | None = None
    scheduled: bool | None = None
    node: str | None = Field(default=None, description="name of the node it is bound to")
    pending: Pending | None = Field(
        default=None, description="not scheduled, for this reason; and it stays so"
    )

    @model_validator(mode="after")
    def _something(self) -> PodExpectation:
        if self.phase is None and self.scheduled is None and not self.node and not self.pending:
            raise ValueError("expect a phase, scheduled, node or pending of the pod")
        return self


class ObjectExpectation(_Timed):
    """Exactly one object is found, and it is as described."""

    object: ObjectSelector
    match: dict[str, Any] | None = Field(
        default=None, description="a part of the object; lists are compared element by element"
    )
    cel: Cel | tuple[Cel, ...] = Field(
        default=(), description="CEL over `object` that must be true"
    )


class ObjectsExpectation(_Timed):
    """The objects that are found are as many as given, and as described."""

    objects: ObjectSelector
    count: int | None = Field(default=None, ge=0)
    cel: Cel | tuple[Cel, ...] = Field(
        default=(), description="CEL over `objects` (a list, by name) that must be true"
    )


class NoneExpectation(_Timed):
    """No such object is there."""

    none: ObjectSelector


class AllocatedTo(_Strict):
    """The devices that a claim's allocation names, all or those of one request."""

    claim: str | None = Field(default=None, description="name of a ResourceClaim")
    pod_claim: str | None = Field(
        default=None, alias="podClaim", description="name in the pod's spec.resourceClaims"
    )
    request: str | None = None

    @model_validator(mode="after")
    def _one(self) -> AllocatedTo:
        if (self.claim is None) == (self.pod_claim is None):
            raise ValueError("give claim or podClaim")
        return self


class Devices(_Strict):
    """Which devices containers see, read from inside them."""

    seen_by: tuple[str, ...] = Field(
        default=(), alias="seenBy", description="containers as pod/container"
    )
    pods: PodSelector | None = Field(
        default=None, description="instead of seenBy: compare within each of these pods"
    )
    containers: tuple[str, ...] = Field(default=(), description="with pods: container names")
    relation: Literal["same", "different"] | None = Field(
        default=None, description="all see the same devices, or no two see a common one"
    )
    count: int | None = Field(default=None, ge=0, description="how many devices each sees")
    allocated_to: AllocatedTo | None = Field(
        default=None, alias="allocatedTo", description="each sees exactly these devices"
    )

    @model_validator(mode="after")
    def _complete(self) -> Devices:
        if bool(self.seen_by) == bool(self.pods):
            raise ValueError("give seenBy, or pods with containers")
        if bool(self.pods) != bool(self.containers):
            raise ValueError("pods and containers go together")
        if self.relation is None and self.count is None and self.allocated_to is None:
            raise ValueError("expect a relation, a count or allocatedTo")
        if any(entry.count("/") != 1 for entry in self.seen_by):
            raise ValueError("seenBy has entries of the form pod/container")
        return self


class DevicesExpectation(_Timed):
    """See :class:`Devices`."""

    devices: Devices


class Environment(_Strict):
    """A driver's configuration that shows in a container's environment."""

    seen_by: tuple[str, ...] = Field(alias="seenBy", min_length=1)
    config: str = Field(description="name below probe.configEnv of the driver profile")


class EnvironmentExpectation(_Timed):
    """See :class:`Environment`."""

    environment: Environment


class Rejected(_Strict):
    """The API server refuses to create an object, and says why."""

    object: dict[str, Any]
    code: int | None = None
    reason: str | None = None
    field: str | None = Field(default=None, description="path in details.causes")
    message: str | None = Field(default=None, description="a part of the message")


class RejectedExpectation(_Strict):
    """See :class:`Rejected`."""

    rejected: Rejected


class EventAbout(_Strict):
    """An event about an object."""

    kind: str = "Pod"
    name: str
    reason: str
    message: str | None = Field(default=None, description="a part of the message")


class EventExpectation(_Timed):
    """See :class:`EventAbout`."""

    event: EventAbout


class Cdi(_Strict):
    """The CDI spec that the driver wrote for a claim of a pod (ability ``cdi``)."""

    pod: str
    claim: str = Field(description="name in the pod's spec.resourceClaims")
    present: bool


class CdiExpectation(_Timed):
    """See :class:`Cdi`."""

    cdi: Cdi


KEYS = (
    "pod",
    "object",
    "objects",
    "none",
    "devices",
    "environment",
    "rejected",
    "event",
    "cdi",
)


def _key(value: Any) -> str | None:
    names = value if isinstance(value, dict) else getattr(value, "model_fields_set", ())
    found = [key for key in KEYS if key in names]
    # In parentheses: a tag in an error's location is no key of the document.
    return f"({found[0]})" if len(found) == 1 else None


Expectation = Annotated[
    Annotated[PodExpectation, Tag("(pod)")]
    | Annotated[ObjectExpectation, Tag("(object)")]
    | Annotated[ObjectsExpectation, Tag("(objects)")]
    | Annotated[NoneExpectation, Tag("(none)")]
    | Annotated[DevicesExpectation, Tag("(devices)")]
    | Annotated[EnvironmentExpectation, Tag("(environment)")]
    | Annotated[RejectedExpectation, Tag("(rejected)")]
    | Annotated[EventExpectation, Tag("(event)")]
    | Annotated[CdiExpectation, Tag("(cdi)")],
    Discriminator(
        _key,
        custom_error_type="expectation",
        custom_error_message="an expectation has exactly one of " + ", ".join(KEYS),
    ),
]
