"""Prepare and unprepare of MIG devices that do not exist yet, through (simulated) NVML."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube.cdi.reading import resolve
from nvml_driver.core import DriverCore
from nvml_driver.errors import PrepareError
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import Features
from tests.nvml_driver.helpers import make_claim, options_below, result
from tests.nvml_driver.injecting import Injector


def driver(root: Path, library: NvmlLibrary) -> DriverCore:
    options = options_below(root, features=Features(dynamic_mig=True))
    return DriverCore(options, library)


@pytest.fixture
def library() -> NvmlLibrary:
    return NvmlLibrary.load_simulated("h100-80x8")


def existing(core: DriverCore) -> list[str]:
    assert isinstance(core._partitions, NvmlPartitions)
    return [
        f"{one.place.profile}@{one.place.start}" for one in core._partitions.read_state().instances
    ]


def test_a_mig_device_lives_as_long_as_its_claim(tmp_path: Path, library: NvmlLibrary) -> None:
    core = driver(tmp_path, library)
    claim = make_claim(result("gpu-0-mig-1g10gb-19-0"), result("gpu-0-mig-1g10gb-19-1", "two"))
    one, two = core.prepare(claim)
    assert existing(core) == ["1g.10gb@0", "1g.10gb@1"]
    edits = resolve([tmp_path / "cdi"], [*one.cdi_device_ids, *two.cdi_device_ids])
    paths = [node.path for node in edits.device_nodes]
    assert paths[0] == "/dev/nvidiactl"
    assert paths.count("/dev/nvidia0") == 1  # of both, and where the second one puts it
    assert len({path for path in paths if path.startswith("/dev/nvidia-caps/")}) == 4
    uuids = {value for name, value in edits.env.items() if name.endswith("_UUID")}
    assert len(uuids) == 2
    assert all(value.startswith("MIG-") for value in uuids)
    assert driver(tmp_path, library).prepare(claim) == [one, two], "restarted"
    with pytest.raises(PrepareError, match="still prepared"):
        core.prepare(make_claim(result("gpu-0"), uid="whole"))
    core.unprepare("uid-1")
    assert existing(core) == []
    core.prepare(make_claim(result("gpu-0"), uid="whole"))


def test_a_compute_instance_that_fails_leaves_no_gpu_instance(
    tmp_path: Path, library: NvmlLibrary
) -> None:
    machine = Injector(library)
    core = driver(tmp_path, library)
    machine.fail("nvmlGpuInstanceCreateComputeInstance", 2)
    claim = make_claim(result("gpu-0-mig-1g10gb-19-0"))
    with pytest.raises(PrepareError, match="cannot be prepared"):
        core.prepare(claim)
    assert (existing(core), core.list_records()) == ([], [])
    machine.heal()
    core.prepare(claim)
    assert existing(core) == ["1g.10gb@0"]
