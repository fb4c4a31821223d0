"""What components said of a scenario's pods and claims, comparable between targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field

from conformance.results.events.comparison import recorded

MAX_LINES: Final = 500
"""The most lines of each part that are kept of a scenario."""

MAX_LINE: Final = 400
"""The most characters of a line."""

PARTS: Final = ("events", "pods", "calls")
"""The fields of an account, as differences name them."""

Line = Annotated[str, Field(max_length=MAX_LINE)]
Lines = Annotated[tuple[Line, ...], Field(max_length=MAX_LINES)]


@recorded
@dataclass(frozen=True, slots=True)
class Account:
    """What was said from the first step to the cleanup; calls until the cleanup is over.

    Uids, times, names of nodes, and what is generated of a name are not in it; nor is how often
    something was said.

    Attributes:
        events: ``Pod pod0: Warning FailedScheduling of default-scheduler: MESSAGE``, sorted.
        pods: name -> what its status ever had: phases, conditions, states of containers, health of
            devices; sorted.
        calls: claim -> what the nodes' own drivers answered, in order and the same again left out;
            None where it is not known.
    """

    events: Lines = ()
    pods: Mapping[str, Lines] = field(default_factory=dict)
    calls: Mapping[str, Lines] | None = None
