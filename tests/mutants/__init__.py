"""Mutants: references with a deliberate defect, for tests of the suite.

The reference knows nothing of them. A mutation replaces methods of the parts of one reference that
is running, so that its neighbours in the same process stay sound. What each breaks, and who says
so, is in `tests.statements`.
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
    pairs,
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
from tests.mutants.replacing import Defects

DEFECTS: Defects = {
    **api.DEFECTS,
    **applying.DEFECTS,
    **authorizing.DEFECTS,
    **cdi.DEFECTS,
    **changing.DEFECTS,
    **controllers.DEFECTS,
    **listing.DEFECTS,
    **metrics.DEFECTS,
    **deleting.DEFECTS,
    **devicefiles.DEFECTS,
    **disrupting.DEFECTS,
    **driver.DEFECTS,
    **evicting.DEFECTS,
    **extended.DEFECTS,
    **scheduler.DEFECTS,
    **aligning.DEFECTS,
    **allocation.DEFECTS,
    **alternatives.DEFECTS,
    **amounts.DEFECTS,
    **choosing.DEFECTS,
    **counting.DEFECTS,
    **giving_up.DEFECTS,
    **pools.DEFECTS,
    **remembering.DEFECTS,
    **selecting.DEFECTS,
    **sharing.DEFECTS,
    **tainting.DEFECTS,
    **nodes.DEFECTS,
    **pairs.DEFECTS,
    **quota.DEFECTS,
    **preempting.DEFECTS,
    **several.DEFECTS,
    **unhealthy.DEFECTS,
    **updating.DEFECTS,
    **watching.DEFECTS,
    **workloads.DEFECTS,
}


def mutant(*defects: str, **options: Any) -> ReferenceTarget:
    """A reference that has these defects; ``options`` are those of `ReferenceOptions`."""
    target = ReferenceTarget(ReferenceOptions(**options))
    for name in defects:
        DEFECTS[name](target.world)
    return target
