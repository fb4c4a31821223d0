"""What an expectation is: a part of the scenario document that can be checked and described.

An expectation is one class: its fields (the document's schema), how it is described, how it is
evaluated, and what it refers to. It sees the cluster through :class:`Cluster`, which the engine
provides. How to add one: docs/writing-scenarios.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field, model_validator

from conformance.scenario.base import Duration, ObjectSelector, PodSelector, ServerSelector, Strict
from conformance.scenario.changes import AccountName, Changes, Delete
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.metrics import MetricOf
from conformance.seam.observation import Observation
from kube.values import Obj


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of evaluating an expectation once; ``found`` is for the failure message.

    ``observed`` is the same without uids, times and generated names, to be compared between
    targets. ``final``: all has been said; only what the API server is about to tell may change it.
    """

    holds: bool
    found: str
    observed: Mapping[str, Any]
    final: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the API server refused a request (``metav1.Status``).

    ``causes`` has field and message of each of ``Status.details.causes``.
    """

    code: int
    reason: str
    message: str
    causes: tuple[tuple[str, str], ...]


class Cluster(Protocol):
    """What an expectation may ask of the cluster, in the namespace of its scenario."""

    @property
    def profile(self) -> DriverProfile | None:
        """What is known of the driver, for example how containers show its devices."""

    @property
    def observe(self) -> Observation:
        """What can be seen of its nodes and components."""

    def get(self, kind: str, name: str) -> Obj | None:
        """An object of the scenario's namespace, or a cluster-scoped one."""

    def find(self, selector: ObjectSelector) -> list[Obj]:
        """All objects that a selector names, by name."""

    def columns(self, selector: ObjectSelector, name: str) -> Mapping[str, str]:
        """What ``kubectl get`` prints of a found object: column -> text."""

    def pods(self, selector: PodSelector) -> list[Obj]:
        """The pods of a Job, or with labels, by name."""

    def claim_of(self, pod: str, pod_claim: str) -> Obj | None:
        """The ResourceClaim behind an entry of ``pod.spec.resourceClaims``."""

    def claim_uid(self, pod: str, pod_claim: str) -> str | None:
        """The uid of that claim, also when it is gone by now; None if it was never seen."""

    def metric(self, wanted: MetricOf) -> float | None:
        """What a metric is, or by how much it has grown; None: its component does not answer."""

    def of_driver(self, driver: str) -> Cluster:
        """The same with the profile of the driver of that name."""

    def refusal(self, obj: Obj, account: AccountName | None = None) -> Refusal | None:
        """Create an object and say why it was refused; None if it was accepted.

        In the name of an account of the scenario, or of the user who runs it.
        """

    def refusal_of(self, changes: Changes, deleted: tuple[Delete, ...]) -> Refusal | None:
        """Why a change or deletion was refused; None: it was not. Raises LookupError: not there."""

    def watched(self, name: str) -> Sequence[WatchEvent]:
        """What an earlier step's watch has brought so far of the scenario's own objects."""

    @property
    def captured(self) -> Mapping[str, Obj]:
        """Name -> an object as an earlier step captured it."""

    def canonical(self, text: str) -> str:
        """A text without what differs from run to run."""


class WatchEvent(NamedTuple):
    """What a watch has brought: one change of one object (``metav1.WatchEvent``).

    ``version`` is its resourceVersion; 0 where that is no number.
    """

    type: str
    name: str
    version: int


Path = tuple[str | int, ...]  # Of a field below the expectation or step that has it.
Pods = tuple[str, ...] | PodSelector


