"""What an expectation is: a part of the scenario document that can be checked and described.

An expectation is one class: its fields (the document's schema), how it is described, how it is
evaluated, and what it refers to. It sees the cluster through :class:`Cluster` and lint through
:class:`References`, both of which others provide, so that nothing here depends on the engine. How
to add one: docs/writing-scenarios.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field, model_validator

from conformance.scenario.base import Duration, Obj, ObjectSelector, PodSelector, Strict
from conformance.scenario.profile import Probe


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of evaluating an expectation once.

    Attributes:
        holds: whether it is as expected.
        found: what was there, for the failure message.
        observed: the same in a form that can be compared between targets: no uids, no times, no
            generated names.
    """

    holds: bool
    found: str
    observed: Mapping[str, Any]


class ContainerView(Protocol):
    """What one container sees of its surroundings, read from inside it."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Name -> value."""
        ...

    @property
    def device_nodes(self) -> tuple[str, ...]:
        """Paths of the character devices below ``/dev``."""
        ...


class Cause(Protocol):
    """One of the ``details.causes`` of a ``metav1.Status``."""

    @property
    def field(self) -> str:
        """The path of the field."""
        ...

    @property
    def message(self) -> str:
        """What is wrong there."""
        ...


class Refusal(Protocol):
    """Why the API server refused a request (``metav1.Status``)."""

    @property
    def code(self) -> int:
        """HTTP status."""
        ...

    @property
    def reason(self) -> str:
        """``Status.reason``, for example ``Invalid``."""
        ...

    @property
    def message(self) -> str:
        """``Status.message``."""
        ...

    @property
    def causes(self) -> Sequence[Cause]:
        """``Status.details.causes``."""
        ...


class Cluster(Protocol):
    """What an expectation may ask of the cluster, in the namespace of its scenario."""

    @property
    def probe(self) -> Probe | None:
        """How containers show their devices; None where no driver profile is used."""
        ...

    def get(self, kind: str, name: str) -> Obj | None:
        """An object of the scenario's namespace, or a cluster-scoped one."""
        ...

    def find(self, selector: ObjectSelector) -> list[Obj]:
        """All objects that a selector names, by name."""
        ...

    def pods(self, selector: PodSelector) -> list[Obj]:
        """The pods of a Job, or with labels, by name."""
        ...

    def claim_of(self, pod: str, pod_claim: str) -> Obj | None:
        """The ResourceClaim behind an entry of ``pod.spec.resourceClaims``."""
        ...

    def claim_uid(self, pod: str, pod_claim: str) -> str | None:
        """The uid of that claim, also when it is gone by now; None if it was never seen."""
        ...

    def observe(self, pod: str, container: str) -> ContainerView | None:
        """What a container has seen, None as long as it has shown nothing."""
        ...

    def cdi_specs(self, uid: str) -> Sequence[str]:
        """Names of the CDI specs on the nodes that mention a claim."""
        ...

    def refusal(self, obj: Obj) -> Refusal | None:
        """Create an object and say why it was refused; None if it was accepted."""
        ...

    def canonical(self, text: str) -> str:
        """A text without what differs from run to run."""
        ...


class References(Protocol):
    """Takes note, for lint, of what an expectation refers to and needs.

    Paths are those of the expectation's own fields, for example ``"devices", "seenBy"``.
    """

    def named(self, kind: str, name: str, *path: str) -> None:
        """An object that an earlier step must have made."""
        ...

    def selected(self, selector: ObjectSelector, *path: str, gone: bool = False) -> None:
        """What a selector names; ``gone``: it is only there later, or never."""
        ...

    def containers(self, entries: Sequence[str], *path: str) -> None:
        """``pod/container`` of earlier steps."""
        ...

    def containers_of(self, pods: PodSelector, names: Sequence[str], *path: str) -> None:
        """Containers of each of several pods."""
        ...

    def pod_claim(self, pods: Iterable[str] | PodSelector, name: str, *path: str) -> None:
        """A name in ``spec.resourceClaims`` of each of the pods."""
        ...

    def request(
        self,
        name: str,
        *path: str,
        claim: str | None = None,
        pods: Iterable[str] | PodSelector = (),
        pod_claim: str | None = None,
    ) -> None:
        """A request of a claim, which is named, or which is behind ``pod_claim`` of the pods."""
        ...

    def condition(self, cel: Sequence[str], variable: str, selector: ObjectSelector) -> None:
        """CEL, in the field ``cel``, over what the selector finds."""
        ...

    def fields(self, value: Any, selector: ObjectSelector, *path: str) -> None:
        """A part of an object."""
        ...

    def refused(self, obj: Obj, why: str | None, *path: str, unread: bool, anyhow: bool) -> None:
        """An object that the API server must refuse.

        Args:
            obj: the object.
            why: a part of the server's message.
            path: of the object.
            unread: it is refused before anybody looks into it.
            anyhow: any mistake in it may be what is meant.
        """
        ...

    def ability(self, name: str, *path: str) -> None:
        """Something that not every target can do (``requires.abilities``)."""
        ...

    def config(self, name: str, *path: str) -> None:
        """A configuration that not every driver profile has (``requires.config``)."""
        ...

    def kubelet(self, *path: str) -> None:
        """A pod that runs, which the allocation tier does not have."""
        ...


class Expectation(Strict):
    """Something that must be so, once it is evaluated.

    The first field of a class that is not inherited is the key that begins it in a document.
    """

    @classmethod
    def key(cls) -> str:
        """The key by which it is known."""
        return next(name for name in cls.model_fields if name not in Timed.model_fields)

    @abstractmethod
    def describe(self) -> str:
        """The expectation in a line, for step titles and failure messages."""

    @abstractmethod
    def evaluate(self, cluster: Cluster) -> Seen:
        """Compare it with the cluster, once, now."""

    @abstractmethod
    def references(self, found: References) -> None:
        """Tell lint what it refers to and needs."""

    def placed(self) -> Iterable[tuple[str, int]]:
        """Who must be scheduled when it holds: name of a pod, or of a Job; how many pods."""
        return ()


class Timed(Expectation):
    """When the expectation must hold: at some time (the default), or all the time."""

    eventually: Duration | None = Field(
        default=None,
        description="the longest time until it must hold, like 30s; default: that of the scenario",
    )
    consistently: Duration | None = Field(
        default=None, description="it must hold from the first moment on, for this long, like 3s"
    )

    @model_validator(mode="after")
    def _not_both(self) -> Timed:
        if self.eventually is not None and self.consistently is not None:
            raise ValueError("give eventually or consistently, not both")
        return self

    @property
    def waits_for_start(self) -> bool:
        """Whether pods must have started (then the limit is ``timeouts.podRunning``)."""
        return False
