"""Failures that were reported of DRA drivers, one by one, against this one.

What is not here is tested where it belongs:

==============================================================  ==================================
claims whose object is gone (dra-driver-nvidia-gpu#1278)        test_collector
kubelet restart deletes slices (dra-driver-nvidia-gpu#330)      test_publish
never prepared, prepared twice, claim absent (k/k#131957)       test_core, test_plugin
same device twice in an admin claim (k/k#131269)                test_core
sticky taints, XIDs that hide others (dra-driver-nvidia#1455)   test_health, test_devicewatch
static MIG device and its parent both announced (#719)          test_devices
stale prepare retry after unprepare (#1205)                     test_plugin
crash at any point (#1080, #1100)                               test_crash, test_histories
==============================================================  ==================================
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kube.cdi.reading import resolve
from nvml_driver.core import DriverCore
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.errors import CheckpointError, PrepareError
from nvml_driver.nvml.library import NvmlLibrary
from tests.nvml_driver import claim_invariants
from tests.nvml_driver.fake_mig import PARTITIONS, FileMig, partitionable
from tests.nvml_driver.helpers import (
    NOWHERE,
    make_claim,
    make_core,
    makes_device_files,
    options_below,
    result,
    with_gpu,
)


def partitioned(root: Path) -> tuple[DriverCore, FileMig]:
    """A driver whose gpu-0 can be partitioned."""
    library = NvmlLibrary.load_simulated("t4x4")
    mig = FileMig(root / "mig")
    options = options_below(root)
    found = partitionable(discover_devices(library, NOWHERE, salt="node-a"))
    return DriverCore(options, library, partitions=mig, inventory=found), mig


def fail_the_second(mig: FileMig) -> None:
    """Have creation fail while there is a MIG device."""
    create = mig.create_instance

    def fail_second(place: Any) -> Any:
        mig.fail_creation = bool(mig.all())
        return create(place)

    mig.create_instance = fail_second  # type: ignore[method-assign]


def reboot(root: Path, boot: str) -> None:
    shutil.rmtree(root / "cdi", ignore_errors=True)
    shutil.rmtree(root / "mig", ignore_errors=True)
    (root / "state").mkdir(exist_ok=True)
    (root / "state" / "boot_id").write_text(boot)


def test_a_reboot_empties_the_cdi_directory_and_prepare_brings_the_spec_back(
    tmp_path: Path,
) -> None:
    """kubernetes/kubernetes#141433, ROCm/k8s-gpu-dra-driver#75, dra-driver-nvidia-gpu#951."""
    reboot(tmp_path, "first")
    claim = make_claim(result("gpu-1"))
    driver, _ = partitioned(tmp_path)
    before = driver.prepare(claim)
    reboot(tmp_path, "second")
    driver, _ = partitioned(tmp_path)
    assert driver.prepare(claim) == before
    resolve([tmp_path / "cdi"], before[0].cdi_device_ids)
    document = json.loads((tmp_path / "state" / "checkpoint.json").read_text())
    assert document["data"]["bootID"] == "second"


def test_a_reboot_takes_mig_devices_and_prepare_makes_them_again(tmp_path: Path) -> None:
    reboot(tmp_path, "first")
    claim = make_claim(result(PARTITIONS[0]))
    driver, _ = partitioned(tmp_path)
    driver.prepare(claim)
    reboot(tmp_path, "second")
    driver, mig = partitioned(tmp_path)
    assert driver.list_prepared() == {}
    assert mig.all() == []
    driver.prepare(claim)
    assert len(mig.all()) == 1
    claim_invariants.check(driver)


def test_after_a_reboot_another_gpu_with_the_same_name_is_not_taken_for_the_old_one(
    tmp_path: Path,
) -> None:
    make_core(tmp_path).prepare(make_claim(result("gpu-0")))
    (tmp_path / "state" / "boot_id").unlink()
    other = with_gpu(uuid="GPU-00000000-1111-2222-3333-444444444444")
    assert make_core(tmp_path, shown=other).list_prepared() == {}
    assert list((tmp_path / "cdi").iterdir()) == []


