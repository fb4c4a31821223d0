"""``watched``: the events that a watch has brought of the scenario's own objects, in order.

A watch tells every change of what its selector selects, once and in the order of the changes; what
comes to be selected is ADDED, and what is selected no longer DELETED, however it came to that
(https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pydantic import Field, model_validator

from conformance.scenario.base import Strict
from conformance.scenario.expectations.base import Cluster, Known, Seen, Timed, WatchEvent

_Named = tuple[str, str]
"""Type of an event, and the name of its object."""


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
