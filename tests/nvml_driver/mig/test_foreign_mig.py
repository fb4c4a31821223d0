"""MIG devices that somebody else made, beside those that this driver could make."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from nvml_driver.core import DriverCore
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.devices.slices import resource_slices
from nvml_driver.errors import PrepareError
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.model.inventory import Device, Inventory
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import Features
from nvml_driver.simulated.node import make_node
from tests.nvml_driver.helpers import make_claim, options_below, result
from tests.nvml_driver.injecting import Injector
from tests.nvml_driver.published import problems

DYNAMIC = Features(dynamic_mig=True)
H100_1G, H100_3G = 19, 9  # ids of profiles 1g.10gb and 3g.40gb


def find(library: NvmlLibrary, root: Path) -> Inventory:
    assert library.profile is not None
    return discover_devices(library, make_node(library.profile, root), salt="n", features=DYNAMIC)


def driver(root: Path, library: NvmlLibrary, *, dynamic: bool = True) -> DriverCore:
    options = options_below(root, features=Features(dynamic_mig=dynamic))
    return DriverCore(options, library)


def names(inventory: Inventory, gpu: str, kind: str) -> list[str]:
    return [d.name for d in inventory if d.gpu_name == gpu and d.kind == kind]


def fits(device: Device, inventory: Inventory) -> bool:
    """Whether a device could be allocated alone, by the counters of its slices."""
    sets = {each.name: each.counters for each in inventory.counter_sets}
    return all(
        amount <= sets[used.counter_set][counter]
        for used in device.consumes_counters
        for counter, amount in used.counters.items()
    )


def test_partitions_in_the_place_of_static_mig_devices_are_not_published(tmp_path: Path) -> None:
    """The shipped profile ``mixed``: gpu-1 has 2g.10gb at 0, 1g.5gb at 2 and 3g.20gb at 4."""
    inventory = find(NvmlLibrary.load_simulated("mixed"), tmp_path)
    assert names(inventory, "gpu-1", "mig") == [
        "gpu-1-mig-1g5gb-19-2",
        "gpu-1-mig-2g10gb-14-0",
        "gpu-1-mig-3g20gb-9-4",
    ]
    # Only memory slice 3 is free.
    assert names(inventory, "gpu-1", "mig-partition") == [
        "gpu-1-mig-1g5gb-19-3",
        "gpu-1-mig-1g5gb-me-20-3",
    ]
    assert {each.place.start for each in inventory.foreign_instances} == {0, 2, 4}
    found = [d for d in inventory if d.gpu_name == "gpu-1"]
    places = [d.place for d in found if d.kind == "mig" and d.place is not None]
    for part in (d.place for d in found if d.kind == "mig-partition"):
        assert part is not None
        assert not any(part.overlaps(place) for place in places)
    assert inventory.left_out == ()
    assert problems(resource_slices(inventory, driver_name="d.io", node_name="n")) == []


def test_counters_have_what_static_mig_devices_leave(tmp_path: Path) -> None:
    inventory = find(NvmlLibrary.load_simulated("mixed"), tmp_path)
    [counters] = inventory.counter_sets
    # 98 multiprocessors and 7 copy engines of 7g.40gb, less 28 + 14 + 42 and 2 + 1 + 3.
    assert counters.counters["multiprocessors"] == 98 - 28 - 14 - 42
    assert counters.counters["copy-engines"] == 7 - 2 - 1 - 3
    assert counters.counters["memory"] == (40192 - 9856 - 4864 - 19968) * 2**20
    slices = {n: c for n, c in counters.counters.items() if n.startswith("memory-slice-")}
    assert [n for n, count in slices.items() if count] == ["memory-slice-3"]
    for device in inventory:
        if device.kind == "mig":
            assert device.consumes_counters == (), "it is there, allocated or not"
        else:
            assert fits(device, inventory), f"{device.name} is published and can never be had"


def test_every_published_partition_can_be_made_wherever_static_ones_are(tmp_path: Path) -> None:
    """What the slices offer is what NVML can do: each partition alone, in every situation."""
    library = NvmlLibrary.load_simulated("h100-80x8")
    partitions = NvmlPartitions(library, make_node_of(library, tmp_path))
    Injector(library).set_mig_mode(0, enabled=True)
    for profile_id, start in ((H100_3G, 4), (H100_1G, 0), (H100_1G, 3)):
        Injector(library).create_mig(0, profile_id, start)
        inventory = find(library, tmp_path)
        assert inventory.get("gpu-0") is None, "somebody has a part of it"
        offered = [d for d in inventory if d.gpu_name == "gpu-0" and d.kind == "mig-partition"]
        assert offered
        for device in offered:
            assert device.place is not None
            assert fits(device, inventory)
            partitions.destroy_instance(partitions.create_instance(device.place))
    Injector(library).create_mig(0, H100_1G, 1)
    Injector(library).create_mig(0, H100_1G, 2)
    full = find(library, tmp_path)
    assert names(full, "gpu-0", "mig-partition") == []
    assert len(names(full, "gpu-0", "mig")) == 5
    assert "gpu-0-counter-set" not in {each.name for each in full.counter_sets}


def make_node_of(library: NvmlLibrary, root: Path) -> Any:
    assert library.profile is not None
    return make_node(library.profile, root)


def test_two_partitions_that_are_allocated_together_can_be_made_together(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("h100-80x8")
    partitions = NvmlPartitions(library, make_node_of(library, tmp_path))
    Injector(library).set_mig_mode(0, enabled=True)
    Injector(library).create_mig(0, H100_3G, 0)
    inventory = find(library, tmp_path)
    offered = [d for d in inventory if d.gpu_name == "gpu-0" and d.kind == "mig-partition"]
    [counters] = [each for each in inventory.counter_sets if each.name == "gpu-0-counter-set"]
    tried = 0
    for one, two in combinations(offered, 2):
        used = [one.consumes_counters[0].counters, two.consumes_counters[0].counters]
        if any(
            sum(counts.get(name, 0) for counts in used) > amount
            for name, amount in counters.counters.items()
        ):
            continue
        if one.place is None or two.place is None or one.place.profile == "1g.10gb+me":
            continue
        if two.place.profile == "1g.10gb+me":
            continue  # there is one at most, which no counter says; upstream's tables neither
        made = [partitions.create_instance(one.place), partitions.create_instance(two.place)]
        for each in made:
            partitions.destroy_instance(each)
        tried += 1
    assert tried > 5


def test_a_driver_that_starts_again_does_not_take_its_own_mig_devices_for_foreign(
    tmp_path: Path,
) -> None:
    library = NvmlLibrary.load_simulated("h100-80x8")
    core = driver(tmp_path, library)
    before = core.inventory
    core.prepare(make_claim(result("gpu-0-mig-1g10gb-19-0")))
    again = driver(tmp_path, library)
    assert again.inventory == before
    assert again.discover_devices(library) == before
    again.unprepare("uid-1")
    assert again.discover_devices(library) == before


def test_a_static_mig_device_in_the_place_of_a_claims_one_is_foreign(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("h100-80x8")
    core = driver(tmp_path, library)
    [made] = core.prepare(make_claim(result("gpu-0-mig-1g10gb-19-0")))
    assert made.made is not None
    Injector(library).destroy_mig(0, made.made.gi_id)
    Injector(library).create_mig(0, H100_1G, 0)
    found = core.discover_devices(library)
    assert names(found, "gpu-0", "mig") == ["gpu-0-mig-1g10gb-19-0"]
    core.unprepare("uid-1")
    assert core.discover_devices(library) == found, "it is not the driver's to destroy"


def test_a_static_mig_device_that_is_gone_is_not_prepared(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("mixed")
    core = driver(tmp_path, library, dynamic=False)
    name = "gpu-1-mig-3g20gb-9-4"
    [prepared] = core.prepare(make_claim(result(name)))
    assert core.prepare(make_claim(result(name))) == [prepared]
    Injector(library).destroy_mig(1, 2)
    with pytest.raises(PrepareError, match=f"MIG device {name} is gone from this node"):
        core.prepare(make_claim(result(name)))
    core.unprepare("uid-1")
    with pytest.raises(PrepareError, match="was destroyed since it was published"):
        core.prepare(make_claim(result(name), uid="uid-2"))
    assert core.list_records() == []
    Injector(library).create_mig(1, 9, 4)  # another device in the same place is not the same
    with pytest.raises(PrepareError, match="was destroyed since it was published"):
        core.prepare(make_claim(result(name), uid="uid-2"))
    core.set_inventory(core.discover_devices(library))
    core.prepare(make_claim(result(name), uid="uid-2"))


def test_a_claims_mig_device_that_was_destroyed_is_made_anew_when_it_is_prepared_again(
    tmp_path: Path,
) -> None:
    library = NvmlLibrary.load_simulated("h100-80x8")
    core = driver(tmp_path, library)
    claim = make_claim(result("gpu-0-mig-1g10gb-19-0"))
    [one] = core.prepare(claim)
    assert one.made is not None
    Injector(library).destroy_mig(0, one.made.gi_id)
    [two] = core.prepare(claim)
    assert two.made is not None
    assert (two.made.place, two.made.uuid != one.made.uuid) == (one.made.place, True)
    assert two.cdi_device_ids == one.cdi_device_ids
    assert core.prepare(claim) == [two]


def test_a_partition_that_what_is_left_cannot_hold_is_not_published(tmp_path: Path) -> None:
    """NVML tells the placements of one profile only, so the counters are those of that one."""
    library = NvmlLibrary.load_simulated("mixed")
    Injector(library).fail(
        "nvmlDeviceGetGpuInstancePossiblePlacements_v2", "INVALID_ARGUMENT", first=3
    )
    inventory = find(library, tmp_path)
    assert len(names(inventory, "gpu-1", "mig")) == 3
    assert all(fits(device, inventory) for device in inventory)
    slices = resource_slices(inventory, driver_name="d.io", node_name="n")
    assert problems(slices) == []
