"""What the search has given out so far, and the last checks before it gives out one device more.

Everything that a decision changes is in here, so that taking it back is one call, and so that two
moments of a search can be recognised as equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from reference_allocator.api import Attribute, DeviceId, Node
from reference_allocator.capacity import CapacityError, Consumption, fits, resolve
from reference_allocator.constraints import VIOLATED, State
from reference_allocator.counters import CounterStock
from reference_allocator.derived import AttributeSource
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.groups import Groups, admits, groups_in_use, groups_of, join
from reference_allocator.pools import Pool, PoolDevice
from reference_allocator.requests import ClaimRequests, Request, Taken
from reference_allocator.state import AllocatedState
from reference_allocator.taints import blocking_taint

_OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
_NOTHING: dict[str, int] = {}
NO_CONSUMPTION = Consumption({}, {})


@dataclass(frozen=True, slots=True)
class Undo:
    """How to take one device back."""

    taken: Taken
    claim_index: int
    constraint_states: tuple[State, ...]
    stock: CounterStock | None
    groups: tuple[tuple[tuple[Pool, str], Groups], ...]


class Usage:
    """Devices, shares, capacity, counters and constraint states of one search on one node."""

    def __init__(
        self,
        features: Features,
        state: AllocatedState,
        node: Node,
        claims: Sequence[ClaimRequests],
        attributes: AttributeSource,
    ) -> None:
        self._features = features
        self._state = state
        self._attributes = attributes
        self._claims = claims
        self._node_has_operations = _OPTIONAL_NODE_OPERATIONS in node.declared_features
        self._consumptions: dict[tuple[Request, PoolDevice], Consumption | None] = {}
        self._stocks: dict[Pool, CounterStock] = {}
        self._group_baselines: dict[Pool, dict[str, frozenset[str]]] = {}
        self.taken_by: dict[DeviceId, list[int]] = {}
        """Device -> indices of the claims that it is being allocated for."""
        self.shares: dict[DeviceId, int] = {}
        """Device -> how many shares of it are being allocated."""
        self.capacity: dict[DeviceId, dict[str, int]] = {}
        self.groups: dict[tuple[Pool, str], Groups] = {}
        self.constraint_states: list[tuple[State, ...]] = [
            (None,) * len(claim.constraints) for claim in claims
        ]
        self.results: list[list[Taken]] = [[] for _ in claims]

    def in_use(self, device: DeviceId) -> bool:
        """Whether a claim, allocated or being allocated, has the device for itself."""
        return device in self._state.devices or bool(self.taken_by.get(device))

    def shareable(self, entry: PoolDevice) -> bool:
        """Whether several claims can have a share of the device."""
        return self._features.consumable_capacity and bool(entry.device.allow_multiple_allocations)

    def available(self, request: Request, entry: PoolDevice, claim_index: int) -> bool:
        """Whether nobody is in the way: with admin access, only the same claim can be."""
        if request.admin_access:
            return claim_index not in self.taken_by.get(entry.id, ())
        return not self.in_use(entry.id)

    def has_capacity(self, request: Request, entry: PoolDevice) -> bool:
        """Whether the device's capacity is enough for the request, now.

        Raises:
            AllocationError: the request cannot be computed for this device.
        """
        if not self._features.consumable_capacity:
            return True
        consumption = self.consumption(request, entry)
        return consumption is not None and fits(
            consumption,
            entry.device,
            self._state.capacity.get(entry.id, _NOTHING),
            self.capacity.get(entry.id, _NOTHING),
        )

    def consumption(self, request: Request, entry: PoolDevice) -> Consumption | None:
        """What the request takes of the device; None where the device does not suit it.

        Raises:
            AllocationError: it cannot be computed.
        """
        if not self._features.consumable_capacity:
            return NO_CONSUMPTION
        key = (request, entry)
        if key not in self._consumptions:
            try:
                self._consumptions[key] = resolve(
                    request.spec.capacity, entry.device, self._features
                )
            except CapacityError as error:
                raise AllocationError(
                    f"{request.context}: checking capacity for device {entry.id}: {error}"
                ) from None
        return self._consumptions[key]

    def take(
        self, request: Request, entry: PoolDevice, pool: Pool, claim_index: int, *, must: bool
    ) -> Undo | None:
        """Gives the device to the request, or returns None where a rule forbids it.

        The caller has checked selectors. The order of the checks is upstream's.

        Args:
            request: who gets it.
            entry: the device.
            pool: its pool, for counters and groups.
            claim_index: which claim the request is of.
            must: the request needs exactly this device (allocationMode All): then a constraint in
                the way is an error.

        Raises:
            AllocationError: see `must`; or a derived attribute cannot be computed.
        """
        if not self.available(request, entry, claim_index):
            return None
        if not self.supported(entry):
            return None
        shareable = self.shareable(entry)
        charged = bool(entry.device.consumes_counters) and not (
            shareable and (entry.id in self._state.shared or self.shares.get(entry.id, 0) > 0)
        )
        groups: list[tuple[tuple[Pool, str], Groups]] = []
        if charged and self._features.compatibility_groups and not self._join(entry, pool, groups):
            return None
        stock = self.stock(pool) if charged else None
        if stock is not None and not stock.take(entry.device):
            self._leave(groups)
            return None
        try:
            states = self._admit(request, entry, claim_index, must=must)
        except AllocationError:
            self._revert(entry, stock, groups)
            raise
        if states is None or (must and not self.has_capacity(request, entry)):
            self._revert(entry, stock, groups)
            return None
        consumption: Consumption | None = None
        if shareable:
            consumption = self.consumption(request, entry)
            assert consumption is not None  # has_capacity has been checked
            self.shares[entry.id] = self.shares.get(entry.id, 0) + 1
            self._consume(entry.id, consumption, 1)
        else:
            self.taken_by.setdefault(entry.id, []).append(claim_index)
        taken = Taken(request, entry, consumption)
        undo = Undo(
            taken,
            claim_index,
            self.constraint_states[claim_index],
            stock,
            tuple(groups),
        )
        self.constraint_states[claim_index] = states
        self.results[claim_index].append(taken)
        return undo

    def give_back(self, undo: Undo) -> None:
        """Undoes the latest `take`."""
        device = undo.taken.id
        self.results[undo.claim_index].pop()
        self.constraint_states[undo.claim_index] = undo.constraint_states
        if undo.taken.consumption is not None:
            self._consume(device, undo.taken.consumption, -1)
            self.shares[device] -= 1
        else:
            self.taken_by[device].pop()
        self._revert(undo.taken.entry, undo.stock, undo.groups)

    # What tells moments of a search apart (reference_allocator.pruning).

    def held(self, device: DeviceId) -> bool:
        """Whether an allocated claim has the device for itself."""
        return device in self._state.devices

    def state_of(self, device: DeviceId) -> Hashable:
        """How far the device was in use before the search."""
        used = self._state.capacity.get(device, _NOTHING)
        return (
            device in self._state.devices,
            device in self._state.shared,
            tuple(sorted(used.items())),
        )

    def touched_devices(self) -> Iterator[DeviceId]:
        """Devices that the search has taken, or had taken and given back."""
        yield from self.taken_by
        yield from self.shares

    def shared_state(self) -> Hashable:
        """Counters and groups of all pools that the search has drawn on."""
        counters = tuple(
            (id(pool), tuple(stock.left.values())) for pool, stock in self._stocks.items()
        )
        return frozenset(counters), frozenset(self.groups.items())

    def attribute(self, request: Request, entry: PoolDevice, name: str) -> Attribute | None:
        """The attribute that a constraint on the request compares.

        Raises:
            AllocationError: a derived attribute cannot be computed.
        """
        return self._attributes.attribute(request, entry, name)

    def supported(self, entry: PoolDevice) -> bool:
        """Whether features and node can handle the device at all."""
        if entry.slice.skip_node_operations and not (
            self._features.optional_node_operations and self._node_has_operations
        ):
            return False
        return self._features.partitionable_devices or not entry.device.consumes_counters

    def tainted(self, request: Request, entry: PoolDevice) -> bool:
        """Whether a taint of the device keeps the request off it."""
        return (
            self._features.device_taints
            and blocking_taint(entry.device.taints, request.spec.tolerations) is not None
        )

    def _admit(
        self, request: Request, entry: PoolDevice, claim_index: int, *, must: bool
    ) -> tuple[State, ...] | None:
        if self.tainted(request, entry):
            return None
        before = self.constraint_states[claim_index]
        constraints = self._claims[claim_index].constraints
        after: list[State] = []
        for constraint, state in zip(constraints, before, strict=True):
            if not constraint.applies_to(request.spec.name, request.parent):
                after.append(state)
                continue
            attribute = self.attribute(request, entry, constraint.attribute)
            admitted = constraint.admit(state, attribute)
            if admitted == VIOLATED:
                if must:
                    raise AllocationError(
                        f"{request.context}: cannot add device {entry.id} because a claim "
                        "constraint would not be satisfied"
                    )
                return None
            assert isinstance(admitted, frozenset)
            after.append(admitted)
        return tuple(after)

    def stock(self, pool: Pool) -> CounterStock:
        """What is left of the pool's counters."""
        stock = self._stocks.get(pool)
        if stock is None:
            stock = self._stocks[pool] = CounterStock(pool, self._state)
        return stock

    def _join(
        self, entry: PoolDevice, pool: Pool, saved: list[tuple[tuple[Pool, str], Groups]]
    ) -> bool:
        """Adds the device to its counter sets' groups; where it does not fit, nothing changes."""
        baseline = self._group_baselines.get(pool)
        if baseline is None:
            known = (*pool.devices, *pool.other_devices)
            in_use = (item.device for item in known if self._state.uses(item.id))
            baseline = self._group_baselines[pool] = groups_in_use(in_use)
        for consumption in entry.device.consumes_counters:
            key = (pool, consumption.counter_set)
            current = self.groups.get(key, baseline.get(consumption.counter_set))
            groups = groups_of(consumption)
            if not admits(current, groups):
                self._leave(saved)
                saved.clear()
                return False
            saved.append((key, current))
            self.groups[key] = join(current, groups)
        return True

    def _leave(self, saved: Sequence[tuple[tuple[Pool, str], Groups]]) -> None:
        for key, groups in reversed(saved):
            self.groups[key] = groups

    def _revert(
        self,
        entry: PoolDevice,
        stock: CounterStock | None,
        groups: Sequence[tuple[tuple[Pool, str], Groups]],
    ) -> None:
        if stock is not None:
            stock.give_back(entry.device)
        self._leave(groups)

    def _consume(self, device: DeviceId, consumption: Consumption, sign: int) -> None:
        used = self.capacity.setdefault(device, {})
        for name, amount in consumption.amounts.items():
            used[name] = used.get(name, 0) + sign * amount