@pytest.mark.parametrize(
    ("held", "wanted", "refused"),
    [
        ("gpu-0", PARTITIONS[0], True),
        (PARTITIONS[0], "gpu-0", True),
        (PARTITIONS[0], PARTITIONS[3], True),
        (PARTITIONS[2], PARTITIONS[3], False),
        (PARTITIONS[0], "gpu-1", False),
    ],
    ids=["part of a held GPU", "GPU of a held part", "same place", "other place", "other GPU"],
)
def test_a_gpu_and_its_parts_are_not_given_to_two_claims(
    tmp_path: Path, held: str, wanted: str, refused: bool
) -> None:
    """kubernetes/kubernetes#141471; the parts are what counters normally keep apart."""
    driver, _ = partitioned(tmp_path)
    driver.prepare(make_claim(result(held), uid="one"))
    second = make_claim(result(wanted), uid="two")
    if refused:
        with pytest.raises(PrepareError, match=f"{wanted}.* is still prepared for .*uid one"):
            driver.prepare(second)
    else:
        driver.prepare(second)
    driver.prepare(make_claim(result("gpu-0", adminAccess=True), uid="admin"))
    claim_invariants.check(driver)


def test_one_claim_cannot_have_a_gpu_and_a_part_of_it(tmp_path: Path) -> None:
    driver, mig = partitioned(tmp_path)
    with pytest.raises(PrepareError, match="cannot be used together"):
        driver.prepare(make_claim(result("gpu-0"), result(PARTITIONS[0], "part")))
    with pytest.raises(PrepareError, match="cannot be used together"):
        driver.prepare(make_claim(result("gpu-1", "a"), result("gpu-1", "b")))
    assert (driver.list_records(), mig.all()) == ([], [])


def test_a_refused_checkpoint_is_kept_aside_once_however_often_the_driver_restarts(
    tmp_path: Path,
) -> None:
    make_core(tmp_path).prepare(make_claim(result("gpu-0")))
    path = tmp_path / "state" / "checkpoint.json"
    path.write_text(path.read_text()[:-9])
    for _ in range(3):
        with pytest.raises(CheckpointError, match="a copy is kept in"):
            make_core(tmp_path)
    [copy] = path.parent.glob("checkpoint.json.refused-*")
    assert copy.read_bytes() == path.read_bytes()


def test_a_checkpoint_that_is_removed_under_a_running_driver_stops_it_from_guessing(
    tmp_path: Path,
) -> None:
    driver = make_core(tmp_path)
    driver.prepare(make_claim(result("gpu-0")))
    path = tmp_path / "state" / "checkpoint.json"
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(CheckpointError, match="was removed while the driver runs"):
        driver.prepare(make_claim(result("gpu-0"), uid="other"))
    path.write_bytes(content)
    assert list(driver.list_prepared()) == ["uid-1"]


def test_a_spec_that_cannot_be_written_takes_the_mig_device_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubernetes-sigs/dra-driver-cpu#169: state changed, then the CDI spec failed."""
    driver, mig = partitioned(tmp_path)

    def full(*_: object, **__: object) -> None:
        assert len(mig.all()) == 2
        raise OSError(28, "No space left on device")

    claim = make_claim(result(PARTITIONS[0]), result(PARTITIONS[1], "two"))
    with monkeypatch.context() as patched:
        patched.setattr("nvml_driver.prepare.claim_files.write_atomic", full)
        with pytest.raises(PrepareError, match="No space left"):
            driver.prepare(claim)
    assert (mig.all(), driver.list_records()) == ([], [])
    driver.prepare(claim)
    claim_invariants.check(driver)


def test_when_the_second_mig_device_fails_the_first_goes_too(tmp_path: Path) -> None:
    """dra-driver-nvidia-gpu#1452."""
    driver, mig = partitioned(tmp_path)
    fail_the_second(mig)
    with pytest.raises(PrepareError, match="no compute instance left"):
        driver.prepare(make_claim(result(PARTITIONS[0]), result(PARTITIONS[1], "two")))
    assert (mig.all(), driver.list_records()) == ([], [])


