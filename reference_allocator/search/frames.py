"""The frames on the stack of the search: what can be decided in another way, or has to be undone.

There is a frame for each device that was taken, for each request with alternatives, and for each
claim that has all its devices; a part of the search that ended says how (`Ending`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from reference_allocator.cluster.pools import PoolDevice
from reference_allocator.matching.resolved import Request
from reference_allocator.rules.capacity import Consumption
from reference_allocator.rules.constraints import State
from reference_allocator.search.partitions import CounterStock, Moment

Shares = tuple[int, Mapping[str, int]]
"""The shares of one device that a search has given out: how many there are; and capacity name ->
what they take together, in units of 1e-9."""

Undo = tuple[
    Consumption | None, Shares | None, tuple[State, ...] | None, tuple[CounterStock, Moment] | None
]
"""How a device is given back: for a share what it takes, else None; the shares of the device before
it; the constraints' states before it, or None where they did not change; and the counters that it
draws on, with what was left of them before, or None."""


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
        total: how many devices the claim has.
    """

    claim_index: int
    request_index: int
    request: Request
    taken_count: int
    start: int
    total: int


class EndOfClaim:
    """The mark on the stack where a claim has all its devices."""


@dataclass(slots=True, eq=False)
class AlternativesFrame:
    """A request with firstAvailable.

    Attributes:
        index: the alternative that is being tried.
        all_exceeded: whether all alternatives so far ended as `EXCEEDED`.
    """

    claim_index: int
    request_index: int
    index: int = 0
    all_exceeded: bool = True


@dataclass(slots=True, eq=False)
class Tried:
    """The candidates that were tried in vain for one device of a request; only where cuts are made.

    Attributes:
        state: the state of the search before the device, once `Pruner.is_open` has been asked.
        failed: their kinds.
    """

    state: Hashable = None
    failed: set[Hashable] = field(default_factory=set)


DeviceFrame = tuple[int, int, Request, int, int, PoolDevice, Undo, Tried | None]
"""One device of a request: the one that it has, how to give it back, and what can be tried.

The index of the claim; that of its request; the request, or the alternative that is being tried;
the number of the device within it; the position of the candidate that is taken; this candidate;
what `Usage.charge` has returned for it; and what was tried before it. A plain tuple, because a
decision makes one for each of its devices.
"""
Frame = EndOfClaim | AlternativesFrame | DeviceFrame

END_OF_CLAIM: Final = EndOfClaim()
# Members of an enumeration are looked up slowly.
FOUND: Final = Ending.FOUND
FAILED: Final = Ending.FAILED
EXCEEDED: Final = Ending.EXCEEDED
NOTHING_CHARGED: Final[Undo] = (None, None, None, None)
"""A device that is given back by the claim alone: nothing else has changed."""
