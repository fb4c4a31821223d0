"""``event``: an Event about an object; ``watched``: what a watch brought, in order.

A watch reports each change of what its selector selects, once and in the order of the changes; what
comes to be selected is ADDED, and what is selected no longer DELETED, however it came to that
(https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field, model_validator

from conformance.scenario.base import ObjectSelector, Strict
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed, WatchEvent
from conformance.scenario.lint_context import LintContext
from kube.values import Obj


class EventAbout(Strict):
    """The object that an event is about, and what it says."""

    kind: str = "Pod"
    name: str
    reason: str = Field(description="the event's reason, for example FailedScheduling")
    message: str | None = Field(default=None, description="a part of the message")
    type: Literal["Normal", "Warning"] | None = None
    reporter: str | None = Field(
        default=None, description="the component that says so, for example default-scheduler"
    )
    absent: bool = Field(default=False, description="there is no such event")
    at_least: int = Field(default=1, ge=1, description="how often it was said")
    namespace: str | None = Field(default=None, description="that of the object")


class EventExpectation(Timed):
    """There is an event with a reason about an object."""

    event: EventAbout

    def describe(self) -> str:
        says = f" saying {self.event.message!r}" if self.event.message else ""
        number = "no " if self.event.absent else ""
        return f"{number}event {self.event.reason} about {self.event.name}{says}"

    def evaluate(self, cluster: Cluster) -> Evaluation:
        expected = self.event
        about = [
            event
            for event in cluster.find(
                ObjectSelector(api_version="v1", kind="Event", namespace=expected.namespace)
            )
            if event.get("involvedObject", {}).get("kind") == expected.kind
            and event.get("involvedObject", {}).get("name") == expected.name
        ]
        times = sum(_count_occurrences(event) for event in about if _matches_event(expected, event))
        holds = times == 0 if expected.absent else times >= expected.at_least
        events_text = "; ".join(f"{event.get('reason')}: {event.get('message')}" for event in about)
        observed = {"event": expected.reason, "about": expected.kind, "found": holds}
        return Evaluation(holds, f"events: {events_text or 'none'}", observed)

    def lint(self, lint: LintContext) -> None:
        expected = self.event
        selector = ObjectSelector(
            kind=expected.kind, name=expected.name, namespace=expected.namespace
        )
        lint.expects_selection(("event",), selector)


def _matches_event(expected: EventAbout, event: Obj) -> bool:
    source = event.get("reportingComponent") or (event.get("source") or {}).get("component")
    return (
        event.get("reason") == expected.reason
        and (expected.message or "") in event.get("message", "")
        and expected.type in {None, event.get("type")}
        and expected.reporter in {None, source}
    )


def _count_occurrences(event: Obj) -> int:
    """Return how often an event occurred: a repeated one counts (``count``, ``series.count``)."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


TypeAndName = tuple[str, str]  # Type of an event, and the name of its object.


class ExpectedEvent(Strict):
    """An event: its type, with the name of its object."""

    added: str | None = Field(default=None, alias="ADDED", description="name of an object")
    modified: str | None = Field(
        default=None, alias="MODIFIED", description="name of an object; once or several times"
    )
    deleted: str | None = Field(default=None, alias="DELETED", description="name of an object")

    @model_validator(mode="after")
    def _one(self) -> ExpectedEvent:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("an event has exactly one of ADDED, MODIFIED, DELETED")
        return self

    @property
    def named(self) -> TypeAndName:
        [(kind, name)] = self.model_dump(by_alias=True, exclude_none=True).items()
        return str(kind), str(name)


class WatchedExpectation(Timed):
    """These events, in this order, and no others; others' objects do not count."""

    watched: str = Field(description="name that an earlier step `watch` gave")
    events: tuple[ExpectedEvent, ...] = Field(
        description=(
            "all since that step, in their order; MODIFIED stands for as many of one object as come"
            " one after the other; none: []"
        )
    )

    @property
    def must_stay(self) -> bool:
        """Return True: nothing may come after the last event."""
        return True

    def describe(self) -> str:
        return f"watch {self.watched} brings {_join_events([item.named for item in self.events])}"

    def evaluate(self, cluster: Cluster) -> Evaluation:
        watch_events = cluster.list_watch_events(self.watched)
        brought = _fold_modifications(watch_events)
        observed: dict[str, Any] = {
            "watched": self.watched,
            "events": [cluster.make_canonical(" ".join(event)) for event in brought],
        }
        text = f"it brought {_join_events(brought)}"
        steps_back = [
            (earlier, later)
            for earlier, later in pairwise(watch_events)
            if 0 < later.version <= earlier.version
        ]
        for earlier, later in steps_back[:1]:
            text += (
                f"; {later.type} {later.name} of resourceVersion {later.version} came after"
                f" {earlier.type} {earlier.name} of {earlier.version}"
            )
        holds = not steps_back and brought == [item.named for item in self.events]
        return Evaluation(holds, text, observed)

    def lint(self, lint: LintContext) -> None:
        watch = lint.expects_watch(("watched",), self.watched)
        for index, event in enumerate(self.events):
            kind, name = event.named
            if watch is not None:
                lint.expects_object(("events", index, kind), watch.kind, name, watch.namespace)


def _fold_modifications(events: Sequence[WatchEvent]) -> list[TypeAndName]:
    """Leave out the second of two MODIFIED in a row of one object: how many is not promised."""
    folded: list[TypeAndName] = []
    for event in events:
        type_and_name = (event.type, event.name)
        if event.type != "MODIFIED" or folded[-1:] != [type_and_name]:
            folded.append(type_and_name)
    return folded


def _join_events(events: Sequence[TypeAndName]) -> str:
    return ", ".join(" ".join(event) for event in events) or "no event"
