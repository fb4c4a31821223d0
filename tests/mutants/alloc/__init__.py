"""Defects in choosing devices, written from what tests/statements/alloc*.yaml say."""

from __future__ import annotations

from tests.mutants.alloc import (
    constraints,
    expressions,
    partitions,
    pools,
    requests,
    results,
    shares,
    taints,
)
from tests.mutants.replacing import Defects

DEFECTS: Defects = {
    **constraints.DEFECTS,
    **expressions.DEFECTS,
    **partitions.DEFECTS,
    **pools.DEFECTS,
    **requests.DEFECTS,
    **results.DEFECTS,
    **shares.DEFECTS,
    **taints.DEFECTS,
}
