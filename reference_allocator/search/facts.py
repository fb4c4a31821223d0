"""Facts about candidates before any is taken: the ground on which subtrees are cut.

For every request and every candidate it is settled whether the one suits the other apart from what
the search gives out, and candidates that no request can tell apart are put into one class.

An error (a selector that fails, say) is an answer, and must be found where upstream finds it: it
counts as one more way in which candidates differ, and a request that can end in one is called
fallible. What comes after such a request is never a reason to cut (`Bounds`), what comes before it
is: then the request is not reached.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from reference_allocator.cluster.node import NodeView
from reference_allocator.cluster.pools import Pool, PoolDevice
from reference_allocator.errors import AllocationError
from reference_allocator.matching.matcher import UNSUITABLE
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.rules.constraints import Key
from reference_allocator.search.usage import Usage

Values = dict[int, frozenset[Key]]
"""Position of a candidate -> the values that a constraint compares."""

_ERROR: Final = "error"


@dataclass(slots=True, eq=False)
class RequestFacts:
    """The facts about one request (or alternative), and about all that are like it.

    Attributes:
        positions: the candidates that suit it, ascending.
        group: the same number for all requests with the same candidates.
        exclusive: whether none of the candidates can be shared, and no admin access is asked for.
        fallible: whether a candidate can end the search with an error.
        values: constraint index -> values; only constraints that the request is under.
    """

    positions: tuple[int, ...]
    group: int
    exclusive: bool
    fallible: bool
    values: dict[int, Values] = field(default_factory=dict)


class CandidateFacts:
    """The facts about the candidates of one search.

    Attributes:
        of_request: request -> its facts; requests for all devices are left out.
        fallible: the requests that can end the search with an error.
        class_of: position -> number of the class of candidates that are alike.
        classes: how many classes there are.
        pools: position -> the candidate's pool.
        has_admin: whether a request asks for admin access.
    """

    def __init__(self) -> None:
        self.of_request: dict[Request, RequestFacts] = {}
        self.fallible: set[Request] = set()
        self.class_of: list[int] = []
        self.classes = 0
        self.pools: tuple[Pool, ...] = ()
        self.has_admin = False
        self._in_order = False
        self._facts_of_kind: dict[Hashable, RequestFacts] = {}
        self._features: list[list[Hashable]] = []

    @classmethod
    def gather(
        cls, claims: Sequence[ClaimRequests], view: NodeView, usage: Usage
    ) -> CandidateFacts | None:
        """Gather the facts; return None where nothing may be cut.

        Raises:
            SearchTimeoutError: the deadline passed.
        """
        facts = cls()
        candidates = view.candidates
        facts.pools = tuple([view.pool_of(entry) for entry in candidates])
        # Where a device adds to a counter, more devices may leave more of it: no bound holds.
        if any(amount < 0 for entry in candidates for _, amount in entry.draws):
            return None
        facts._features = [
            _own_features(entry, pool) for entry, pool in zip(candidates, facts.pools, strict=True)
        ]
        for claim in claims:
            for request in (item for options in claim.requests for item in options):
                facts._add_request(request, candidates, usage)
        if facts.fallible and any(claim.may_exceed for claim in claims):
            return None  # "Exceeded" leaves candidates untried, so their order matters for errors.
        facts._classify()
        return facts

    def _classify(self) -> None:
        groups: dict[tuple[int, ...], int] = {}
        for item in self._facts_of_kind.values():
            item.group = groups.setdefault(item.positions, len(groups))
        if self._in_order:
            self.class_of = list(range(len(self._features)))
            self.classes = len(self._features)
            return
        class_numbers: dict[tuple[Hashable, ...], int] = {}
        self.class_of = [
            class_numbers.setdefault(tuple(features), len(class_numbers))
            for features in self._features
        ]
        self.classes = len(class_numbers)

    def _add_request(
        self, request: Request, candidates: Sequence[PoolDevice], usage: Usage
    ) -> None:
        self.has_admin = self.has_admin or request.admin_access
        if request.all_devices is not None:
            index_of = {entry: number for number, entry in enumerate(request.all_devices)}
            for entry, features in zip(candidates, self._features, strict=True):
                # A constraint in the way of All is an error, and which comes first a matter of
                # their order.
                features.append(index_of.get(entry) if request.constraints else entry in index_of)
            if request.constraints:
                self.fallible.add(request)
            return
        alike = (
            request.kind,
            request.admin_access,
            request.constraints,
            tuple(sorted(request.derived.items())),
        )
        facts = self._facts_of_kind.get(alike)
        if facts is None:
            facts = self._facts_of_kind[alike] = self._request_facts(request, candidates, usage)
        if facts.fallible:
            self.fallible.add(request)
        self.of_request[request] = facts

    def _request_facts(
        self, request: Request, candidates: Sequence[PoolDevice], usage: Usage
    ) -> RequestFacts:
        matcher = usage.matcher
        positions: list[int] = []
        fallible = False
        values: dict[int, Values] = {index: {} for index, _ in request.constraints}
        for position, entry in enumerate(candidates):
            features = self._features[position]
            compared: list[frozenset[Key]] = []
            amounts: Hashable = None
            try:
                if (not request.admin_access and entry.use.held) or (
                    matcher.rate_device(request, entry) == UNSUITABLE
                ):
                    features.append(None)
                    continue
                consumption = matcher.compute_consumption(request, entry)
                amounts = (
                    None if consumption is None else tuple(sorted(consumption.amounts.items()))
                )
                for _, constraint in request.constraints:
                    value = matcher.attributes.values_to_admit(request, entry, constraint)
                    if value is None:
                        break
                    compared.append(value)
            except AllocationError:
                fallible = True
                features.append((amounts, tuple(compared), _ERROR))
                continue
            if len(compared) < len(request.constraints):
                features.append(None)
                continue
            features.append((amounts, tuple(compared)))
            positions.append(position)
            for (index, _), value in zip(request.constraints, compared, strict=True):
                values[index][position] = value
                self._in_order = self._in_order or None in value  # Let in as the first device only.
        exclusive = not request.admin_access and not any(
            candidates[position].shareable for position in positions
        )
        return RequestFacts(tuple(positions), 0, exclusive, fallible, values)


def _own_features(entry: PoolDevice, pool: Pool) -> list[Hashable]:
    """Return what sets a device apart from others, whichever request looks at it."""
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
