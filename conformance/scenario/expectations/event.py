"""``event``: an event about an object."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from conformance.scenario.base import Obj, ObjectSelector, Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed


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
    at_least: int = Field(default=1, alias="atLeast", ge=1, description="how often it was said")
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
                ObjectSelector(apiVersion="v1", kind="Event", namespace=wanted.namespace)
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
