"""How many pods of a PodGroup fit at the same time (KEP-4671, KEP-5732).

The scheduler places a group's pods one after the other, each beside what those before it were
given, and takes all back if fewer than the group's ``minCount`` fit. ``minCount`` is of the
PodGroup, which a snapshot has not, so that it is said to be not judged.
"""

from __future__ import annotations

import time
from dataclasses import replace

from conformance.compare.case import Placement, find_placement
from conformance.compare.evidence import Object, has_ended, key_of, mapping_field
from conformance.compare.waiting import group_of, is_pending, waiting_pod
from reference_allocator.allocator import Allocator
from reference_allocator.snapshot import Snapshot


def describe_members(snapshot: Snapshot, pod: Object, seconds: float) -> str:
    """Return what there is to say of the other pods of a pod's group.

    ``seconds``: how long all searches together may take.
    Raises InputError: an object has not the form of its kind.
    """
    members = [
        item
        for item in snapshot.pods
        if group_of(item) == group_of(pod)
        and key_of(item)[0] == key_of(pod)[0]
        and not has_ended(item)
    ]
    pending = [item for item in members if is_pending(item)]
    until = time.monotonic() + seconds
    fitting = 0
    for member in pending:
        placed = _place_pod(snapshot, member, until)
        if placed is not None:
            snapshot, fitting = placed, fitting + 1
    if time.monotonic() > until:
        found = f"at least {fitting} of these fit at the same time (the search ended)"
    else:
        found = f"{fitting} of these fit at the same time, placed one after the other"
    return (
        f"of the group's {len(members)} pods {len(pending)} wait, and {found}; whether that is its"
        " minCount is not judged, and what follows is about this pod alone"
    )


def _place_pod(snapshot: Snapshot, pod: Object, until: float) -> Snapshot | None:
    """Return the snapshot with a pod on the first node that does; None if none does."""
    if mapping_field(pod, "spec").get("schedulingGates"):
        return None
    case = waiting_pod(snapshot, pod).case
    placement = find_placement(case, until) if case is not None else None
    if case is None or placement is None:
        return None
    case, node = placement
    claims = Placement(case).list_claims(node)
    outcome = (
        Allocator.from_snapshot(case.snapshot).allocate(node, claims, deadline=until)
        if claims
        else None
    )
    if outcome is not None and outcome.kind != "allocated":
        return None
    made = outcome.allocations if outcome is not None else ()
    given = [
        {**claim, "status": {**mapping_field(claim, "status"), "allocation": allocation}}
        for claim, allocation in zip(claims, made, strict=True)
    ]
    keys = set(map(key_of, given))
    bound = {**pod, "spec": {**pod["spec"], "nodeName": node["metadata"]["name"]}}
    return replace(
        case.snapshot,
        claims=tuple(item for item in case.snapshot.claims if key_of(item) not in keys),
        allocated=(*case.snapshot.allocated, *given),
        pods=tuple(bound if key_of(item) == key_of(pod) else item for item in case.snapshot.pods),
    )
