"""The devices that the search has given out, and the last checks before it gives out one more.

Everything that a decision of the search changes is in here, so that one call takes it back, and so
that two moments of a search can be recognised as equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.cluster.state import DeviceUse
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.matching.matcher import Matcher
from reference_allocator.matching.resolved import ClaimRequests, Request, TakenDevice
from reference_allocator.rules.capacity import Consumption, capacity_suffices
from reference_allocator.rules.constraints import State
from reference_allocator.search import partitions

_NOTHING: Final[Mapping[str, int]] = {}


class Usage:
    """The devices, shares, capacity, counters and constraint states of one search on one node.

    Attributes:
        matcher: what says which devices suit which requests.
        taken_by: device -> indices of the claims that it is being allocated for.
        shares: device -> how many shares of it are being allocated.
        capacity: device -> capacity name -> amount being allocated.
        groups: pool and counter set -> compatibility groups.
        constraint_states: for each claim the states of its constraints.
        results: for each claim the devices that it has got.
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
        self.results: list[list[TakenDevice]] = []
        for claim in claims:
            self.constraint_states.append((None,) * len(claim.constraints))
            self.results.append([])

    def in_use(self, entry: PoolDevice) -> bool:
        """Return whether a claim, allocated or being allocated, has the device for itself."""
        return bool(entry.use.held or self.taken_by.get(entry.use))

    def is_available(self, request: Request, entry: PoolDevice, claim_index: int) -> bool:
        """Return whether no claim is in the way: with admin access, only the same claim can be."""
        if request.admin_access:
            return claim_index not in self.taken_by.get(entry.use, ())
        return not self.in_use(entry)

    def is_kept_by_shares(self, request: Request, entry: PoolDevice) -> bool:
        """Return whether shares are in the way of a device that is not shared any more."""
        return (
            self.matcher.rules.shares_keep_device
            and entry.use.shares > 0
            and not entry.shareable
            and not request.admin_access
        )

    def take_plain(
        self, request: Request, entry: PoolDevice, claim_index: int, *, must: bool
    ) -> TakenDevice | None:
        """Give as `take` does a device that only the claim's constraints can forbid (`PLAIN`)."""
        taken_device = TakenDevice(request, entry, claim_index)
        if request.constraints:
            if not self._admit(taken_device, must=must):
                return None
            self._swap_states(taken_device)
        users = self.taken_by.get(entry.use)
        if users is None:
            self.taken_by[entry.use] = [claim_index]
        else:
            users.append(claim_index)
        self.results[claim_index].append(taken_device)
        return taken_device

    def take(
        self, request: Request, entry: PoolDevice, pool: Pool, claim_index: int, *, must: bool
    ) -> TakenDevice | None:
        """Give the device to the request; return None where a rule forbids it.

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
        use, consumption = entry.use, self.matcher.compute_consumption(request, entry)
        assert consumption is not None  # It suits the request.
        fitting = capacity_suffices(consumption, use.capacity, self.capacity.get(use) or _NOTHING)
        if not fitting and not must:
            return None
        taken_device = TakenDevice(request, entry, claim_index)
        if entry.draws or entry.device.consumes_counters:
            further = entry.shareable and (use.shares > 0 or self.shares.get(use, 0) > 0)
            if not further and not self._charge(taken_device, pool):
                return None
        if request.constraints:
            try:
                admitted = self._admit(taken_device, must=must)
            except AllocationError:
                self._uncharge(taken_device)
                raise
            if not admitted:
                self._uncharge(taken_device)
                return None
        if not fitting:  # Only now: with `must` a constraint in the way is an error before this.
            self._uncharge(taken_device)
            return None
        if entry.shareable:
            taken_device.consumption = consumption
            self.shares[use] = self.shares.get(use, 0) + 1
            self._consume(use, consumption, 1)
        else:
            self.taken_by.setdefault(use, []).append(claim_index)
        if taken_device.states is not None:
            self._swap_states(taken_device)
        self.results[claim_index].append(taken_device)
        return taken_device

    def give_back(self, taken_device: TakenDevice) -> None:
        """Undo `take` for the device that the claim got last."""
        use = taken_device.entry.use
        self.results[taken_device.claim_index].pop()
        if taken_device.states is not None:
            self.constraint_states[taken_device.claim_index] = taken_device.states
        if taken_device.consumption is not None:
            self._consume(use, taken_device.consumption, -1)
            self.shares[use] -= 1
        else:
            self.taken_by[use].pop()
        self._uncharge(taken_device)

    def stock_of(self, pool: Pool) -> partitions.CounterStock:
        """Return the remaining counters of a pool, the same object during the search."""
        stock = self._stocks.get(pool)
        if stock is None:
            stock = self._stocks[pool] = partitions.CounterStock(pool)
        return stock

    def shared_state(self) -> Hashable:
        """Return a key of the counters and groups of all pools that the search has drawn on."""
        counters = tuple((id(pool), stock.remainder) for pool, stock in self._stocks.items())
        return frozenset(counters), frozenset(self.groups.items())

    def _swap_states(self, taken_device: TakenDevice) -> None:
        """Put the states in the device into force, and keep there those that they replace."""
        states_before = self.constraint_states[taken_device.claim_index]
        assert taken_device.states is not None
        self.constraint_states[taken_device.claim_index] = taken_device.states
        taken_device.states = states_before

    def _admit(self, taken_device: TakenDevice, *, must: bool) -> bool:
        """Return whether the constraints let the device in; the new states are left in it."""
        request, entry = taken_device.request, taken_device.entry
        states = list(self.constraint_states[taken_device.claim_index])
        for index, constraint in request.constraints:
            try:
                values = self.matcher.attributes.values_to_admit(request, entry, constraint)
            except AllocationError as error:
                # Of upstream's implementations the stable one says whose request it was.
                if self.matcher.rules.reads_inner_types and self._features.are_stable:
                    raise AllocationError(f"{request.context}: {error}") from None
                raise
            state = constraint.admit(states[index], values)
            if state is None:
                if must:
                    raise AllocationError(
                        f"{request.context}: cannot add device {entry.id} because a claim "
                        "constraint would not be satisfied"
                    )
                return False
            states[index] = state
        taken_device.states = tuple(states)
        return True

    def _charge(self, taken_device: TakenDevice, pool: Pool) -> bool:
        """Take the device's counters and join its groups; return False, with nothing changed."""
        if self._features.compatibility_groups and not self._join(taken_device, pool):
            return False
        if not self.stock_of(pool).take(taken_device.entry):
            self._leave(taken_device)
            return False
        taken_device.pool = pool
        return True

    def _uncharge(self, taken_device: TakenDevice) -> None:
        if taken_device.pool is not None:
            self._stocks[taken_device.pool].give_back(taken_device.entry)
            self._leave(taken_device)

    def _join(self, taken_device: TakenDevice, pool: Pool) -> bool:
        """Join the groups of the device's counter sets; return False, with nothing changed."""
        baseline = self._group_baselines.get(pool)
        if baseline is None:
            all_devices = (*pool.devices, *pool.other_devices)
            in_use = (item.device for item in all_devices if item.use.used)
            baseline = self._group_baselines[pool] = partitions.groups_in_use(in_use)
        taken_device.groups = []
        for consumption in taken_device.entry.device.consumes_counters:
            key = (pool, consumption.counter_set)
            current = self.groups.get(key, baseline.get(consumption.counter_set))
            groups = partitions.groups_of(consumption)
            if not partitions.admits_groups(current, groups):
                self._leave(taken_device)
                return False
            taken_device.groups.append((key, current))
            self.groups[key] = partitions.join_groups(current, groups)
        return True

    def _leave(self, taken_device: TakenDevice) -> None:
        for key, groups in reversed(taken_device.groups or ()):
            self.groups[key] = groups

    def _consume(self, use: DeviceUse, consumption: Consumption, sign: int) -> None:
        """Add what is consumed (sign 1), or take it back (-1)."""
        used = self.capacity.get(use)
        if used is None:
            self.capacity[use] = dict(consumption.amounts)
            return
        for name, amount in consumption.amounts.items():
            used[name] = used.get(name, 0) + sign * amount
