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
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed, WatchEvent
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

    def evaluate(self, cluster: Cluster) -> Seen:
        wanted = self.event
        about = [
            event
            for event in cluster.find(
                ObjectSelector(api_version="v1", kind="Event", namespace=wanted.namespace)
            )
            if event.get("involvedObject", {}).get("kind") == wanted.kind
            and event.get("involvedObject", {}).get("name") == wanted.name
        ]
        times = sum(_times(event) for event in about if _is_it(wanted, event))
        holds = times == 0 if wanted.absent else times >= wanted.at_least
        others = "; ".join(f"{event.get('reason')}: {event.get('message')}" for event in about)
        observed = {"event": wanted.reason, "about": wanted.kind, "found": holds}
        return Seen(holds, f"events: {others or 'none'}", observed)

    def lint(self, known: Known) -> None:
        about = self.event
        selector = ObjectSelector(kind=about.kind, name=about.name, namespace=about.namespace)
        known.selected(("event",), selector)


def _is_it(wanted: EventAbout, event: Obj) -> bool:
    source = event.get("reportingComponent") or (event.get("source") or {}).get("component")
    return (
        event.get("reason") == wanted.reason
        and (wanted.message or "") in event.get("message", "")
        and wanted.type in {None, event.get("type")}
        and wanted.reporter in {None, source}
    )


def _times(event: Obj) -> int:
    """How often it was said: a repeated event only counts (``count``, or ``series.count``)."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


_Named = tuple[str, str]  # Type of an event, and the name of its object.


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
    def named(self) -> _Named:
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
        """Nothing comes after the last of them."""
        return True

    def describe(self) -> str:
        return f"watch {self.watched} brings {_told([item.named for item in self.events])}"

    def evaluate(self, cluster: Cluster) -> Seen:
        came = cluster.watched(self.watched)
        found = _folded(came)
        observed: dict[str, Any] = {
            "watched": self.watched,
            "events": [cluster.canonical(" ".join(event)) for event in found],
        }
        text = f"it brought {_told(found)}"
        back = [(one, two) for one, two in pairwise(came) if 0 < two.version <= one.version]
        for one, two in back[:1]:
            text += (
                f"; {two.type} {two.name} of resourceVersion {two.version} came after"
                f" {one.type} {one.name} of {one.version}"
            )
        holds = not back and found == [item.named for item in self.events]
        return Seen(holds, text, observed)

    def lint(self, known: Known) -> None:
        watch = known.watch(("watched",), self.watched)
        for index, event in enumerate(self.events):
            kind, name = event.named
            if watch is not None:
                known.named(("events", index, kind), watch.kind, name, watch.namespace)


def _folded(events: Sequence[WatchEvent]) -> list[_Named]:
    """Without the second MODIFIED of two in a row of one object: nobody says how many writes."""
    found: list[_Named] = []
    for event in events:
        named = (event.type, event.name)
        if event.type != "MODIFIED" or found[-1:] != [named]:
            found.append(named)
    return found


def _told(events: Sequence[_Named]) -> str:
    return ", ".join(" ".join(event) for event in events) or "no event"
