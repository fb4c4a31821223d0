"""The reference as a witness: ``reference_allocator`` seen through the comparison's two questions.

Its search and its checker share no code path of the decision, so that one mistake does not vouch
for itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from conformance.compare.evidence import Obj, ask_reference, key_of, node_named
from reference_allocator.allocator import Allocator
from reference_allocator.api import ResourceClaim, schema
from reference_allocator.api.defaulting import default_claim
from reference_allocator.api.reading import InputError, describe_value
from reference_allocator.checks import check
from reference_allocator.gates import MinorRules
from reference_allocator.snapshot import Snapshot

SEARCH_SECONDS = 30.0
"""For one search; the scheduler itself gives up after 10 s (DRASchedulerFilterTimeout)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of the reference's search for some claims on one node.

    Attributes:
        allocations: ``status.allocation`` of each claim, in order; None if there is no allocation.
        reason: why not; empty otherwise.
        proven: False where the search gave up, or met an error that it meets in one order of slices
            and not in another, so that "none" proves nothing.
        failed: a selector failed on a device, and the scheduler tries no other node.
    """

    allocations: tuple[Obj, ...] | None
    reason: str = ""
    proven: bool = True
    failed: bool = False


class Witness:
    """The reference, as the comparison sees it: two parts that share no search.

    Every method raises UsageError with a JSON path where the snapshot, a claim or an allocation
    has not the form of its kind.
    """

    def allocate(self, snapshot: Obj, claims: Sequence[Obj], node: str) -> Answer:
        """Return what the search would allocate on that node, first fit."""

        def ask() -> Answer:
            read = Snapshot.from_dict(snapshot)
            # A snapshot taken just after the decision has these claims as allocated already.
            own_keys = {key_of(claim) for claim in claims}
            held = tuple(claim for claim in read.allocated if key_of(claim) not in own_keys)
            outcome = Allocator.from_snapshot(replace(read, allocated=held)).allocate(
                node_named(read, node),
                _defaulted(claims),
                deadline=time.monotonic() + SEARCH_SECONDS,
            )
            if outcome.kind == "allocated":
                return Answer(outcome.allocations)
            if outcome.kind == "timeout":
                return Answer(None, f"no answer within {SEARCH_SECONDS:.0f} s", proven=False)
            reason = outcome.error or "no combination of devices fits"
            chance = (
                bool(outcome.error) and MinorRules.for_version(read.kubernetes).slices_in_any_order
            )
            if chance:
                reason += f"; {read.kubernetes} tries slices in any order"
            return Answer(None, reason, proven=not chance, failed=bool(outcome.error))

        return ask_reference(ask)

    def check(
        self, snapshot: Obj, claims: Sequence[Obj], allocations: Sequence[Obj], node: str
    ) -> tuple[str, ...]:
        """Return the rules that these allocations break, each as ``rule: message``."""

        def ask() -> tuple[str, ...]:
            read = Snapshot.from_dict(snapshot)
            violations = check(
                read, node_named(read, node), _defaulted(claims), _readable(allocations)
            )
            return tuple(f"{item.rule}: {item.message}" for item in violations)

        return ask_reference(ask)


REFERENCE = Witness()


def _defaulted(claims: Sequence[Obj]) -> list[Obj]:
    """Return the claims as the API server stores them; a malformed one is reported first."""
    for index, claim in enumerate(claims):
        try:
            ResourceClaim.from_dict(claim)
        except InputError as error:
            raise error.with_parent("claims", index) from None
    return [default_claim(claim) for claim in claims]


def _readable(allocations: Sequence[Obj]) -> Sequence[Obj]:
    """Return the allocations, their types checked; fields of a newer API are ignored."""
    for mistake in schema.find_mistakes("[]resource/v1.AllocationResult", list(allocations)):
        if isinstance(mistake, schema.WrongType):
            text = f"expected {mistake.shape}, got {describe_value(mistake.value)}"
            raise InputError(text, "allocations", *mistake.path)
    return allocations
