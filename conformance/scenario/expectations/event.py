"""``event``: an event about an object."""

from __future__ import annotations

from pydantic import Field

from conformance.scenario.base import ObjectSelector, Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed


class EventAbout(Strict):
    """The object that an event is about, and what it says."""

    kind: str = "Pod"
    name: str
    reason: str = Field(description="the event's reason, for example FailedScheduling")
    message: str | None = Field(default=None, description="a part of the message")


class EventExpectation(Timed):
    """There is an event with a reason about an object."""

    event: EventAbout

    def describe(self) -> str:
        """In a line."""
        says = f" saying {self.event.message!r}" if self.event.message else ""
        return f"event {self.event.reason} about {self.event.name}{says}"

    def evaluate(self, cluster: Cluster) -> Seen:
        """An event with that reason, about that object, and with that in its message."""
        wanted = self.event
        about = [
            event
            for event in cluster.find(ObjectSelector(apiVersion="v1", kind="Event"))
            if event.get("involvedObject", {}).get("kind") == wanted.kind
            and event.get("involvedObject", {}).get("name") == wanted.name
        ]
        holds = any(
            event.get("reason") == wanted.reason
            and (wanted.message or "") in event.get("message", "")
            for event in about
        )
        others = "; ".join(f"{event.get('reason')}: {event.get('message')}" for event in about)
        observed = {"event": wanted.reason, "about": wanted.kind, "found": holds}
        return Seen(holds, f"events: {others or 'none'}", observed)

    def lint(self, known: Known) -> None:
        """The object."""
        known.named(("event",), self.event.kind, self.event.name)
