"""What the driver publishes of the GPUs that NVML shows."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pynvml
import pytest

from nvml_driver.devices.discovery import discover_devices
from nvml_driver.devices.slices import describe_device
from nvml_driver.model.inventory import Inventory
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.library import NvmlLibrary, normalize_version
from nvml_driver.simulated.node import make_sysfs
from nvml_driver.simulated.profile import Profile, load_profile
from tests.nvml_driver.helpers import with_gpu


def find(shown: str | Profile, root: Path) -> Inventory:
    library = NvmlLibrary.load_simulated(shown)
    make_sysfs(load_profile(shown), root)
    return discover_devices(library, NodeRoots(sysfs=root))


def test_a_t4_is_published_as_the_real_driver_published_one(tmp_path: Path) -> None:
    inventory = find("t4x4", tmp_path)
    assert [gpu.name for gpu in inventory] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert describe_device(inventory.devices[1]) == {
        "name": "gpu-1",
        "attributes": {
            "architecture": {"string": "Turing"},
            "brand": {"string": "Nvidia"},
            "cudaComputeCapability": {"version": "7.5.0"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "dra-conformance.dev/simulated": {"bool": True},
            "driverVersion": {"version": "580.95.5"},
            "productName": {"string": "Tesla T4"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:00:1c.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
            "type": {"string": "gpu"},
            "uuid": {"string": "GPU-1a5dc02e-a83d-07a2-d195-9c2ea91a50e0"},
        },
        "capacity": {"memory": {"value": "15Gi"}},
    }


def test_an_a100_is_published_with_its_numa_node_and_pcie_root(tmp_path: Path) -> None:
    inventory = find("a100-40x8", tmp_path)
    assert len(inventory) == 8
    assert describe_device(inventory.devices[7]) == {
        "name": "gpu-7",
        "attributes": {
            "architecture": {"string": "Ampere"},
            "brand": {"string": "Nvidia"},
            "cudaComputeCapability": {"version": "8.0.0"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "dra-conformance.dev/simulated": {"bool": True},
            "driverVersion": {"version": "580.95.5"},
            "productName": {"string": "NVIDIA A100-SXM4-40GB"},
            "resource.kubernetes.io/numaNode": {"int": 5},
            "resource.kubernetes.io/pciBusID": {"string": "0000:bd:00.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:b0"},
            "type": {"string": "gpu"},
            "uuid": {"string": "GPU-b17f64c8-d390-4fee-862a-7738495a6b7c"},
        },
        "capacity": {"memory": {"value": "40Gi"}},
    }
    roots = [gpu.attributes["resource.kubernetes.io/pcieRoot"].value for gpu in inventory]
    assert {root: roots.count(root) for root in roots} == {
        "pci0000:00": 2,
        "pci0000:40": 2,
        "pci0000:80": 2,
        "pci0000:b0": 2,
    }


def test_two_nodes_with_one_profile_have_different_gpus(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("t4x4")
    roots = NodeRoots(sysfs=tmp_path)
    uuids = [
        {gpu.uuid for gpu in discover_devices(library, roots, salt=node)}
        for node in ("a", "b", "a")
    ]
    assert len(uuids[0]) == 4
    assert uuids[0].isdisjoint(uuids[1])
    assert uuids[0] == uuids[2]


@pytest.mark.parametrize(
    ("function", "attribute"),
    [
        ("nvmlDeviceGetUUID", "uuid"),
        ("nvmlDeviceGetName", "productName"),
        ("nvmlDeviceGetBrand", "brand"),
        ("nvmlDeviceGetArchitecture", "architecture"),
        ("nvmlDeviceGetCudaComputeCapability", "cudaComputeCapability"),
        ("nvmlDeviceGetPciInfo_v3", "resource.kubernetes.io/pciBusID"),
    ],
)
@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "UNKNOWN"])
def test_what_nvml_cannot_tell_is_left_out_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, function: str, attribute: str, error: str
) -> None:
    caplog.set_level(logging.INFO)
    code = getattr(pynvml, f"NVML_ERROR_{error}")
    inventory = find(with_gpu(index=2, faults={function: code}), tmp_path)
    assert len(inventory) == 4
    assert attribute not in inventory.devices[2].attributes
    assert attribute in inventory.devices[1].attributes
    assert attribute.rpartition("/")[2] in caplog.text


def test_a_library_without_a_function_costs_only_that_attribute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = NvmlLibrary.load_simulated("t4x4")
    find("t4x4", tmp_path)

    class OldLibrary:
        """The simulated library as an older driver would have it."""

        def __getattr__(self, name: str) -> Any:
            if name == "nvmlDeviceGetArchitecture":
                raise AttributeError(name)
            return getattr(library._handle, name)

    monkeypatch.setattr(pynvml, "nvmlLib", OldLibrary())
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    inventory = discover_devices(library, NodeRoots(sysfs=tmp_path))
    assert "architecture" not in inventory.devices[0].attributes
    assert inventory.devices[0].attributes["brand"].value == "Nvidia"


def test_memory_that_nvml_does_not_support_is_no_capacity(tmp_path: Path) -> None:
    inventory = find(with_gpu(memory_bytes=None), tmp_path)
    assert "capacity" not in describe_device(inventory.devices[0])
    assert inventory.devices[1].capacity == {"memory": 15 * 2**30}


@pytest.mark.parametrize("where", ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetBrand", "*"])
def test_a_lost_gpu_is_left_out_with_the_reason(tmp_path: Path, where: str) -> None:
    lost = with_gpu(index=1, faults={where: pynvml.NVML_ERROR_GPU_IS_LOST})
    inventory = find(lost, tmp_path)
    assert [gpu.name for gpu in inventory] == ["gpu-0", "gpu-2", "gpu-3"]
    [reason] = inventory.left_out
    assert reason.startswith("GPU 1 left out: ")
    assert "lost" in reason


def test_a_gpu_in_mig_mode_is_not_a_full_gpu(tmp_path: Path) -> None:
    inventory = find(with_gpu("a100-40x8", index=0, mig_mode="enabled"), tmp_path)
    assert inventory.get("gpu-0") is None
    assert "MIG mode is enabled" in inventory.left_out[0]


def test_an_unknown_brand_or_architecture_is_left_out(tmp_path: Path) -> None:
    unknown = find(with_gpu(brand=4711, architecture=4711), tmp_path).devices[0].attributes
    assert unknown.keys().isdisjoint({"brand", "architecture"})
    assert unknown["productName"].value == "Tesla T4"


def test_an_addressing_mode_is_published_where_there_is_one(tmp_path: Path) -> None:
    inventory = find(with_gpu(addressing_mode="HMM"), tmp_path)
    assert inventory.devices[0].attributes["addressingMode"].value == "HMM"
    assert "addressingMode" not in inventory.devices[1].attributes


def test_a_gpu_that_sysfs_does_not_know_has_no_root_and_no_numa_node(tmp_path: Path) -> None:
    inventory = find(with_gpu("a100-40x8", sysfs_path=None), tmp_path)
    names = set(inventory.devices[0].attributes)
    assert "resource.kubernetes.io/pciBusID" in names
    assert names.isdisjoint({"resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"})


def test_a_driver_before_cuda_version_2_still_tells_its_cuda_version(tmp_path: Path) -> None:
    old = load_profile("t4x4").model_copy(
        update={"faults": {"nvmlSystemGetCudaDriverVersion_v2": 13}}
    )
    inventory = find(old, tmp_path)
    assert inventory.devices[0].attributes["cudaDriverVersion"].value == "13.0.0"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("580.95.05", "580.95.5"),
        ("7.5", "7.5.0"),
        ("535", "535.0.0"),
        ("1.2.3.4", None),
        ("", None),
        ("580.x", None),
        ("5.²", None),
    ],
)
def test_versions_are_made_semantic(written: str, read: str | None) -> None:
    assert normalize_version(written) == read
