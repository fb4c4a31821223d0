"""All ways in which the scheduler can be wrong, by the part that is."""

from __future__ import annotations

from tests.mutants.real.wrong import (
    amounts,
    choosing,
    constraints,
    plugin,
    pools,
    recording,
    selecting,
    tainting,
)

ALL = (
    *selecting.WRONGS,
    *choosing.WRONGS,
    *constraints.WRONGS,
    *pools.WRONGS,
    *amounts.WRONGS,
    *tainting.WRONGS,
    *recording.WRONGS,
    *plugin.WRONGS,
)
