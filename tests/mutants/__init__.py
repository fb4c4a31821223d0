"""Mutants: references with a deliberate defect, for tests of the suite.

The reference knows nothing of them. A mutation replaces methods of the parts of one reference that
is running, so that its neighbours in the same process stay sound. What each breaks, and who says
so, is in `tests.statements`.
"""

from __future__ import annotations

from typing import Any

from conformance.targets.reference import ReferenceOptions, ReferenceTarget
from tests.mutants import (
    alloc,
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
from tests.mutants.claims import changing as claims_changing
from tests.mutants.claims import checks as claims_checks
from tests.mutants.claims import quotas as claims_quotas
from tests.mutants.claims import refusing as claims_refusing
from tests.mutants.claims import storing as claims_storing
from tests.mutants.claims import versions as claims_versions
from tests.mutants.control import binding, extending, making, releasing, scheduling
from tests.mutants.control import evicting as evictions
from tests.mutants.kubelet import answering, giving, healthy, lasting, preparing, telling
from tests.mutants.replacing import Defects
from tests.mutants.slices import changing as changing_slices
from tests.mutants.slices import pods as pods_with_claims
from tests.mutants.slices import refusing, reporting, taking

DEFECTS: Defects = {
    **alloc.DEFECTS,
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
    **claims_changing.DEFECTS,
    **claims_checks.DEFECTS,
    **claims_quotas.DEFECTS,
    **claims_refusing.DEFECTS,
    **claims_storing.DEFECTS,
    **claims_versions.DEFECTS,
    **changing_slices.DEFECTS,
    **pods_with_claims.DEFECTS,
    **refusing.DEFECTS,
    **reporting.DEFECTS,
    **taking.DEFECTS,
    **binding.DEFECTS,
    **evictions.DEFECTS,
    **extending.DEFECTS,
    **making.DEFECTS,
    **releasing.DEFECTS,
    **scheduling.DEFECTS,
    **answering.DEFECTS,
    **giving.DEFECTS,
    **healthy.DEFECTS,
    **lasting.DEFECTS,
    **preparing.DEFECTS,
    **telling.DEFECTS,
}


def mutant(*defects: str, **options: Any) -> ReferenceTarget:
    """A reference that has these defects; ``options`` are those of `ReferenceOptions`."""
    target = ReferenceTarget(ReferenceOptions(**options))
    for name in defects:
        DEFECTS[name](target.world)
    return target
