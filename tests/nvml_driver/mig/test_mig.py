"""Making, finding and destroying MIG devices, and the simulated hardware that they are made on."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import pynvml
import pytest

from nvml_driver.devices.discovery import discover_devices
from nvml_driver.mig.instances import MigError, NvmlPartitions
from nvml_driver.mig.profiles import profile_name
from nvml_driver.model.inventory import Inventory, MigInstance, MigPlace
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import Features
from nvml_driver.simulated.node import make_node
from tests.nvml_driver.injecting import Injector

DYNAMIC = Features(dynamic_mig=True)


class Node:
    """Simulated GPUs with MIG, and what the driver knows of them."""

    def __init__(self, folder: Path, shown: str = "a30x4", **files: Path) -> None:
        self.library = NvmlLibrary.load_simulated(shown, **files)
        assert self.library.profile is not None
        self.roots = make_node(self.library.profile, folder)
        self.partitions = NvmlPartitions(self.library, self.roots)

    def inventory(self, features: Features = DYNAMIC) -> Inventory:
        return discover_devices(self.library, self.roots, features=features)

    def place(self, name: str) -> MigPlace:
        device = self.inventory().get(name)
        assert device is not None
        assert device.place is not None
        return device.place

    def mode(self, index: int = 0) -> int:
        with self.library.open_session() as nvml:
            return int(nvml.nvmlDeviceGetMigMode(nvml.nvmlDeviceGetHandleByIndex(index))[0])


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_mig_device_that_is_made_is_found_and_destroyed(node: Node) -> None:
    place = node.place("gpu-1-mig-2g12gb-5-2")
    made = node.partitions.create_instance(place)
    assert made.place == place
    assert (made.gi_id, made.ci_id) == (2, 0)
    assert (made.uuid or "").startswith("MIG-")
    # gpu1, GPU instance 2: 3 + (1 * 15 + 2) * 9
    assert (made.gi_capability, made.ci_capability) == (156, 157)
    assert node.partitions.find_instance(place) == made
    assert node.partitions.read_state().instances == (made,)
    node.partitions.destroy_instance(made)
    assert node.partitions.find_instance(place) is None
    node.partitions.destroy_instance(made)
    assert node.partitions.read_state().instances == ()


def test_a_mig_device_that_is_made_again_is_another_one(node: Node) -> None:
    place = node.place("gpu-0-mig-1g6gb-14-3")
    first = node.partitions.create_instance(place)
    node.partitions.destroy_instance(first)
    assert node.partitions.create_instance(place).uuid != first.uuid


def test_two_in_one_place_are_refused_and_the_first_stays(node: Node) -> None:
    whole = node.place("gpu-0-mig-4g24gb-0-0")
    first = node.partitions.create_instance(node.place("gpu-0-mig-1g6gb-14-1"))
    with pytest.raises(
        MigError, match=r"4g\.24gb at 0: the GPU instance cannot be made: Insuffici"
    ):
        node.partitions.create_instance(whole)
    assert node.partitions.find_instance(whole) == first
    assert node.partitions.read_state().instances == (first,)


@pytest.mark.parametrize(
    "function",
    [
        "nvmlGpuInstanceGetInfo",
        "nvmlGpuInstanceGetComputeInstanceProfileInfo",
        "nvmlGpuInstanceCreateComputeInstance",
        "nvmlComputeInstanceGetInfo_v2",
    ],
)
def test_a_gpu_instance_is_undone_if_its_compute_instance_fails(node: Node, function: str) -> None:
    place = node.place("gpu-0-mig-2g12gb-5-0")
    Injector(node.library).fail(function, "INSUFFICIENT_RESOURCES", last=1)
    with pytest.raises(MigError, match=r"gpu-0: MIG 2g\.12gb at 0"):
        node.partitions.create_instance(place)
    Injector(node.library).heal()
    assert node.partitions.read_state().instances == ()
    assert node.partitions.create_instance(place).ci_id == 0


def test_what_cannot_be_undone_is_said_and_found_later(node: Node) -> None:
    place = node.place("gpu-0-mig-1g6gb-14-0")
    Injector(node.library).fail("nvmlGpuInstanceCreateComputeInstance", "UNKNOWN")
    Injector(node.library).fail("nvmlGpuInstanceDestroy", "IN_USE")
    with pytest.raises(MigError, match="its GPU instance cannot be destroyed"):
        node.partitions.create_instance(place)
    Injector(node.library).heal()
    left = node.partitions.find_instance(place)
    assert left is not None
    assert left.ci_id is None
    node.partitions.destroy_instance(left)
    assert node.partitions.read_state().instances == ()


def test_a_mig_device_in_use_is_not_destroyed(node: Node) -> None:
    made = node.partitions.create_instance(node.place("gpu-0-mig-1g6gb-14-0"))
    Injector(node.library).fail("nvmlComputeInstanceDestroy", "IN_USE", last=1)
    with pytest.raises(MigError, match="GPU instance 3; its GPU instance cannot be destroyed"):
        node.partitions.destroy_instance(made)
    assert node.partitions.read_state().instances == (made,)
    node.partitions.destroy_instance(made)
    assert node.partitions.read_state().instances == ()


def test_another_instance_with_the_same_id_is_not_destroyed(tmp_path: Path) -> None:
    node = Node(tmp_path, "mixed")
    other = next(i for i in node.partitions.read_state().instances if i.place.profile == "2g.10gb")
    place = MigPlace(
        parent_minor=1,
        profile="1g.10gb",
        gi_profile_id=15,
        gi_profile_index=pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2,
        ci_profile_index=0,
        start=0,
        size=2,
    )
    node.partitions.destroy_instance(MigInstance(place=place, gi_id=other.gi_id, ci_id=0))
    assert other in node.partitions.read_state().instances


def test_on_hopper_mig_mode_comes_with_the_first_device_and_goes_with_the_last(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path, "h100-80x8")
    one = node.place("gpu-0-mig-3g40gb-9-0")
    assert node.mode() == 0
    first = node.partitions.create_instance(one)
    second = node.partitions.create_instance(node.place("gpu-0-mig-3g40gb-9-4"))
    assert node.mode() == 1
    node.partitions.destroy_instance(first)
    assert node.mode() == 1
    node.partitions.destroy_instance(second)
    assert node.mode() == 0
    Injector(node.library).fail("nvmlDeviceCreateGpuInstanceWithPlacement", "UNKNOWN")
    with pytest.raises(MigError):
        node.partitions.create_instance(one)
    assert node.mode() == 0


def test_a_gpu_that_is_gone_is_an_error_that_says_so(node: Node) -> None:
    place = node.place("gpu-2-mig-1g6gb-14-0")
    Injector(node.library).fail("*", "GPU_IS_LOST", gpu=2)
    with pytest.raises(MigError, match="gpu-2 is gone"):
        node.partitions.create_instance(place)


def test_mig_devices_survive_a_restart_and_not_a_reboot(tmp_path: Path) -> None:
    state = tmp_path / "nvml-state"
    before = Node(tmp_path, state_file=state)
    made = before.partitions.create_instance(before.place("gpu-3-mig-1g6gb-14-2"))
    after = Node(tmp_path, state_file=state)
    assert after.partitions.read_state().instances == (made,)
    after.partitions.destroy_instance(made)
    assert before.partitions.read_state().instances == ()
    after.partitions.create_instance(made.place)
    state.unlink()
    assert Node(tmp_path, state_file=state).partitions.read_state().instances == ()


def test_two_processes_see_the_same_mig_devices(tmp_path: Path) -> None:
    node = Node(tmp_path, state_file=tmp_path / "state")
    script = """
