"""The devices that the search has given out, and the last checks before it gives out one more.

Everything that a decision of the search changes is in here, so that one call takes it back, and so
that two moments of a search can be recognised as equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.cluster.state import DeviceUse
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.matching.matcher import Matcher
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.rules.capacity import Consumption, capacity_suffices
from reference_allocator.rules.constraints import State
from reference_allocator.search import partitions
from reference_allocator.search.frames import DeviceFrame

_NOTHING: Final[Mapping[str, int]] = {}


@dataclass(slots=True, eq=False)
class Shares:
    """The shares of one device that a search has given out.

    Attributes:
        count: how many there are.
        amounts: capacity name -> what they take together, in units of 1e-9.
    """

    count: int = 0
    amounts: dict[str, int] = field(default_factory=dict)


class Usage:
    """The devices, shares, counters and constraint states of one search on one node.

    Attributes:
        matcher: what says which devices suit which requests.
        taken_by: device -> indices of the claims that it is being allocated for, one at least.
        shares: device -> the shares of it that are being allocated.
        constraint_states: for each claim the states of its constraints.
        results: for each claim the devices that it has got.
    """

    def __init__(
        self, features: Features, claims: Sequence[ClaimRequests], matcher: Matcher
    ) -> None:
        self._features = features
        self.matcher = matcher
        self._stocks: dict[Pool, partitions.CounterStock] = {}
        self.taken_by: dict[DeviceUse, list[int]] = {}
        self.shares: dict[DeviceUse, Shares] = {}
        self.constraint_states: list[tuple[State, ...]] = []
        self.results: list[list[DeviceFrame]] = []
        for claim in claims:
            self.constraint_states.append(claim.first_states)
            self.results.append([])

    def is_available(self, request: Request, entry: PoolDevice, claim_index: int) -> bool:
        """Return whether no claim is in the way: with admin access, only the same claim can be."""
        if request.admin_access:
            return claim_index not in self.taken_by.get(entry.use, ())
        return not entry.use.held and entry.use not in self.taken_by

    def is_kept_by_shares(self, request: Request, entry: PoolDevice) -> bool:
        """Return whether shares are in the way of a device that is not shared any more."""
        return (
            self.matcher.rules.shares_keep_device
            and entry.use.shares > 0
            and not entry.shareable
            and not request.admin_access
        )

    def take_plain(self, frame: DeviceFrame, entry: PoolDevice, *, must: bool) -> bool:
        """Give as `take` does a device that only the claim's constraints can forbid (`PLAIN`)."""
        frame.entry = entry
        if frame.request.constraints:
            if not self._admit(frame, must=must):
                return False
            if frame.states is not None:
                self._swap_states(frame)
        claim_index, use = frame.claim_index, entry.use
        if use in self.taken_by:
            self.taken_by[use].append(claim_index)
        else:
            self.taken_by[use] = [claim_index]
        self.results[claim_index].append(frame)
        return True

    def take(self, frame: DeviceFrame, entry: PoolDevice, pool: Pool, *, must: bool) -> bool:
        """Give the device to the frame's request; return False where a rule forbids it.

        The caller has checked that it suits the request and is available. The order of the checks
        is upstream's.

        Args:
            pool: its pool, for counters and groups.
            must: whether the request needs exactly this device (allocationMode All): then a
                constraint in the way is an error.

        Raises:
            AllocationError: a constraint forbids what must be, or a derived attribute cannot be
                computed.
        """
        frame.entry = entry
        use, request = entry.use, frame.request
        consumption = entry.facts.consumptions.get(request.capacity_kind)
        if consumption is None:
            consumption = self.matcher.compute_consumption(request, entry)
            assert consumption is not None  # It suits the request.
        shares = self.shares.get(use)
        if shares is None and not use.capacity:
            fitting = consumption.fits_alone
        else:
            taken = _NOTHING if shares is None else shares.amounts
            fitting = capacity_suffices(consumption, use.capacity, taken)
        if not fitting and not must:
            return False
        if entry.draws or entry.device.consumes_counters:
            further = entry.shareable and (use.shares > 0 or bool(shares and shares.count))
            if not further and not self._charge(frame, pool):
                return False
        if request.constraints:
            try:
                admitted = self._admit(frame, must=must)
            except AllocationError:
                self._uncharge(frame)
                raise
            if not admitted:
                self._uncharge(frame)
                return False
        if not fitting:  # Only now: with `must` a constraint in the way is an error before this.
            frame.states = None
            self._uncharge(frame)
            return False
        if entry.shareable:
            frame.consumption = consumption
            if shares is None:
                self.shares[use] = Shares(1, dict(consumption.amounts))
            else:
                _add_share(shares, consumption, 1)
        else:
            self.taken_by.setdefault(use, []).append(frame.claim_index)
        if frame.states is not None:
            self._swap_states(frame)
        self.results[frame.claim_index].append(frame)
        return True

    def give_back(self, frame: DeviceFrame) -> None:
        """Undo `take` for the device that the claim got last."""
        use = frame.entry.use
        self.results[frame.claim_index].pop()
        if frame.states is not None:
            self.constraint_states[frame.claim_index] = frame.states
            frame.states = None
        if frame.consumption is not None:
            _add_share(self.shares[use], frame.consumption, -1)
            frame.consumption = None
        else:
            users = self.taken_by[use]
            users.pop()
            if not users:
                del self.taken_by[use]
        self._uncharge(frame)

    def stock_of(self, pool: Pool) -> partitions.CounterStock:
        """Return the remaining counters of a pool, the same object during the search."""
        stock = self._stocks.get(pool)
        if stock is None:
            with_groups = self._features.compatibility_groups
            stock = self._stocks[pool] = partitions.CounterStock(pool, with_groups=with_groups)
        return stock

    def shared_state(self) -> Hashable:
        """Return a key of the counters and groups of all pools that the search has drawn on."""
        return frozenset(stock.key for stock in self._stocks.values())

    def _swap_states(self, frame: DeviceFrame) -> None:
        """Put the states in the device into force, and keep there those that they replace."""
        states_before = self.constraint_states[frame.claim_index]
        assert frame.states is not None
        self.constraint_states[frame.claim_index] = frame.states
        frame.states = states_before

    def _admit(self, frame: DeviceFrame, *, must: bool) -> bool:
        """Return whether the constraints let the device in; what changes is left in its states."""
        request, entry = frame.request, frame.entry
        states = self.constraint_states[frame.claim_index]
        changed: list[State] | None = None
        for index, constraint in request.constraints:
            try:
                values = self.matcher.attributes.values_to_admit(request, entry, constraint)
            except AllocationError as error:
                # Of upstream's implementations the stable one says whose request it was.
                if self.matcher.rules.reads_inner_types and self._features.are_stable:
                    raise AllocationError(f"{request.context}: {error}") from None
                raise
            state = constraint.admit(states[index], values)
            if state is states[index] and state is not None:
                continue
            if state is None:
                if must:
                    raise AllocationError(
                        f"{request.context}: cannot add device {entry.id} because a claim "
                        "constraint would not be satisfied"
                    )
                return False
            if changed is None:
                changed = list(states)
            changed[index] = state
        if changed is not None:
            frame.states = tuple(changed)
        return True

    def _charge(self, frame: DeviceFrame, pool: Pool) -> bool:
        """Take the device's counters and join its groups; return False, with nothing changed."""
        stock = self._stocks.get(pool) or self.stock_of(pool)
        before = stock.take(frame.entry)
        if before is None:
            return False
        frame.charged = stock, before
        return True

    def _uncharge(self, frame: DeviceFrame) -> None:
        if frame.charged is not None:
            stock, before = frame.charged
            stock.go_back(before)
            frame.charged = None


def _add_share(shares: Shares, consumption: Consumption, sign: int) -> None:
    """Add a share (sign 1), or take it back (-1)."""
    shares.count += sign
    for name, amount in consumption.amounts.items():
        shares.amounts[name] = shares.amounts.get(name, 0) + sign * amount
