"""What can be known about candidates before any is taken: the ground on which subtrees are cut.

For every request and every candidate it is settled whether the one suits the other apart from what
the search gives out, and candidates that no request can tell apart are put into one class. Where a
rule could raise an error, or depends on the order of devices, there is no inventory and nothing is
cut: an error is an answer, and must be found where upstream finds it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from reference_allocator.constraints import Key
from reference_allocator.counters import CounterKey, consumption
from reference_allocator.errors import AllocationError
from reference_allocator.pools import Pool, PoolDevice
from reference_allocator.requests import ClaimRequests, Request
from reference_allocator.usage import Usage
from reference_allocator.validate import IsSelected


@dataclass(slots=True, eq=False)
class Suitability:
    """What is known about one request (or alternative).

    Attributes:
        positions: the candidates that suit it, ascending.
        group: the same number for all requests with the same candidates.
        exclusive: none of the candidates can be shared, and admin access is not asked for.
        values: constraint index -> position -> the values that the constraint compares; only
            constraints that the request is under.
    """

    positions: tuple[int, ...]
    group: int
    exclusive: bool
    values: dict[int, dict[int, frozenset[Key]]] = field(default_factory=dict)


class Inventory:
    """Facts about the candidates of one search.

    Attributes:
        suitability: request -> what suits it; requests for all devices are left out.
        class_of: position -> number of the class of candidates that are alike.
        classes: how many classes there are.
        counters: position -> what the candidate draws from its pool's counters.
        has_admin: a request asks for admin access.
    """

    def __init__(self) -> None:
        self.suitability: dict[Request, Suitability] = {}
        self.class_of: list[int] = []
        self.classes = 0
        self.counters: list[tuple[tuple[CounterKey, int], ...]] = []
        self.pools: list[Pool] = []
        self.has_admin = False

    @classmethod
    def take(
        cls,
        claims: Sequence[ClaimRequests],
        candidates: Sequence[PoolDevice],
        pool_of: dict[PoolDevice, Pool],
        usage: Usage,
        is_selected: IsSelected,
    ) -> Inventory | None:
        """The inventory, or None where an error or an order-dependent rule could be reached."""
        inventory = cls()
        features: list[list[Hashable]] = [
            _own_features(entry, pool_of[entry], usage) for entry in candidates
        ]
        inventory.pools = [pool_of[entry] for entry in candidates]
        inventory.counters = [tuple(consumption(entry.device)) for entry in candidates]
        if any(amount < 0 for drawn in inventory.counters for _, amount in drawn):
            return None
        groups: dict[tuple[int, ...], int] = {}
        try:
            for claim in claims:
                for request in (item for options in claim.requests for item in options):
                    if not inventory._add(claim, request, candidates, usage, is_selected, features):
                        return None
        except AllocationError:
            return None
        for suitability in inventory.suitability.values():
            suitability.group = groups.setdefault(suitability.positions, len(groups))
        known: dict[tuple[Hashable, ...], int] = {}
        inventory.class_of = [known.setdefault(tuple(item), len(known)) for item in features]
        inventory.classes = len(known)
        return inventory

    def _add(
        self,
        claim: ClaimRequests,
        request: Request,
        candidates: Sequence[PoolDevice],
        usage: Usage,
        is_selected: IsSelected,
        features: list[list[Hashable]],
    ) -> bool:
        """Takes up one request; False where nothing may be cut because of it."""
        self.has_admin = self.has_admin or request.admin_access
        constraints = [
            (index, constraint)
            for index, constraint in enumerate(claim.constraints)
            if constraint.applies_to(request.spec.name, request.parent)
        ]
        if request.all_devices is not None:
            members = set(request.all_devices)
            for entry, item in zip(candidates, features, strict=True):
                item.append(entry in members)
            return not constraints  # A constraint in the way of All is an error.
        positions: list[int] = []
        values: dict[int, dict[int, frozenset[Key]]] = {index: {} for index, _ in constraints}
        for position, entry in enumerate(candidates):
            suits = _suits(request, entry, usage, is_selected)
            if suits:
                for index, constraint in constraints:
                    attribute = usage.attribute(request, entry, constraint.attribute)
                    compared = None if attribute is None else constraint.values(attribute)
                    if compared is None:
                        suits = False
                    elif None in compared:
                        return False  # Let in as the first device only.
                    else:
                        values[index][position] = compared
            if suits:
                positions.append(position)
                taken = usage.consumption(request, entry)
                amounts = None if taken is None else tuple(sorted(taken.amounts.items()))
                compared_values = tuple(values[index][position] for index, _ in constraints)
                features[position].append((amounts, compared_values))
            else:
                features[position].append(None)
        exclusive = not request.admin_access and not any(
            usage.shareable(candidates[position]) for position in positions
        )
        self.suitability[request] = Suitability(tuple(positions), 0, exclusive, values)
        return True


def _suits(request: Request, entry: PoolDevice, usage: Usage, is_selected: IsSelected) -> bool:
    """Everything but what the search itself gives out, in an order that reaches no new error."""
    if not request.admin_access and usage.held(entry.id):
        return False
    return (
        is_selected(request, entry)
        and usage.consumption(request, entry) is not None
        and usage.supported(entry)
        and not usage.tainted(request, entry)
    )


def _own_features(entry: PoolDevice, pool: Pool, usage: Usage) -> list[Hashable]:
    """What sets a device apart from others, whoever asks."""
    device = entry.device
    drawn: Hashable = None
    if device.consumes_counters:
        drawn = (
            id(pool),
            tuple(sorted(consumption(device))),
            tuple(
                (item.counter_set, item.compatibility_groups) for item in device.consumes_counters
            ),
        )
    capacity = tuple(sorted((name, item.value.nanos) for name, item in device.capacity.items()))
    return [drawn, capacity, usage.shareable(entry), usage.state_of(entry.id)]