class Known(Protocol):
    """What is known of a scenario at one step: lint's side, which notes what is wrong.

    Every ``path`` is that of a field below the expectation or step.
    """

    def wrong(self, path: Path, message: str) -> None:
        """Something else is wrong."""

    def step(self, path: Path, name: str) -> None:
        """An earlier step has this name."""

    def watch(self, path: Path, name: str) -> ServerSelector | None:
        """An earlier step watches by this name; what it watches, None if there is none."""

    def named(self, path: Path, kind: str, name: str, namespace: str | None = None) -> None:
        """An earlier step must have made this object; None is the scenario's namespace."""

    def selected(self, path: Path, selector: ObjectSelector, *, gone: bool = False) -> None:
        """A selector names something; ``gone``: it is only there later, or never."""

    def container(self, path: Path, pods: Pods, name: str) -> None:
        """Each of the pods has this container."""

    def pod_claim(self, path: Path, pods: Pods, name: str) -> None:
        """Each of the pods has this name in ``spec.resourceClaims``."""

    def request(
        self,
        path: Path,
        name: str,
        claim: str | None,
        pods: Pods,
        pod_claim: str | None,
        *,
        alternatives: bool = False,
    ) -> None:
        """A ResourceClaim, or each behind a name in ``spec.resourceClaims``, has this request.

        ``alternatives``: a request is named as an allocation does, as ``request/alternative``.
        """

    def device(self, path: Path, name: str) -> None:
        """A ResourceSlice of the scenario has this device, if all devices are in such."""

    def condition(
        self, path: Path, cel: Sequence[str], variable: str, selector: ObjectSelector
    ) -> None:
        """CEL over ``variable``, which is what a selector finds, and over what was captured."""

    def relation(self, path: Path, cel: Sequence[str], variables: Sequence[str]) -> None:
        """CEL over several objects, and over what was captured."""

    def part(self, path: Path, value: Any, selector: ObjectSelector) -> None:
        """A part of an object that a selector finds."""

    def changed(self, path: Path, changes: Changes) -> None:
        """What is changed is there, and has the fields that are named."""

    def refused(self, path: Path, obj: Obj, message: str | None) -> None:
        """An object must be refused; ``message``: for what, None for any mistake in it."""

    def needed(
        self,
        path: Path,
        what: Literal["ability", "config", "gate", "hardware", "kubelet", "trait"],
        name: str = "",
    ) -> None:
        """Not every target, tier or driver has this.

        ``what``: an ability, a configuration that shows in containers, a feature gate that is on,
        containers that show their hardware, a pod that runs, a trait.
        """


def exactly_one(
    cluster: Cluster, selector: ObjectSelector, key: str, wrong: Callable[[Obj], Iterable[str]]
) -> Seen:
    """Whether one object is selected, and nothing of it is ``wrong``; ``key`` is what it is."""
    what = selector.describe()
    found = cluster.find(selector)
    observed: dict[str, Any] = {key: cluster.canonical(what), "found": len(found)}
    if len(found) != 1:
        names = ", ".join(obj["metadata"]["name"] for obj in found) or "none"
        return Seen(False, f"{what}: {len(found)} found ({names})", observed)
    told = [*wrong(found[0])]
    observed["fits"] = not told
    return Seen(not told, f"{what}: " + ("; ".join(told) or "as described"), observed)


def lint_seen_by(known: Known, entries: Sequence[str], key: str) -> None:
    """Check ``seenBy`` below a key: ``pod/container`` of earlier steps."""
    for index, entry in enumerate(entries):
        name, _, container = entry.partition("/")
        path = (key, "seenBy", index)
        known.named(path, "Pod", name)
        known.container(path, (name,), container)


class Expectation(Strict):
    """Something that must be so, once it is evaluated.

    The first field of a class that is not inherited is the key that begins it in a document.
    """

    @classmethod
    def key(cls) -> str:
        fields = cls.model_fields.items()
        return next(item.alias or name for name, item in fields if name not in Timed.model_fields)

    @abstractmethod
    def describe(self) -> str:
        """The expectation in a line, for step titles and failure messages."""

    @abstractmethod
    def evaluate(self, cluster: Cluster) -> Seen:
        """Compare it with the cluster, once, now."""

    @abstractmethod
    def lint(self, known: Known) -> None:
        """Say what it refers to and needs."""

    @property
    def counted(self) -> MetricOf | None:
        """A metric that must be read before an earlier step, too; None for none."""
        return None

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

    not_before: Duration | None = Field(
        default=None,
        description="it must not hold earlier than so long after the step that `since` names began",
    )
    since: str | None = Field(default=None, description="name of an earlier step")

    @model_validator(mode="after")
    def _not_both(self) -> Timed:
        if (self.not_before is None) != (self.since is None):
            raise ValueError("notBefore goes with since, which names an earlier step")
        if self.not_before is not None and self.consistently is not None:
            raise ValueError("give notBefore or consistently, not both")
        if self.eventually is not None and self.consistently is not None:
            raise ValueError("give eventually or consistently, not both")
        return self

    @property
    def waits_for_start(self) -> bool:
        """Whether pods must have started (then the limit is ``timeouts.podRunning``)."""
        return False

    @property
    def must_stay(self) -> bool:
        """Whether it must go on to hold for ``timeouts.consistently`` once it holds."""
        return False

    @property
    def may_want_devices(self) -> str | None:
        """The pod whose snapshot shows why, if it is not scheduled; None for no pod."""
        return None
