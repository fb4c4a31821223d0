"""The devices that the search has given out, and the last checks before it gives out one more.

Everything that a decision of the search changes is in here, so that one call takes it back, and so
that two moments of a search can be recognised as equal.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.cluster.state import DeviceUse
from reference_allocator.errors import AllocationError
from reference_allocator.matching.matcher import Matcher
from reference_allocator.matching.resolved import Request
from reference_allocator.rules.capacity import Consumption, capacity_suffices
from reference_allocator.rules.constraints import State
from reference_allocator.search import partitions
from reference_allocator.search.frames import NOTHING_CHARGED, DeviceFrame, Shares, Undo

_NO_SHARES: Final[Shares] = (0, {})


class Usage:
    """The devices, shares, counters and constraint states of one search on one node.

    Whoever takes a device for a claim asks the rules that are in the way (`charge`, `constrain`),
    and puts it into `taken_by` if it cannot be shared.

    Attributes:
        matcher: what says which devices suit which requests.
        taken_by: device -> indices of the claims that it is being allocated for, one at least.
        shares: device -> the shares of it that are being allocated, one at least.
        constraint_states: claim index -> the states of its constraints; `Request.first_states`
            where no device was let in yet.
    """

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self._stocks: dict[Pool, partitions.CounterStock] = {}
        self.taken_by: dict[DeviceUse, tuple[int, ...]] = {}
        self.shares: dict[DeviceUse, Shares] = {}
        self.constraint_states: dict[int, tuple[State, ...]] = {}

    def begin(self) -> None:
        """Begin another search: nothing is given out."""
        self.taken_by.clear()
        if self._stocks:
            self._stocks.clear()
        if self.shares:
            self.shares.clear()
        if self.constraint_states:
            self.constraint_states.clear()

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

    def constrain(self, claim_index: int, request: Request, entry: PoolDevice) -> Undo | None:
        """Do as `charge` for a device that only the claim's constraints can forbid (`PLAIN`)."""
        states = self.constraint_states.get(claim_index, request.first_states)
        admitted = self._admit(states, request, entry)
        if admitted is None:
            return None
        if admitted is states:
            return NOTHING_CHARGED
        self.constraint_states[claim_index] = admitted
        return None, None, states, None

    def charge(
        self, claim_index: int, request: Request, entry: PoolDevice, pool: Pool
    ) -> Undo | None:
        """Charge a device for a request; return how to give it back, None where a rule forbids it.

        The caller has checked that it suits the request and is available. The order of the checks
        is upstream's. A request for all devices needs exactly this one: then a constraint in the
        way is an error.

        Args:
            pool: its pool, for counters and groups.

        Raises:
            AllocationError: a constraint forbids what must be, or a derived attribute cannot be
                computed.
        """
        use = entry.use
        facts = entry.facts
        consumption = None if facts is None else facts.consumptions.get(request.capacity_kind)
        if consumption is None:
            consumption = self.matcher.compute_consumption(request, entry)
            assert consumption is not None  # It suits the request.
        shares = self.shares.get(use)
        if shares is None and not use.capacity:
            fitting = consumption.fits_alone
        else:
            fitting = capacity_suffices(consumption, use.capacity, (shares or _NO_SHARES)[1])
        if not fitting and request.all_devices is None:
            return None
        charged = None
        if (entry.draws or entry.device.consumes_counters) and not (
            entry.shareable and (use.shares or shares is not None)  # A further share draws nothing.
        ):
            stock = self._stocks.get(pool) or self.stock_of(pool)
            before = stock.take(entry)
            if before is None:
                return None
            charged = stock, before
        states: tuple[State, ...] = ()
        admitted: tuple[State, ...] | None = states
        if request.constraints:
            states = self.constraint_states.get(claim_index, request.first_states)
            try:
                admitted = self._admit(states, request, entry)
            except AllocationError:
                _uncharge(charged)
                raise
        # Only now: for all devices a constraint in the way is an error before this.
        if admitted is None or not fitting:
            _uncharge(charged)
            return None
        states_before = None
        if admitted is not states:
            self.constraint_states[claim_index] = admitted
            states_before = states
        if entry.shareable:
            self.shares[use] = _add_share(shares, consumption)
            return consumption, shares, states_before, charged
        return None, None, states_before, charged

    def give_back(self, frame: DeviceFrame) -> None:
        """Take back from a claim the device that it got last."""
        claim_index, _, _, _, _, entry, (consumption, shares, states, charged), _ = frame
        if states is not None:
            self.constraint_states[claim_index] = states
        if consumption is None:
            users = self.taken_by.pop(entry.use)
            if len(users) > 1:
                self.taken_by[entry.use] = users[:-1]
        elif shares is None:
            del self.shares[entry.use]
        else:
            self.shares[entry.use] = shares
        _uncharge(charged)

    def stock_of(self, pool: Pool) -> partitions.CounterStock:
        """Return the remaining counters of a pool, the same object during the search."""
        stock = self._stocks.get(pool)
        if stock is None:
            with_groups = self.matcher.features.compatibility_groups
            stock = self._stocks[pool] = partitions.CounterStock(pool, with_groups=with_groups)
        return stock

    def shared_state(self) -> Hashable:
        """Return a key of the counters and groups of all pools that the search has drawn on."""
        return frozenset(stock.key for stock in self._stocks.values())

    def _admit(
        self, states: tuple[State, ...], request: Request, entry: PoolDevice
    ) -> tuple[State, ...] | None:
        """Return the constraints' states with the device; None where one does not let it in."""
        changed: list[State] | None = None
        for index, constraint in request.constraints:
            try:
                values = self.matcher.attributes.values_to_admit(request, entry, constraint)
            except AllocationError as error:
                # Of upstream's implementations the stable one says whose request it was.
                if self.matcher.rules.reads_inner_types and self.matcher.features.are_stable:
                    raise AllocationError(f"{request.context}: {error}") from None
                raise
            state = constraint.admit(states[index], values)
            if state is states[index] and state is not None:
                continue
            if state is None:
                if request.all_devices is not None:
                    raise AllocationError(
                        f"{request.context}: cannot add device {entry.id} because a claim "
                        "constraint would not be satisfied"
                    )
                return None
            if changed is None:
                changed = list(states)
            changed[index] = state
        return states if changed is None else tuple(changed)


def _uncharge(charged: tuple[partitions.CounterStock, partitions.Moment] | None) -> None:
    if charged is not None:
        stock, before = charged
        stock.go_back(before)


def _add_share(shares: Shares | None, consumption: Consumption) -> Shares:
    if shares is None:
        return 1, consumption.amounts
    count, amounts = shares
    more = consumption.amounts.items()
    return count + 1, {**amounts, **{name: amounts.get(name, 0) + item for name, item in more}}
