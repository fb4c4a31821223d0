"""Mutants: references with a deliberate defect, for tests of the suite.

The reference knows nothing of them. A mutation replaces methods of the parts of one reference that
is running, so that its neighbours in the same process stay sound.
"""

from __future__ import annotations

from typing import Any

from conformance.targets.reference import ReferenceOptions, ReferenceTarget
from tests.mutants import (
    api,
    applying,
    authorizing,
    cdi,
    changing,
    controllers,
    deleting,
    devicefiles,
    disrupting,
    driver,
    evicting,
    extended,
    listing,
    metrics,
    nodes,
    preempting,
    quota,
    scheduler,
    several,
    unhealthy,
    updating,
    watching,
    workloads,
)
from tests.mutants.allocator import (
    aligning,
    allocation,
    alternatives,
    amounts,
    choosing,
    counting,
    giving_up,
    pools,
    remembering,
    selecting,
    sharing,
    tainting,
)
from tests.mutants.faults import Fault
from tests.mutants.replacing import Mutation

MUTATIONS: dict[Fault, Mutation] = {
    **api.MUTATIONS,
    **applying.MUTATIONS,
    **authorizing.MUTATIONS,
    **cdi.MUTATIONS,
    **changing.MUTATIONS,
    **controllers.MUTATIONS,
    **listing.MUTATIONS,
    **metrics.MUTATIONS,
    **deleting.MUTATIONS,
    **devicefiles.MUTATIONS,
    **disrupting.MUTATIONS,
    **driver.MUTATIONS,
    **evicting.MUTATIONS,
    **extended.MUTATIONS,
    **scheduler.MUTATIONS,
    **aligning.MUTATIONS,
    **allocation.MUTATIONS,
    **alternatives.MUTATIONS,
    **amounts.MUTATIONS,
    **choosing.MUTATIONS,
    **counting.MUTATIONS,
    **giving_up.MUTATIONS,
    **pools.MUTATIONS,
    **remembering.MUTATIONS,
    **selecting.MUTATIONS,
    **sharing.MUTATIONS,
    **tainting.MUTATIONS,
    **nodes.MUTATIONS,
    **quota.MUTATIONS,
    **preempting.MUTATIONS,
    **several.MUTATIONS,
    **unhealthy.MUTATIONS,
    **updating.MUTATIONS,
    **watching.MUTATIONS,
    **workloads.MUTATIONS,
}


def mutant(*faults: Fault, **options: Any) -> ReferenceTarget:
    """A reference that has these faults; ``options`` are those of `ReferenceOptions`."""
    target = ReferenceTarget(ReferenceOptions(**options))
    for fault in faults:
        MUTATIONS[fault](target.world)
    return target