import sys
from pathlib import Path
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.model.roots import NodeRoots
library = NvmlLibrary.load_simulated("a30x4", state_file=Path(sys.argv[1]))
for instance in NvmlPartitions(library, NodeRoots()).read_state().instances:
    print(instance.place.profile, instance.gi_id, instance.uuid)
"""
    made = node.partitions.create_instance(node.place("gpu-0-mig-4g24gb-0-0"))
    command = [sys.executable, "-c", script, str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["4g.24gb", "0", made.uuid]


def test_the_simulated_hardware_keeps_nvmls_rules(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("a100-40x8")
    with library.open_session() as nvml:
        gpu = nvml.nvmlDeviceGetHandleByIndex(0)
        with pytest.raises(pynvml.NVMLError_NotSupported):  # Ampere, MIG is off
            nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, 0)
        nvml.nvmlDeviceSetMigMode(gpu, 1)
        info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, 0)
        assert (info.id, info.instanceCount, str(info.name)) == (19, 7, "MIG 1g.5gb")
        with pytest.raises(pynvml.NVMLError_InvalidArgument):
            _create(nvml, gpu, 9, start=2, size=4)  # 3g starts at 0 or 4
        made = [nvml.nvmlDeviceCreateGpuInstance(gpu, 19) for _ in range(7)]
        with pytest.raises(pynvml.NVMLError_InsufficientResources):
            nvml.nvmlDeviceCreateGpuInstance(gpu, 19)
        assert [nvml.nvmlGpuInstanceGetInfo(gi).id for gi in made] == [7, 8, 9, 10, 11, 12, 13]
        with pytest.raises(pynvml.NVMLError_InUse):
            nvml.nvmlDeviceSetMigMode(gpu, 0)
        for gi in made:
            nvml.nvmlGpuInstanceDestroy(gi)
        with pytest.raises(pynvml.NVMLError_NotFound):
            nvml.nvmlGpuInstanceGetInfo(made[0])
        three = _create(nvml, gpu, 9, start=4, size=4)
        one = nvml.nvmlGpuInstanceCreateComputeInstance(three, 0)
        two = nvml.nvmlGpuInstanceCreateComputeInstance(three, 0)
        with pytest.raises(pynvml.NVMLError_InsufficientResources):
            nvml.nvmlGpuInstanceCreateComputeInstance(three, 1)  # two slices, one is left
        with pytest.raises(pynvml.NVMLError_InUse):
            nvml.nvmlGpuInstanceDestroy(three)
        first = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
        assert nvml.nvmlDeviceGetName(first) == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
        assert nvml.nvmlDeviceGetMemoryInfo(first).total == 19968 * 2**20
        parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(first)
        assert nvml.nvmlDeviceGetMinorNumber(parent) == 0
        by_uuid = nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(first))
        assert nvml.nvmlDeviceGetComputeInstanceId(by_uuid) == 0
        nvml.nvmlComputeInstanceDestroy(one)
        with pytest.raises(pynvml.NVMLError):
            nvml.nvmlDeviceGetUUID(first)
        nvml.nvmlComputeInstanceDestroy(two)
        nvml.nvmlGpuInstanceDestroy(three)


def _create(nvml: Any, gpu: Any, profile: int, *, start: int, size: int) -> Any:
    placement = pynvml.c_nvmlGpuInstancePlacement_t(start=start, size=size)
    return nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile, ctypes.byref(placement))


@pytest.mark.parametrize(
    ("index", "slices", "mib", "gib", "name"),
    [
        (0, 1, 4864, 40, "1g.5gb"),
        (pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1, 1, 4864, 40, "1g.5gb+me"),
        (pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2, 1, 9856, 40, "1g.10gb"),
        (2, 3, 19968, 40, "3g.20gb"),
        (4, 7, 40192, 40, "7g.40gb"),
        (0, 1, 5952, 24, "1g.6gb"),
        (3, 4, 24000, 24, "4g.24gb"),
    ],
)
def test_a_profile_that_nvml_does_not_name_has_the_name_that_nvidia_smi_shows(
    index: int, slices: int, mib: int, gib: int, name: str
) -> None:
    assert profile_name(index, slices, mib, gib * 2**30) == name


@pytest.mark.parametrize("shown", ["a100-40x8", "a100-80x8", "a30x4", "h100-80x8"])
def test_computed_names_agree_with_those_of_the_listings(shown: str) -> None:
    library = NvmlLibrary.load_simulated(shown)
    assert library.profile is not None
    gpu = library.profile.gpus[0]
    assert gpu.mig is not None
    for profile in gpu.mig.profiles:
        computed = profile_name(
            profile.index, profile.slices, profile.memory_mib, gpu.memory_bytes or 0
        )
        assert computed == profile.name


def test_old_drivers_that_do_not_name_profiles_give_the_same_devices(tmp_path: Path) -> None:
    node = Node(tmp_path)
    expected = [device.name for device in node.inventory()]
    Injector(node.library).fail("nvmlDeviceGetGpuInstanceProfileInfoV", "FUNCTION_NOT_FOUND")
    assert [device.name for device in node.inventory()] == expected


def test_a_mig_mode_that_waits_for_a_reset_is_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Ampere while something uses the GPU: NVML accepts the mode and it stays pending."""
    node = Node(tmp_path, "h100-80x8")
    place = node.place("gpu-0-mig-1g10gb-19-0")
    in_use = pynvml.NVML_ERROR_IN_USE
    monkeypatch.setattr(pynvml, "nvmlDeviceSetMigMode", lambda *_: in_use)
    with pytest.raises(
        MigError, match=r"MIG mode is only pending \(NVML status 19\); reset the GPU"
    ):
        node.partitions.create_instance(place)
    monkeypatch.undo()
    assert node.partitions.read_state().instances == ()
