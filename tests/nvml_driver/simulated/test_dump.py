"""Recording GPUs into a profile that shows them again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest
import yaml
from typer.testing import CliRunner

from nvml_driver import dump
from nvml_driver.cli import app
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.errors import DriverError, NvmlUnavailableError
from nvml_driver.model.inventory import Device, Inventory
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import Features
from nvml_driver.simulated import list_shipped_profiles, profile
from nvml_driver.simulated.node import make_node
from tests.nvml_driver.helpers import make_core, with_gpu
from tests.nvml_driver.injecting import Injector

DYNAMIC = Features(dynamic_mig=True)


def seen(shown: profile.Profile, root: Path) -> Inventory:
    return discover_devices(
        NvmlLibrary.load_simulated(shown), make_node(shown, root), features=DYNAMIC
    )


def _but_uuid(device: Device) -> Device:
    """A MIG device's UUID comes from the order in which they were made, which is not recorded."""
    if device.instance is None:
        return device
    attributes = {name: value for name, value in device.attributes.items() if name != "uuid"}
    instance = replace(device.instance, uuid=None)
    return replace(device, uuid=None, instance=instance, attributes=attributes)


@pytest.mark.parametrize("name", list_shipped_profiles())
def test_a_record_shows_the_same_devices_again(tmp_path: Path, name: str) -> None:
    shown = profile.load_profile(name)
    roots = make_node(shown, tmp_path / "before")
    document = dump.record_gpus(
        NvmlLibrary.load_simulated(shown), roots, name="copy", keep_uuids=True
    )
    again = profile.parse_profile(json.dumps(document), "the record")
    before, after = seen(shown, tmp_path / "a"), seen(again, tmp_path / "b")
    assert [_but_uuid(device) for device in after] == [_but_uuid(device) for device in before]
    assert after.counter_sets == before.counter_sets
    assert len(again.gpus) == len(shown.shown)


def test_a_recorded_gpu_is_published_as_the_real_one_was(tmp_path: Path) -> None:
    real = yaml.safe_load(Path(__file__).with_name("h200-slices.yaml").read_text())
    [simulated] = make_core(tmp_path, shown="h200x1", node="vm").resource_slices()
    for name in ("uuid", "dra-conformance.dev/simulated"):
        del simulated["spec"]["devices"][0]["attributes"][name]
    assert simulated == real


def test_uuids_are_replaced_unless_they_are_asked_for(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("t4x4")
    assert library.profile is not None
    real = {gpu.uuid for gpu in library.profile.gpus}
    roots = make_node(library.profile, tmp_path)
    replaced = {gpu["uuid"] for gpu in dump.record_gpus(library, roots, name="x")["gpus"]}
    assert len(replaced) == 4
    assert replaced.isdisjoint(real)


def test_recording_changes_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    library = NvmlLibrary.load_simulated("mixed", state_file=state)
    assert library.profile is not None
    roots = make_node(library.profile, tmp_path)
    for function in ("nvmlDeviceSetMigMode", "nvmlDeviceCreateGpuInstanceWithPlacement"):
        Injector(library).fail(function, "UNKNOWN")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    dump.record_gpus(library, roots, name="x")
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_what_a_gpu_does_not_support_is_left_out_of_the_record(tmp_path: Path) -> None:
    shown = with_gpu(memory_bytes=None, sysfs_path=None, brand=4711)
    document = dump.record_gpus(
        NvmlLibrary.load_simulated(shown), make_node(shown, tmp_path), name="x"
    )
    first = document["gpus"][0]
    assert first["brand"] == 4711
    assert {"memoryBytes", "sysfsPath", "numaNode", "migMode", "mig"}.isdisjoint(first)
    assert profile.parse_profile(json.dumps(document), "x").gpus[1].memory_bytes == 15 * 2**30


def test_a_lost_gpu_cannot_be_recorded(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("t4x4")
    Injector(library).fail("*", pynvml.NVML_ERROR_GPU_IS_LOST, gpu=2)
    assert library.profile is not None
    with pytest.raises(DriverError, match="GPU 2 cannot be recorded"):
        dump.record_gpus(library, make_node(library.profile, tmp_path), name="x")


def test_a_node_without_gpus_has_nothing_to_record(tmp_path: Path) -> None:
    empty = profile.load_profile("t4x4").model_copy(update={"gpus": ()})
    with pytest.raises(NvmlUnavailableError, match="nothing to record"):
        dump.record_gpus(NvmlLibrary.load_simulated(empty), make_node(empty, tmp_path), name="x")


def test_the_command_prints_a_profile(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["dump", "--simulate", "a30x4", "--name", "mine"])
    assert done.exit_code == 0
    again = profile.parse_profile(done.stdout, "printed")
    assert again.name == "mine"
    assert [gpu.name for gpu in again.gpus] == ["NVIDIA A30"] * 4
