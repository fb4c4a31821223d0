"""Mutants: references with a deliberate defect, for tests of the suite.

The reference knows nothing of them. A mutation replaces methods of the parts of one reference that
is running, so that its neighbours in the same process stay sound. What each breaks, and who says
so, is in `tests.statements`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Final

from conformance.targets.reference import ReferenceOptions, ReferenceTarget
from tests.mutants.replacing import Mutation

_OTHERS: Final = ("tests.mutants.real", "tests.mutants.real_driver")
"""Defects of a real scheduler and of our driver, which are no mutations of the reference."""


def _all() -> dict[str, Mutation]:
    """The ``DEFECTS`` of every module of this package."""
    found: dict[str, Mutation] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        if not module.name.startswith(_OTHERS):
            defects = getattr(importlib.import_module(module.name), "DEFECTS", {})
            assert found.keys().isdisjoint(defects), module.name
            found |= defects
    return found


DEFECTS: Final = _all()
"""Name of a defect in the kill matrix, for example ``double-allocation``, and what puts it in."""


def mutant(*defects: str, **options: Any) -> ReferenceTarget:
    """A reference that has these defects; ``options`` are those of `ReferenceOptions`."""
    target = ReferenceTarget(ReferenceOptions(**options))
    for name in defects:
        DEFECTS[name](target.world)
    return target
