"""The check of an allocation: is it right, and if not, which rule does it break for which device?

Written apart from the search (see `reference_allocator.checks`), so that it can judge allocations
of any allocator, including ours. It accepts every correct allocation, not only the one that a
first-fit search finds; which alternative of firstAvailable *should* have been chosen is a question
for the search.

Rules, as `Violation.rule` names them: allocation-count, request, feature, count, all, alternative,
limit, device, node, pool-generation, pool-incomplete, pool-invalid, in-use, admin-access, selector,
taint, constraint, counter, compatibility-group, capacity, share, config, node-selector,
result-fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from reference_allocator.api import DeviceClass, Node, ResourceClaim, ResourceSlice
from reference_allocator.api.reading import read_all
from reference_allocator.checks import devices, requests
from reference_allocator.checks.capacity import capacity_suffices, shares_are_marked
from reference_allocator.checks.case import Case, SelectorProblems, Violation
from reference_allocator.checks.partitions import counters_suffice, groups_are_compatible
from reference_allocator.checks.results import (
    config_is_right,
    fields_are_copied,
    node_selector_is_right,
)
from reference_allocator.environment import selector_environment
from reference_allocator.gates import MinorRules
from reference_allocator.snapshot import Snapshot

_RULES: Final[Sequence[Callable[[Case], Iterator[Violation]]]] = (
    requests.every_claim_has_a_result,
    requests.requests_are_allowed,
    requests.requests_exist,
    requests.numbers_are_right,
    devices.device_exists,
    devices.device_is_free,
    devices.device_is_supported,
    devices.selectors_hold,
    devices.taints_are_tolerated,
    requests.constraints_hold,
    counters_suffice,
    groups_are_compatible,
    shares_are_marked,
    capacity_suffices,
    fields_are_copied,
    config_is_right,
    node_selector_is_right,
)


def check(
    snapshot: Snapshot,
    node: Mapping[str, Any],
    claims: Sequence[Mapping[str, Any]],
    allocations: Sequence[Mapping[str, Any]],
    selector_problems: SelectorProblems | None = None,
) -> list[Violation]:
    """Return every rule that an allocation breaks; an empty list where it keeps them all.

    Args:
        snapshot: the cluster before the allocation. Its `allocated` claims say what is in use; a
            claim of `claims` among them is left out, so that a snapshot taken afterwards will do.
        claims: the v1 ResourceClaims that were allocated together.
        allocations: their v1 AllocationResults, in the same order.
        selector_problems: what checks of the same objects, with the same features, have found
            before; what this one finds is added.

    Raises InputError: an object has not the form of its kind; names the path.
    """
    read_claims = read_all(claims, ResourceClaim.from_dict, "claims")
    own_names = {(claim.namespace, claim.name) for claim in read_claims}
    held = read_all(snapshot.allocated, ResourceClaim.from_dict, "allocated")
    classes = read_all(snapshot.device_classes, DeviceClass.from_dict, "deviceClasses")
    case = Case(
        features=snapshot.features,
        rules=MinorRules.for_version(snapshot.kubernetes),
        environment=selector_environment(snapshot.features, snapshot.kubernetes),
        node=Node.from_dict(node),
        slices=read_all(snapshot.slices, ResourceSlice.from_dict, "slices"),
        classes={item.name: item for item in classes},
        claims=read_claims,
        allocations=list(allocations),
        other_claims=[claim for claim in held if (claim.namespace, claim.name) not in own_names],
        own_allocations=frozenset(
            index
            for index, (claim, allocation) in enumerate(zip(claims, allocations, strict=False))
            if (claim.get("status") or {}).get("allocation") is allocation
        ),
        selector_problems={} if selector_problems is None else selector_problems,
    )
    return [violation for rule in _RULES for violation in rule(case)]
