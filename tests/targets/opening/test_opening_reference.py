from __future__ import annotations

from pathlib import Path

import pytest

from conformance.data import scenarios_dir
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from kube.values import Query


@pytest.mark.parametrize("gates", [{}, {"DRANodeAllocatableResources": True}])
def test_the_reference_has_the_gates_that_were_asked_for(gates: dict[str, bool]) -> None:
    with open_reference(TargetOptions(feature_gates=gates)) as opened:
        found = opened.capabilities.feature_gates
    assert found["DRANodeAllocatableResources"] is bool(gates)
    assert found["DRADeviceTaintRules"] is True


def test_the_suites_own_driver_can_have_another_name(tmp_path: Path) -> None:
    own = (scenarios_dir() / "drivers/nvml-dra-driver.yaml").read_text()
    renamed = tmp_path / "other.yaml"
    renamed.write_text(own.replace("gpu.nvidia.com", "gpu.other.example"))
    options = TargetOptions(driver=str(renamed), simulate="a100-40x8")
    with open_reference(options) as opened:
        scope = opened.target.scope("default")
        [published] = scope.find(Query("resource.k8s.io/v1", "ResourceSlice"))
        scope.close()
    assert published["spec"]["driver"] == "gpu.other.example"
    assert len(published["spec"]["devices"]) == 8
