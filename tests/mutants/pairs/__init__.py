"""Defects that sit where two features meet: each feature is sound alone."""

from __future__ import annotations

from tests.mutants.pairs import (
    alternatives,
    conditions,
    drivers,
    extended,
    fractions,
    health,
    tainting,
)
from tests.mutants.replacing import Defects

DEFECTS: Defects = {
    **alternatives.DEFECTS,
    **conditions.DEFECTS,
    **drivers.DEFECTS,
    **extended.DEFECTS,
    **fractions.DEFECTS,
    **health.DEFECTS,
    **tainting.DEFECTS,
}
