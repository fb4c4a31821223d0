"""Time slices of GPUs, with a recording stand-in for nvidia-smi: no GPU obeys here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nvml_driver.core import DriverCore
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.errors import PrepareError
from nvml_driver.model.prepared import ClaimState
from nvml_driver.nvml.installation import DriverRoot
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.prepare.timeslicing import NvidiaSmi, TimeSlices, interval_of
from tests.nvml_driver.fake_smi import RecordingSmi
from tests.nvml_driver.helpers import NOWHERE, gpu_config, make_claim, opaque, options_below, result


@pytest.fixture
def smi(tmp_path: Path) -> RecordingSmi:
    return RecordingSmi(tmp_path / "driver")


def driver(root: Path, smi: DriverRoot, **more: Any) -> DriverCore:
    library = NvmlLibrary.load_simulated("t4x4")
    options = options_below(root, driver_root=smi)
    return DriverCore(options, library, time_slices=TimeSlices(NvidiaSmi(smi), **more))


@pytest.fixture
def core(tmp_path: Path, smi: RecordingSmi) -> DriverCore:
    return driver(tmp_path, smi.root)


def asking(slices: str, *devices: str, uid: str = "uid-1", **more: Any) -> dict[str, Any]:
    results = [result(name, f"r{index}", **more) for index, name in enumerate(devices)]
    return make_claim(*results, uid=uid, config=[opaque(gpu_config(slices))])


def uuid(core: DriverCore, name: str) -> str:
    device = core.inventory.get(name)
    assert device is not None
    assert device.uuid is not None
    return device.uuid


def commands(uuid: str, number: int) -> list[str]:
    return [f"-i {uuid} -c DEFAULT", f"compute-policy -i {uuid} --set-timeslice {number}"]


@pytest.mark.parametrize(
    ("slices", "number"), [("Default", 0), ("Short", 1), ("Medium", 2), ("Long", 3)]
)
def test_an_interval_is_set_for_the_claim_and_reset_after_it(
    smi: RecordingSmi, core: DriverCore, slices: str, number: int
) -> None:
    core.prepare(asking(slices, "gpu-0", "gpu-2"))
    zero, two = uuid(core, "gpu-0"), uuid(core, "gpu-2")
    assert smi.asked() == commands(zero, number) + commands(two, number)
    core.unprepare("uid-1")
    assert smi.asked() == commands(zero, 0) + commands(two, 0)
    core.unprepare("uid-1")
    assert smi.asked() == []


def test_without_configuration_nothing_is_asked_of_the_tool(
    smi: RecordingSmi, core: DriverCore
) -> None:
    core.prepare(make_claim(result("gpu-0")))
    core.unprepare("uid-1")
    assert smi.asked() == []


def test_simulated_gpus_are_not_set(smi: RecordingSmi, core: DriverCore) -> None:
    plain = DriverCore(core.options, NvmlLibrary.load_simulated("t4x4"))
    plain.prepare(asking("Long", "gpu-0"))
    plain.unprepare("uid-1")
    assert smi.asked() == []


def test_real_gpus_are_set_with_the_tool_of_the_drivers_root(
    tmp_path: Path, smi: RecordingSmi, core: DriverCore
) -> None:
    """The inventory is said to be real; what it was found with is the simulation still."""
    library = NvmlLibrary.load_simulated("t4x4")
    inventory = replace(discover_devices(library, NOWHERE, salt="node-a"), simulated=False)
    (tmp_path / "dev").mkdir()
    options = replace(core.options, state_dir=tmp_path / "real")
    real = DriverCore(options, library, inventory=inventory)
    with pytest.raises(PrepareError, match="is missing"):  # there are no device files here
        real.prepare(asking("Medium", "gpu-1"))
    assert smi.asked() == commands(uuid(real, "gpu-1"), 2) + commands(uuid(real, "gpu-1"), 0)


def test_a_failure_is_rolled_back_and_leaves_the_gpu_to_others(
    tmp_path: Path, smi: RecordingSmi, core: DriverCore
) -> None:
    zero, one = uuid(core, "gpu-0"), uuid(core, "gpu-1")
    smi.fail((4, f"-i {one}"))
    with pytest.raises(
        PrepareError, match=r"cannot be prepared: `nvidia-smi -i .*\(exit status 4\): said by the"
    ):
        core.prepare(asking("Long", "gpu-0", "gpu-1"))
    asked = smi.asked()
    assert asked[:2] == commands(zero, 3)
    assert asked[3:5] == commands(zero, 0), "what was set is reset"
    assert core.list_records() == []
    assert not list((tmp_path / "cdi").glob("*.json"))
    core.prepare(make_claim(result("gpu-1"), uid="other"))


def test_a_tool_that_hangs_costs_the_claim_a_bounded_time(
    tmp_path: Path, smi: RecordingSmi
) -> None:
    smi.hang()
    core = driver(tmp_path, smi.root, command_seconds=0.2, budget_seconds=0.3)
    with pytest.raises(PrepareError, match=r"did not end within 0\.2 s"):
        core.prepare(asking("Long", "gpu-0", "gpu-1", "gpu-2"))
    assert core.list_records() == []


def test_what_cannot_be_reset_keeps_the_claim_until_it_can(
    tmp_path: Path, smi: RecordingSmi, core: DriverCore
) -> None:
    core.prepare(asking("Long", "gpu-0"))
    smi.fail((255, "--set-timeslice 0"))
    for _ in range(2):
        with pytest.raises(PrepareError, match="cannot be unprepared"):
            core.unprepare("uid-1")
    assert [record.state for record in core.list_records()] == [ClaimState.PREPARE_STARTED]
    with pytest.raises(PrepareError, match="still prepared"):
        core.prepare(make_claim(result("gpu-0"), uid="other"))
    smi.fail()
    smi.asked()
    again = driver(tmp_path, smi.root)  # the start tries, too
    assert smi.asked() == commands(uuid(core, "gpu-0"), 0)
    assert again.list_records() == []


@pytest.mark.parametrize("status", [6, 15, 3])
def test_a_gpu_that_is_gone_does_not_keep_its_claim(
    smi: RecordingSmi, core: DriverCore, status: int
) -> None:
    core.prepare(asking("Long", "gpu-0"))
    smi.fail((status, "-i"))
    core.unprepare("uid-1")
    assert core.list_records() == []


def test_shares_of_a_gpu_have_one_interval_which_lasts_as_long_as_one_of_them(
    smi: RecordingSmi, core: DriverCore
) -> None:
    gpu = uuid(core, "gpu-0")
    core.prepare(asking("Long", "gpu-0", uid="one", shareID="s1"))
    core.prepare(asking("Long", "gpu-0", uid="two", shareID="s2"))
    with pytest.raises(
        PrepareError, match=r"has shares of it with time slices Long, so they cannot be Short"
    ):
        core.prepare(asking("Short", "gpu-0", uid="three", shareID="s3"))
    core.prepare(make_claim(result("gpu-0", shareID="s4"), uid="four"))
    smi.asked()
    core.unprepare("one")
    assert smi.asked() == []
    core.unprepare("two")
    assert smi.asked() == commands(gpu, 0)


def test_admin_access_and_mig_devices_set_nothing(smi: RecordingSmi, core: DriverCore) -> None:
    [device] = core.prepare(asking("Long", "gpu-0", adminAccess=True))
    core.unprepare("uid-1")
    assert smi.asked() == []
    assert interval_of(replace(device, admin_access=False)) == "Long"
    assert interval_of(replace(device, admin_access=False, kind="mig")) is None


def test_without_the_tool_only_the_default_can_be_had(tmp_path: Path) -> None:
    core = driver(tmp_path, DriverRoot(container=tmp_path / "nothing"))
    core.prepare(asking("Default", "gpu-0"))
    core.unprepare("uid-1")
    with pytest.raises(PrepareError, match=r"nvidia-smi is not in .*--nvidia-driver-root"):
        core.prepare(asking("Short", "gpu-0"))
    assert core.list_records() == []


def test_preparing_again_sets_again_what_a_reboot_took(
    tmp_path: Path, smi: RecordingSmi, core: DriverCore
) -> None:
    claim = asking("Long", "gpu-0")
    devices = core.prepare(claim)
    smi.asked()
    (tmp_path / "state" / "boot_id").write_text("another\n")
    again = driver(tmp_path, smi.root)
    assert again.prepare(claim) == devices
    assert smi.asked() == commands(uuid(core, "gpu-0"), 3)


def test_the_tool_finds_the_drivers_library_below_another_root(
    tmp_path: Path, smi: RecordingSmi
) -> None:
    library = smi.folder / "usr" / "lib64" / "libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    NvidiaSmi(smi.root).run(["-L"], 5)
    assert (smi.folder / "preload").read_text().strip() == str(library)
