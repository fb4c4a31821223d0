"""What the search has on its stack: what can be decided in another way, or has to be undone.

There is a frame for each device that was taken, for each request with alternatives, and for each
claim that has all its devices; a part of the search that ended says how (`Ending`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from reference_allocator.matching.resolved import Request, Taken


class Ending(Enum):
    """How a part of the search ended."""

    FOUND = "found"
    FAILED = "failed"
    EXCEEDED = "exceeded"
    """Every way exceeds ALLOCATION_RESULTS_MAX of a claim; other devices do not help."""


class Position(NamedTuple):
    """Where a search stands.

    Attributes:
        claim_index: the claim in work.
        request_index: its request in work.
        request: the alternative of it that is being tried.
        done: how many devices it has.
        start: the first candidate that may be tried for the next.
    """

    claim_index: int
    request_index: int
    request: Request
    done: int
    start: int


class EndOfClaim:
    """On the stack where a claim has all its devices."""


@dataclass(slots=True, eq=False)
class AlternativesFrame:
    """A request with firstAvailable."""

    claim_index: int
    request_index: int
    index: int = 0
    all_exceeded: bool = True


@dataclass(slots=True, eq=False)
class DeviceFrame:
    """One device of a request: the one that is taken and those that are to be tried.

    Attributes:
        position: the candidate that is taken or to be tried next.
        taken: the device that is taken.
        only: no other may be tried (allocationMode All).
        state: the moment of the search as the pruner tells moments apart, once it was asked.
        failed: kinds of candidates that were tried in vain.
    """

    claim_index: int
    request_index: int
    request: Request
    index: int
    position: int
    taken: Taken | None = None
    only: bool = False
    state: Hashable = None
    failed: set[Hashable] | None = None


END_OF_CLAIM = EndOfClaim()
