"""The frames on the stack of the search: what can be decided in another way, or has to be undone.

There is a frame for each device that was taken, for each request with alternatives, and for each
claim that has all its devices; a part of the search that ended says how (`Ending`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from reference_allocator.matching.resolved import Request, TakenDevice


class Ending(Enum):
    """The ways in which a part of the search can end."""

    FOUND = "found"
    FAILED = "failed"
    EXCEEDED = "exceeded"
    """Every way exceeds ALLOCATION_RESULTS_MAX of a claim; other devices do not help."""


class Position(NamedTuple):
    """The point at which a search is.

    Attributes:
        claim_index: the claim in work.
        request_index: its request in work.
        request: the alternative that is being tried.
        taken_count: how many devices the request has.
        start: the first candidate that may be tried for the next device.
    """

    claim_index: int
    request_index: int
    request: Request
    taken_count: int
    start: int


class EndOfClaim:
    """The mark on the stack where a claim has all its devices."""


@dataclass(slots=True, eq=False)
class AlternativesFrame:
    """A request with firstAvailable.

    Attributes:
        index: the alternative that is being tried.
        all_exceeded: whether all alternatives so far ended as `Ending.EXCEEDED`.
    """

    claim_index: int
    request_index: int
    index: int = 0
    all_exceeded: bool = True


@dataclass(slots=True, eq=False)
class DeviceFrame:
    """One device of a request: the one that is taken and those that are to be tried.

    Attributes:
        index: the number of the device within its request.
        position: the candidate that is taken or to be tried next.
        taken_device: the device that is taken.
        only: whether no other may be tried (allocationMode All).
        state: the state of the search before the device, as `Pruner.state_at` has it, once asked.
        failed: kinds of candidates that were tried in vain.
    """

    claim_index: int
    request_index: int
    request: Request
    index: int
    position: int
    taken_device: TakenDevice | None = None
    only: bool = False
    state: Hashable = None
    failed: set[Hashable] | None = None


END_OF_CLAIM = EndOfClaim()