def test_a_rollback_that_fails_is_taken_up_again(tmp_path: Path) -> None:
    driver, mig = partitioned(tmp_path)
    mig.busy = {1}
    fail_the_second(mig)
    with pytest.raises(PrepareError):
        driver.prepare(make_claim(result(PARTITIONS[0]), result(PARTITIONS[1], "two")))
    assert len(mig.all()) == 1
    with pytest.raises(PrepareError, match="still prepared"):
        driver.prepare(make_claim(result("gpu-0"), uid="other"))
    driver, mig = partitioned(tmp_path)  # restarted, and the GPU lets go by now
    assert (mig.all(), driver.list_records()) == ([], [])


def test_a_mig_device_in_use_keeps_its_claim_until_unprepare_works(tmp_path: Path) -> None:
    driver, mig = partitioned(tmp_path)
    driver.prepare(make_claim(result(PARTITIONS[0])))
    mig.busy = {1}
    with pytest.raises(PrepareError, match="in use"):
        driver.unprepare("uid-1")
    with pytest.raises(PrepareError, match="still prepared"):
        driver.prepare(make_claim(result("gpu-0"), uid="other"))
    mig.busy = set()
    driver.unprepare("uid-1")
    assert (mig.all(), driver.list_records(), list((tmp_path / "cdi").iterdir())) == ([], [], [])


def test_somebody_elses_mig_device_is_neither_used_nor_destroyed(tmp_path: Path) -> None:
    """dra-driver-nvidia-gpu#149: MIG devices that an administrator made by hand."""
    driver, mig = partitioned(tmp_path)
    place = next(d.place for d in driver.inventory if d.name == PARTITIONS[0])
    assert place is not None
    foreign = mig.create_instance(place)
    with pytest.raises(PrepareError, match="that this driver did not make"):
        driver.prepare(make_claim(result(PARTITIONS[0])))
    driver, mig = partitioned(tmp_path)
    assert mig.all() == [foreign]


def test_a_node_without_devices_publishes_no_empty_slice(tmp_path: Path) -> None:
    """dra-driver-nvidia-gpu#1008."""
    driver = make_core(tmp_path)
    driver.set_inventory(driver.inventory.with_devices(()))
    assert driver.resource_slices() == []


@pytest.mark.needs_root
@makes_device_files
def test_a_device_file_that_is_missing_fails_the_claim(tmp_path: Path) -> None:
    """dra-driver-nvidia-gpu#1380, #1144: a container would start without its GPU."""
    driver = make_core(tmp_path, device_nodes="create")
    driver._files._makes_device_files = False  # as with real GPUs, nobody makes them
    (tmp_path / "state" / "dev" / "nvidia1").unlink()
    with pytest.raises(PrepareError, match="nvidia1 is missing"):
        driver.prepare(make_claim(result("gpu-1")))
    assert driver.list_records() == []


def test_a_gpu_that_came_back_as_another_is_not_the_claims_any_more(tmp_path: Path) -> None:
    driver, _ = partitioned(tmp_path)
    claim = make_claim(result("gpu-1"))
    driver.prepare(claim)
    from dataclasses import replace

    devices = tuple(
        replace(d, uuid="GPU-other") if d.name == "gpu-1" else d for d in driver.inventory
    )
    driver.set_inventory(driver.inventory.with_devices(devices))
    with pytest.raises(PrepareError, match="gpu-1 is gone"):
        driver.prepare(claim)
    assert list(driver.list_prepared()) == ["uid-1"], "its container may still use it"


def test_a_spec_that_was_lost_while_its_gpu_was_away_comes_back_with_the_gpu(
    tmp_path: Path,
) -> None:
    core = make_core(tmp_path)
    whole = core.inventory
    [device] = core.prepare(make_claim(result("gpu-1")))
    rest = tuple(each for each in whole if each.name != "gpu-1")
    core.set_inventory(whole.with_devices(rest))
    for path in (tmp_path / "cdi").iterdir():
        path.unlink()
    core.set_inventory(whole)
    assert resolve([tmp_path / "cdi"], device.cdi_device_ids).device_nodes
