"""What the search has given out so far, and the last checks before it gives out one device more.

Everything that a decision changes is in here, so that taking it back is one call, and so that two
moments of a search can be recognised as equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.cluster.state import DeviceUse
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.matching.matcher import Matcher
from reference_allocator.matching.resolved import ClaimRequests, Request, Taken
from reference_allocator.rules.capacity import Consumption, fits
from reference_allocator.rules.constraints import State
from reference_allocator.search import partitions

_NOTHING: Final[Mapping[str, int]] = {}


class Usage:
    """Devices, shares, capacity, counters and constraint states of one search on one node.

    Attributes:
        taken_by: device -> indices of the claims that it is being allocated for.
        shares: device -> how many shares of it are being allocated.
        capacity: device -> capacity name -> amount being allocated.
        groups: pool and counter set -> compatibility groups.
        constraint_states: for each claim the states of its constraints.
        results: for each claim what it has got.
    """

    def __init__(
        self, features: Features, claims: Sequence[ClaimRequests], matcher: Matcher
    ) -> None:
        self._features = features
        self.matcher = matcher
        self._stocks: dict[Pool, partitions.CounterStock] = {}
        self._group_baselines: dict[Pool, dict[str, frozenset[str]]] = {}
        self.taken_by: dict[DeviceUse, list[int]] = {}
        self.shares: dict[DeviceUse, int] = {}
        self.capacity: dict[DeviceUse, dict[str, int]] = {}
        self.groups: dict[tuple[Pool, str], partitions.Groups] = {}
        self.constraint_states: list[tuple[State, ...]] = []
        self.results: list[list[Taken]] = []
        for claim in claims:
            self.constraint_states.append((None,) * len(claim.constraints))
            self.results.append([])

    def in_use(self, entry: PoolDevice) -> bool:
        """Whether a claim, allocated or being allocated, has the device for itself."""
        return bool(entry.use.held or self.taken_by.get(entry.use))

    def available(self, request: Request, entry: PoolDevice, claim_index: int) -> bool:
        """Whether nobody is in the way: with admin access, only the same claim can be."""
        if request.admin_access:
            return claim_index not in self.taken_by.get(entry.use, ())
        return not self.in_use(entry)

    def take_plain(
        self, request: Request, entry: PoolDevice, claim_index: int, *, must: bool
    ) -> Taken | None:
        """`take` for a device that only the constraints of the claim can forbid (`PLAIN`)."""
        taken = Taken(request, entry, claim_index)
        if request.constraints:
            if not self._admit(taken, must=must):
                return None
            self._swap_states(taken)
        users = self.taken_by.get(entry.use)
        if users is None:
            self.taken_by[entry.use] = [claim_index]
        else:
            users.append(claim_index)
        self.results[claim_index].append(taken)
        return taken

    def take(
        self, request: Request, entry: PoolDevice, pool: Pool, claim_index: int, *, must: bool
    ) -> Taken | None:
        """Gives the device to the request, or returns None where a rule forbids it.

        The caller has checked that it suits the request and is available. The order of the checks
        is upstream's.

        Args:
            pool: its pool, for counters and groups.
            must: the request needs exactly this device (allocationMode All): then a constraint in
                the way is an error.

        Raises:
            AllocationError: see `must`; or a derived attribute cannot be computed.
        """
        use, consumption = entry.use, self.matcher.consumption(request, entry)
        assert consumption is not None  # It suits the request.
        fitting = fits(consumption, entry.device, use.capacity, self.capacity.get(use) or _NOTHING)
        if not fitting and not must:
            return None
        taken = Taken(request, entry, claim_index)
        if entry.draws or entry.device.consumes_counters:
            further = entry.shareable and (use.shares > 0 or self.shares.get(use, 0) > 0)
            if not further and not self._charge(taken, pool):
                return None
        if request.constraints:
            try:
                admitted = self._admit(taken, must=must)
            except AllocationError:
                self._uncharge(taken)
                raise
            if not admitted:
                self._uncharge(taken)
                return None
        if not fitting:
            self._uncharge(taken)
            return None
        if entry.shareable:
            taken.consumption = consumption
            self.shares[use] = self.shares.get(use, 0) + 1
            self._consume(use, consumption, 1)
        else:
            self.taken_by.setdefault(use, []).append(claim_index)
        if taken.states is not None:
            self._swap_states(taken)
        self.results[claim_index].append(taken)
        return taken

    def give_back(self, taken: Taken) -> None:
        use = taken.entry.use
        self.results[taken.claim_index].pop()
        if taken.states is not None:
            self.constraint_states[taken.claim_index] = taken.states
        if taken.consumption is not None:
            self._consume(use, taken.consumption, -1)
            self.shares[use] -= 1
        else:
            self.taken_by[use].pop()
        self._uncharge(taken)

    def stock(self, pool: Pool) -> partitions.CounterStock:
        stock = self._stocks.get(pool)
        if stock is None:
            stock = self._stocks[pool] = partitions.CounterStock(pool)
        return stock

    def shared_state(self) -> Hashable:
        """Counters and groups of all pools that the search has drawn on."""
        counters = tuple((id(pool), stock.left) for pool, stock in self._stocks.items())
        return frozenset(counters), frozenset(self.groups.items())

    def _swap_states(self, taken: Taken) -> None:
        """The claim's constraints go on from the states that are in `taken`, which keeps theirs."""
        before = self.constraint_states[taken.claim_index]
        assert taken.states is not None
        self.constraint_states[taken.claim_index] = taken.states
        taken.states = before

    def _admit(self, taken: Taken, *, must: bool) -> bool:
        """Whether the constraints let the device in; the new states are left in it."""
        request, entry = taken.request, taken.entry
        states = list(self.constraint_states[taken.claim_index])
        for index, constraint in request.constraints:
            values = self.matcher.attributes.compared(request, entry, constraint)
            state = constraint.admit(states[index], values)
            if state is None:
                if must:
                    raise AllocationError(
                        f"{request.context}: cannot add device {entry.id} because a claim "
                        "constraint would not be satisfied"
                    )
                return False
            states[index] = state
        taken.states = tuple(states)
        return True

    def _charge(self, taken: Taken, pool: Pool) -> bool:
        """Takes the device's counters and joins its groups; else nothing changes."""
        if self._features.compatibility_groups and not self._join(taken, pool):
            return False
        if not self.stock(pool).take(taken.entry):
            self._leave(taken)
            return False
        taken.pool = pool
        return True

    def _uncharge(self, taken: Taken) -> None:
        if taken.pool is not None:
            self._stocks[taken.pool].give_back(taken.entry)
            self._leave(taken)

    def _join(self, taken: Taken, pool: Pool) -> bool:
        """Adds the device to its counter sets' groups; where it does not fit, nothing changes."""
        baseline = self._group_baselines.get(pool)
        if baseline is None:
            known = (*pool.devices, *pool.other_devices)
            in_use = (item.device for item in known if item.use.used)
            baseline = self._group_baselines[pool] = partitions.groups_in_use(in_use)
        taken.groups = []
        for consumption in taken.entry.device.consumes_counters:
            key = (pool, consumption.counter_set)
            current = self.groups.get(key, baseline.get(consumption.counter_set))
            groups = partitions.groups_of(consumption)
            if not partitions.admits(current, groups):
                self._leave(taken)
                return False
            taken.groups.append((key, current))
            self.groups[key] = partitions.join(current, groups)
        return True

    def _leave(self, taken: Taken) -> None:
        for key, groups in reversed(taken.groups or ()):
            self.groups[key] = groups

    def _consume(self, use: DeviceUse, consumption: Consumption, sign: int) -> None:
        """Adds what is consumed, or takes it back (-1), which comes later."""
        used = self.capacity.get(use)
        if used is None:
            self.capacity[use] = dict(consumption.amounts)
            return
        for name, amount in consumption.amounts.items():
            used[name] = used.get(name, 0) + sign * amount
