from __future__ import annotations

import pytest

from conformance.targets.opening import open_reference
from conformance.targets.options import TargetOptions


@pytest.mark.parametrize("gates", [{}, {"DRANodeAllocatableResources": True}])
def test_the_reference_has_the_gates_that_were_asked_for(gates: dict[str, bool]) -> None:
    with open_reference(TargetOptions(feature_gates=gates)) as opened:
        found = opened.capabilities.feature_gates
    assert found["DRANodeAllocatableResources"] is bool(gates)
    assert found["DRADeviceTaintRules"] is True
