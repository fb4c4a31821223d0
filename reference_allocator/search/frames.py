"""The frames on the stack of the search: what can be decided in another way, or has to be undone.

There is a frame for each device that was taken, for each request with alternatives, and for each
claim that has all its devices; a part of the search that ended says how (`Ending`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from reference_allocator.cluster.pools import PoolDevice
from reference_allocator.matching.resolved import Request
from reference_allocator.rules.capacity import Consumption
from reference_allocator.rules.constraints import State
from reference_allocator.search.partitions import CounterStock, Moment


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
        all_exceeded: whether all alternatives so far ended as `EXCEEDED`.
    """

    claim_index: int
    request_index: int
    index: int = 0
    all_exceeded: bool = True


@dataclass(slots=True, eq=False)
class DeviceFrame:
    """One device of a request: the one that it has, how to take it back, and what can be tried.

    Attributes:
        claim_index: the index of the request's claim.
        request: the request, or the alternative that is being tried.
        index: the number of the device within its request.
        position: the candidate that is taken or to be tried next.
        entry: the device that is taken; set by `Usage.take`.
        only: whether no other may be tried (allocationMode All).
        consumption: for a share of a device what the share takes, else None.
        states: the constraints' states before it was taken, or None where they did not change.
        charged: the counters that it draws on, and what was left of them before, or None.
        state: the state of the search before the device, as `Pruner.state_at` has it, once asked.
        failed: kinds of candidates that were tried in vain.
    """

    claim_index: int
    request_index: int
    request: Request
    index: int
    position: int
    entry: PoolDevice = field(init=False)
    only: bool = False
    consumption: Consumption | None = None
    states: tuple[State, ...] | None = None
    charged: tuple[CounterStock, Moment] | None = None
    state: Hashable = None
    failed: set[Hashable] | None = None


END_OF_CLAIM: Final = EndOfClaim()
# Members of an enumeration are looked up slowly.
FOUND: Final = Ending.FOUND
FAILED: Final = Ending.FAILED
EXCEEDED: Final = Ending.EXCEEDED
