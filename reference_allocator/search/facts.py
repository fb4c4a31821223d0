"""What can be known about candidates before any is taken: the ground on which subtrees are cut.

For every request and every candidate it is settled whether the one suits the other apart from what
the search gives out, and candidates that no request can tell apart are put into one class. Where a
rule could raise an error, or depends on the order of devices, there are no facts and nothing is
cut: an error is an answer, and must be found where upstream finds it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.cluster.views import NodeView
from reference_allocator.errors import AllocationError
from reference_allocator.matching.matcher import UNSUITABLE
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.rules.constraints import Key
from reference_allocator.search.usage import Usage

Values = dict[int, frozenset[Key]]
"""Position of a candidate -> the values that a constraint compares."""


@dataclass(slots=True, eq=False)
class RequestFacts:
    """What is known about one request (or alternative), and about all that are like it.

    Attributes:
        positions: the candidates that suit it, ascending.
        group: the same number for all requests with the same candidates.
        exclusive: none of the candidates can be shared, and admin access is not asked for.
        values: constraint index -> values; only constraints that the request is under.
    """

    positions: tuple[int, ...]
    group: int
    exclusive: bool
    values: dict[int, Values] = field(default_factory=dict)


class CandidateFacts:
    """Facts about the candidates of one search.

    Attributes:
        of_request: request -> what suits it; requests for all devices are left out.
        class_of: position -> number of the class of candidates that are alike.
        classes: how many classes there are.
        pools: position -> the candidate's pool.
        has_admin: a request asks for admin access.
    """

    def __init__(self) -> None:
        self.of_request: dict[Request, RequestFacts] = {}
        self.class_of: list[int] = []
        self.classes = 0
        self.pools: tuple[Pool, ...] = ()
        self.has_admin = False
        self._known: dict[Hashable, RequestFacts] = {}
        self._features: list[list[Hashable]] = []

    @classmethod
    def gather(
        cls, claims: Sequence[ClaimRequests], view: NodeView, usage: Usage
    ) -> CandidateFacts | None:
        """The facts, or None where an error or an order-dependent rule could be reached."""
        facts = cls()
        candidates = view.candidates
        facts.pools = view.pool_at
        if any(amount < 0 for entry in candidates for _, amount in entry.draws):
            return None
        facts._features = [
            _own_features(entry, pool) for entry, pool in zip(candidates, view.pool_at, strict=True)
        ]
        try:
            for claim in claims:
                for request in (item for options in claim.requests for item in options):
                    if not facts._add(request, candidates, usage):
                        return None
        except AllocationError:
            return None
        groups: dict[tuple[int, ...], int] = {}
        for item in facts._known.values():
            item.group = groups.setdefault(item.positions, len(groups))
        known: dict[tuple[Hashable, ...], int] = {}
        facts.class_of = [
            known.setdefault(tuple(features), len(known)) for features in facts._features
        ]
        facts.classes = len(known)
        return facts

    def _add(self, request: Request, candidates: Sequence[PoolDevice], usage: Usage) -> bool:
        """Takes up one request; False where nothing may be cut because of it."""
        self.has_admin = self.has_admin or request.admin_access
        if request.all_devices is not None:
            members = set(request.all_devices)
            for entry, item in zip(candidates, self._features, strict=True):
                item.append(entry in members)
            return not request.constraints  # A constraint in the way of All is an error.
        alike = (
            request.kind,
            request.admin_access,
            request.constraints,
            tuple(sorted(request.derived.items())),
        )
        facts = self._known.get(alike)
        if facts is None:
            facts = self._request_facts(request, candidates, usage)
            if facts is None:
                return False
            self._known[alike] = facts
        self.of_request[request] = facts
        return True

    def _request_facts(
        self, request: Request, candidates: Sequence[PoolDevice], usage: Usage
    ) -> RequestFacts | None:
        matcher = usage.matcher
        positions: list[int] = []
        values: dict[int, Values] = {index: {} for index, _ in request.constraints}
        for position, entry in enumerate(candidates):
            features = self._features[position]
            # In an order that reaches no error that the search would not reach.
            if (not request.admin_access and entry.use.held) or (
                matcher.suitability(request, entry) == UNSUITABLE
            ):
                features.append(None)
                continue
            compared: list[frozenset[Key]] = []
            for _, constraint in request.constraints:
                value = matcher.attributes.compared(request, entry, constraint)
                if value is None:
                    break
                if None in value:
                    return None  # Let in as the first device only.
                compared.append(value)
            else:
                positions.append(position)
                for (index, _), value in zip(request.constraints, compared, strict=True):
                    values[index][position] = value
                taken = matcher.consumption(request, entry)
                amounts = None if taken is None else tuple(sorted(taken.amounts.items()))
                features.append((amounts, tuple(compared)))
                continue
            features.append(None)
        exclusive = not request.admin_access and not any(
            candidates[position].shareable for position in positions
        )
        return RequestFacts(tuple(positions), 0, exclusive, values)


def _own_features(entry: PoolDevice, pool: Pool) -> list[Hashable]:
    """What sets a device apart from others, whoever asks."""
    device = entry.device
    drawn: Hashable = None
    if device.consumes_counters:
        drawn = (
            id(pool),
            tuple(sorted(entry.draws)),
            tuple(
                (item.counter_set, item.compatibility_groups) for item in device.consumes_counters
            ),
        )
    capacity = tuple(sorted((name, item.value.nanos) for name, item in device.capacity.items()))
    use = entry.use
    in_use = (bool(use.held), bool(use.shares), tuple(sorted(use.capacity.items())))
    return [drawn, capacity, entry.shareable, in_use]
