"""What an expectation is: a part of the scenario document that can be checked and described.

An expectation is one class: its fields (the document's schema), how it is described, how it is
evaluated, and what it refers to. It sees the cluster through :class:`Cluster`, which the engine
provides. How to add one: docs/writing-scenarios.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pydantic import Field, model_validator

from conformance.scenario.base import Duration, ObjectSelector, PodSelector, Strict
from conformance.scenario.changes import AccountName, Changes, Delete
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.lint_context import LintContext
from conformance.scenario.metrics import MetricOf
from conformance.seam.observation import Observation
from kube.values import Obj


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of evaluating an expectation once; ``finding`` is for the failure message.

    ``observed`` is the same without uids, times and generated names, to be compared between
    targets. ``final``: all has been said; only what the API server is about to tell may change it.
    """

    holds: bool
    finding: str
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
        """Return what is known of the driver, for example how containers show its devices."""

    @property
    def observe(self) -> Observation:
        """Return what shows the cluster's nodes and components."""

    def get(self, kind: str, name: str) -> Obj | None:
        """Return an object of the scenario's namespace, or a cluster-scoped one."""

    def find(self, selector: ObjectSelector) -> list[Obj]:
        """Return all objects that a selector names, sorted by name."""

    def read_columns(self, selector: ObjectSelector, name: str) -> Mapping[str, str]:
        """Return what ``kubectl get`` prints of an object that was found: column -> text."""

    def find_pods(self, selector: PodSelector) -> list[Obj]:
        """Return the pods of a Job, or those with labels, sorted by name."""

    def claim_of(self, pod: str, pod_claim: str) -> Obj | None:
        """Return the ResourceClaim behind an entry of ``pod.spec.resourceClaims``."""

    def claim_uid(self, pod: str, pod_claim: str) -> str | None:
        """Return the uid of that claim, also if it is gone by now; None if it was never seen."""

    def read_metric(self, metric: MetricOf) -> float | None:
        """Return a metric's value or growth; None if its component does not answer."""

    def of_driver(self, driver: str) -> Cluster:
        """Return this cluster with the profile of the driver of that name."""

    def try_create(self, obj: Obj, account: AccountName | None = None) -> Refusal | None:
        """Create an object, and return why it was refused; None if it was accepted.

        In the name of an account of the scenario, or of the user who runs it.
        """

    def try_change(self, changes: Changes, deleted: tuple[Delete, ...]) -> Refusal | None:
        """Send a change or deletion, and return why it was refused; None if it was accepted.

        Raises LookupError if there is no such object.
        """

    def may(
        self, account: AccountName, verb: str, kind: str, name: str, fields: Mapping[str, str]
    ) -> bool:
        """Return whether an account of the scenario may do something, in its namespace."""

    def list_watch_events(self, name: str) -> Sequence[WatchEvent]:
        """Return what an earlier step's watch has brought so far of the scenario's own objects."""

    @property
    def captured(self) -> Mapping[str, Obj]:
        """Return the objects that earlier steps captured, by the name of the capture."""

    def make_canonical(self, text: str) -> str:
        """Return a text without what differs from run to run."""


class WatchEvent(NamedTuple):
    """What a watch has brought: one change of one object (``metav1.WatchEvent``).

    ``version`` is its resourceVersion; 0 where that is no number.
    """

    type: str
    name: str
    version: int


def evaluate_one_object(
    cluster: Cluster,
    selector: ObjectSelector,
    key: str,
    find_problems: Callable[[Obj], Iterable[str]],
) -> Evaluation:
    """Evaluate whether one object is selected, and has no problem; ``key`` is what it is."""
    description = selector.describe()
    objects = cluster.find(selector)
    observed: dict[str, Any] = {key: cluster.make_canonical(description), "found": len(objects)}
    if len(objects) != 1:
        names = ", ".join(obj["metadata"]["name"] for obj in objects) or "none"
        return Evaluation(False, f"{description}: {len(objects)} found ({names})", observed)
    problems = [*find_problems(objects[0])]
    observed["fits"] = not problems
    return Evaluation(
        not problems, f"{description}: " + ("; ".join(problems) or "as described"), observed
    )


def lint_seen_by(lint: LintContext, entries: Sequence[str], key: str) -> None:
    """Check ``seenBy`` below a key: ``pod/container`` of earlier steps."""
    for index, entry in enumerate(entries):
        name, _, container = entry.partition("/")
        path = (key, "seenBy", index)
        lint.expects_object(path, "Pod", name)
        lint.expects_container(path, (name,), container)


class Expectation(Strict):
    """Something that must be so, once it is evaluated.

    The first field of a class that is not inherited is the key that begins it in a document.
    """

    @classmethod
    def leading_key(cls) -> str:
        fields = cls.model_fields.items()
        return next(item.alias or name for name, item in fields if name not in Timed.model_fields)

    @abstractmethod
    def describe(self) -> str:
        """Return the expectation in a line, for step titles and failure messages."""

    @abstractmethod
    def evaluate(self, cluster: Cluster) -> Evaluation:
        """Compare the expectation with the cluster, once, now."""

    @abstractmethod
    def lint(self, lint: LintContext) -> None:
        """Report to ``lint`` what the expectation refers to and needs."""

    @property
    def growing_metric(self) -> MetricOf | None:
        """Return the metric that must be read before an earlier step, too; None for none."""
        return None

    def list_scheduled_pods(self) -> Iterable[tuple[str, int]]:
        """Return (name of a pod or Job, number of pods) of what is scheduled when this holds."""
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
        """Return whether pods must have started (then the limit is ``timeouts.podRunning``)."""
        return False

    @property
    def must_stay(self) -> bool:
        """Return whether it must go on to hold for ``timeouts.consistently`` once it holds."""
        return False

    @property
    def may_want_devices(self) -> str | None:
        """Return the pod whose snapshot shows why it is not scheduled; None for no pod."""
        return None
