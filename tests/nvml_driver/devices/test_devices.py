"""Kinds of devices beyond full GPUs: MIG, partitions, VFIO, shares; each as the API takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pynvml
import pytest

from nvml_driver.devices.discovery import discover_devices
from nvml_driver.devices.slices import describe_device, resource_slices
from nvml_driver.model.inventory import Inventory
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import Features
from nvml_driver.simulated import list_shipped_profiles, profile
from nvml_driver.simulated.node import make_node
from reference_allocator.api.quantity import parse_quantity
from tests.nvml_driver.helpers import with_gpu
from tests.nvml_driver.injecting import Injector
from tests.nvml_driver.published import problems

EVERY = [
    Features(),
    Features(vfio=True),
    Features(dynamic_mig=True),
    Features(dynamic_mig=True, vfio=True, numa_list=True, consumable_shares="unlimited"),
    Features(consumable_shares="memory", numa_list=True),
    Features(consumable_shares=1),
    Features(consumable_shares=10),
]


def find(shown: str | profile.Profile, root: Path, features: Features) -> Inventory:
    library = NvmlLibrary.load_simulated(shown)
    assert library.profile is not None
    return discover_devices(library, make_node(library.profile, root), features=features)


@pytest.mark.parametrize("features", EVERY, ids=str)
@pytest.mark.parametrize("shown", list_shipped_profiles())
def test_slices_of_every_profile_keep_the_apis_limits(
    tmp_path: Path, shown: str, features: Features
) -> None:
    inventory = find(shown, tmp_path, features)
    slices = resource_slices(inventory, driver_name="d.io", node_name="n")
    assert problems(slices) == []
    published = [d["name"] for s in slices for d in s["spec"].get("devices", ())]
    assert sorted(published) == sorted(d.name for d in inventory)


def test_a_static_mig_device_is_published_as_nvidias_driver_does(tmp_path: Path) -> None:
    inventory = find("mixed", tmp_path, Features())
    assert [d.name for d in inventory] == [
        "gpu-0",
        "gpu-1-mig-1g5gb-19-2",
        "gpu-1-mig-2g10gb-14-0",
        "gpu-1-mig-3g20gb-9-4",
        "gpu-2",
        "gpu-3",
    ]
    found = inventory.devices[3]
    assert found.parent == "gpu-1"
    assert found.instance is not None
    assert (found.instance.gi_id, found.instance.ci_id) == (2, 0)
    entry = describe_device(found)
    assert "consumesCounters" not in entry
    attributes = entry["attributes"]
    assert attributes["type"] == {"string": "mig"}
    assert attributes["profile"] == {"string": "3g.20gb"}
    assert attributes["uuid"] == {"string": found.uuid}
    assert attributes["parentUUID"]["string"].startswith("GPU-")
    assert attributes["resource.kubernetes.io/pciBusID"] == {"string": "0000:0f:00.0"}
    assert {name: value["value"] for name, value in entry["capacity"].items()} == {
        "multiprocessors": "42",
        "copyEngines": "3",
        "decoders": "2",
        "encoders": "0",
        "jpegEngines": "0",
        "ofaEngines": "0",
        "memory": "19968Mi",
        **{f"memorySlice{number}": "1" for number in range(4, 8)},
    }


def test_on_ampere_only_a_gpu_in_mig_mode_is_partitioned_and_then_not_published_whole(
    tmp_path: Path,
) -> None:
    off = find("a100-40x8", tmp_path / "off", Features(dynamic_mig=True))
    assert [d.kind for d in off] == ["full"] * 8
    assert off.counter_sets == ()
    shown = with_gpu("a100-40x8", mig_mode="enabled")
    on = find(shown, tmp_path / "on", Features(dynamic_mig=True))
    assert on.get("gpu-0") is None
    parts = [d for d in on if d.kind == "mig-partition"]
    assert len(parts) == 7 + 7 + 4 + 3 + 2 + 1 + 1
    assert {d.gpu_name for d in parts} == {"gpu-0"}
    assert {"gpu-0-mig-1g5gb-19-0", "gpu-0-mig-1g5gb-me-20-6", "gpu-0-mig-7g40gb-0-0"} <= {
        d.name for d in parts
    }
    assert [c.name for c in on.counter_sets] == ["gpu-0-counter-set"]
    assert len(on) == len(parts) + 7


def test_on_hopper_the_whole_gpu_takes_all_that_its_partitions_share(tmp_path: Path) -> None:
    inventory = find("h100-80x8", tmp_path, Features(dynamic_mig=True))
    whole = inventory.get("gpu-5")
    [counters] = [c for c in inventory.counter_sets if c.name == "gpu-5-counter-set"]
    assert whole is not None
    assert whole.kind == "full"
    assert whole.consumes_counters[0].counters == counters.counters
    assert counters.counters == {
        "copy-engines": 8,
        "decoders": 7,
        "encoders": 0,
        "jpeg-engines": 7,
        "memory": 81152 * 2**20,
        "multiprocessors": 132,
        "ofa-engines": 1,
        **{f"memory-slice-{number}": 1 for number in range(8)},
    }
    part = inventory.get("gpu-5-mig-1g20gb-15-6")
    assert part is not None
    assert part.uuid is None
    assert "uuid" not in part.attributes
    assert part.consumes_counters[0].counters == {
        "copy-engines": 1,
        "decoders": 1,
        "encoders": 0,
        "jpeg-engines": 1,
        "memory": 20096 * 2**20,
        "multiprocessors": 26,
        "ofa-engines": 0,
        "memory-slice-6": 1,
        "memory-slice-7": 1,
    }


@pytest.mark.parametrize("shown", ["a100-80x8", "a30x4", "h100-80x8"])
def test_what_the_counters_allow_can_be_made(tmp_path: Path, shown: str) -> None:
    """The counters are the truth about the hardware: greedily fill a GPU, then make it all."""
    from nvml_driver.mig.instances import NvmlPartitions

    base = profile.load_profile(shown)
    gpu = base.gpus[0].model_copy(update={"mig_mode": "enabled"})
    only = base.model_copy(update={"gpus": (gpu,)})
    library = NvmlLibrary.load_simulated(only)
    roots = make_node(only, tmp_path)
    inventory = discover_devices(library, roots, features=Features(dynamic_mig=True))
    partitions = NvmlPartitions(library, roots)
    parts = [d for d in inventory if d.kind == "mig-partition"]
    for first in parts:
        left = dict(inventory.counter_sets[0].counters)
        made = []
        for part in [first, *parts]:
            wants = part.consumes_counters[0].counters
            if part.place is not None and all(left[name] >= n for name, n in wants.items()):
                left = {name: n - wants.get(name, 0) for name, n in left.items()}
                made.append(partitions.create_instance(part.place))
        assert made
        for instance in made:
            partitions.destroy_instance(instance)


def test_a_split_gpu_instance_or_one_without_compute_instance_is_left_out(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("a30x4")
    assert library.profile is not None
    roots = make_node(library.profile, tmp_path)
    with library.open_session() as nvml:
        gpu = nvml.nvmlDeviceGetHandleByIndex(0)
        split = nvml.nvmlDeviceCreateGpuInstance(gpu, 5)
        nvml.nvmlGpuInstanceCreateComputeInstance(split, 0)
        nvml.nvmlGpuInstanceCreateComputeInstance(split, 0)
        nvml.nvmlDeviceCreateGpuInstance(gpu, 14)
    inventory = discover_devices(library, roots)
    assert len(inventory) == 0
    reasons = "; ".join(inventory.left_out)
    assert "gpu-0-mig-2g12gb-5-0 left out: its GPU instance is split" in reasons
    assert "gpu-0-mig-1g6gb-14-2 left out: its GPU instance has no compute instance" in reasons


def test_a_gpu_of_vfio_pci_is_published_with_what_sysfs_tells(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("mixed")
    assert library.profile is not None
    roots = make_node(library.profile, tmp_path)
    entry = roots.sysfs / "bus" / "pci" / "devices" / "0000:87:00.0"
    # A BAR of 16 MiB of 32 bits, one of 64 GiB and one of 32 MiB of 64 bits.
    (entry / "resource").write_text(
        "0x00000000fa000000 0x00000000faffffff 0x0000000000040200\n"
        "0x0000018000000000 0x0000018fffffffff 0x000000000014220c\n"
        "0x0000019000000000 0x0000019001ffffff 0x000000000014220c\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    )
    roots.pci_ids.write_text("1000  Other\n\t26b9  Wrong\n10de  NVIDIA\n\t26b9  AD102GL [L40S]\n")
    inventory = discover_devices(library, roots, features=Features(vfio=True))
    found = inventory.get("gpu-vfio-0")
    assert found is not None
    assert (found.kind, found.minor, found.iommu_group) == ("vfio", None, 42)
    entry_ = describe_device(found)
    uuid = entry_["attributes"].pop("uuid")
    assert len(uuid["string"]) == 36
    assert entry_ == {
        "name": "gpu-vfio-0",
        "attributes": {
            "deviceID": {"string": "0x26b9"},
            "dra-conformance.dev/simulated": {"bool": True},
            "iommuFDEnabled": {"bool": False},
            "productName": {"string": "AD102GL [L40S]"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:87:00.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:80"},
            "type": {"string": "vfio"},
            "vendorID": {"string": "0x10de"},
        },
        "capacity": {"addressableMemory": {"value": "128Gi"}},
    }
    (roots.dev / "iommu").touch()
    (entry / "vfio-dev" / "vfio3").mkdir(parents=True)
    again = discover_devices(library, roots, features=Features(vfio=True)).get("gpu-vfio-0")
    assert again is not None
    assert again.attributes["iommuFDEnabled"].value is True
    assert again.iommufd == "vfio3"


def test_without_nvidias_driver_gpus_of_vfio_pci_are_still_published(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("mixed")
    Injector(library).fail("nvmlInit_v2", "DRIVER_NOT_LOADED")
    assert library.profile is not None
    roots = make_node(library.profile, tmp_path)
    found = discover_devices(library, roots, features=Features(vfio=True))
    assert [d.name for d in found] == ["gpu-vfio-0"]


@pytest.mark.parametrize(
    ("mode", "memory", "shares"),
    [("unlimited", ("0", "0"), None), ("memory", ("15Gi", "1Mi"), None), (5, ("0", "0"), "5")],
)
def test_shares_are_published_as_nvidias_driver_does(
    tmp_path: Path, mode: Any, memory: tuple[str, str], shares: str | None
) -> None:
    entry = describe_device(find("t4x4", tmp_path, Features(consumable_shares=mode)).devices[0])
    assert entry["allowMultipleAllocations"] is True
    default, least = memory
    assert entry["capacity"]["memory"] == {
        "value": "15Gi",
        "requestPolicy": {
            "default": default,
            "validRange": {"min": least, "max": "15Gi", "step": "1Mi"},
        },
    }
    own = entry["capacity"].get("shares", {}).get("value")
    assert own == shares


def test_memory_that_is_no_multiple_of_the_step_is_rounded_down(tmp_path: Path) -> None:
    shown = with_gpu(memory_bytes=15 * 2**30 + 4711)
    entry = describe_device(find(shown, tmp_path, Features(consumable_shares="memory")).devices[0])
    assert parse_quantity(entry["capacity"]["memory"]["value"]).as_int64() == 15 * 2**30


@pytest.mark.parametrize("wrong", [0, -1, "some"])
def test_features_that_cannot_be_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="consumable_shares must be"):
        Features(consumable_shares=wrong)


def test_numa_nodes_are_a_list_where_the_feature_is_on(tmp_path: Path) -> None:
    name = "resource.kubernetes.io/numaNode"
    plain = describe_device(find("a100-40x8", tmp_path / "a", Features()).devices[0])
    listed = describe_device(find("a100-40x8", tmp_path / "b", Features(numa_list=True)).devices[0])
    assert plain["attributes"][name] == {"int": 3}
    assert listed["attributes"][name] == {"ints": [3]}


def test_two_gpus_with_one_minor_number_are_not_published_twice(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated(with_gpu(index=1, minor=0))
    inventory = discover_devices(library, NodeRoots(sysfs=tmp_path))
    assert [d.name for d in inventory] == ["gpu-0", "gpu-2", "gpu-3"]
    assert inventory.left_out == ("gpu-0 left out: another device has the same name",)


@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "UNKNOWN"])
@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlDeviceGetGpuInstances"]
)
def test_mig_that_cannot_be_asked_leaves_the_gpu_out_with_a_reason(
    tmp_path: Path, function: str, error: str
) -> None:
    library = NvmlLibrary.load_simulated("mixed")
    assert library.profile is not None
    code = getattr(pynvml, f"NVML_ERROR_{error}")
    Injector(library).fail(function, code)
    if function.endswith("V"):
        Injector(library).fail("nvmlDeviceGetGpuInstanceProfileInfo", code)
    inventory = discover_devices(library, make_node(library.profile, tmp_path))
    assert {d.kind for d in inventory} == {"full"}
    unknown = function == "nvmlDeviceGetGpuInstances" and error != "NOT_SUPPORTED"
    reason = "its GPU instances cannot be listed" if unknown else "MIG mode is enabled"
    assert f"GPU 1 left out: {reason}" in inventory.left_out[0]
