"""Libraries and tools of the driver in containers, found below a made-up driver root."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube.cdi.reading import resolve
from nvml_driver.cdi import specs as cdi
from nvml_driver.cdi.driver_libraries import DriverLibraries, describe_loaded_library
from nvml_driver.core import DriverCore
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.nvml.installation import DriverRoot
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions
from nvml_driver.simulated import smi
from tests.nvml_driver.helpers import NOWHERE, make_claim, makes_device_files, options_below, result

VERSION = "580.95.05"


def install(root: Path, folder: str = "usr/lib64", version: str = VERSION) -> DriverRoot:
    """A driver: libraries with their links, a tool, and what is not the driver's."""
    lib = root / folder
    lib.mkdir(parents=True, exist_ok=True)
    for name in ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"):
        (lib / f"{name}.so.{version}").write_bytes(b"elf")
        (lib / f"{name}.so.1").symlink_to(f"{name}.so.{version}")
    (lib / "libcuda.so").symlink_to("libcuda.so.1")
    (lib / "libnvidia-nvvm70.so.4").write_bytes(b"elf")
    (lib / "libc.so.6").write_bytes(b"elf")
    (lib / "libcuda.so.470.1").write_bytes(b"left by another driver")
    tool = root / "usr" / "bin" / "nvidia-smi"
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_bytes(b"elf")
    return DriverRoot(host=Path("/run/nvidia/driver"), container=root)


def mounts(edits: dict[str, Any]) -> dict[str, str]:
    """Path in the container to path on the node."""
    return {mount["containerPath"]: mount["hostPath"] for mount in edits.get("mounts", ())}


def test_a_container_gets_the_libraries_of_the_drivers_version_by_all_their_names(
    tmp_path: Path,
) -> None:
    edits = DriverLibraries(install(tmp_path)).find_edits()
    lib, host = "/usr/lib64", "/run/nvidia/driver/usr/lib64"
    assert mounts(edits) == {
        **{
            f"{lib}/{name}": f"{host}/libcuda.so.{VERSION}"
            for name in (f"libcuda.so.{VERSION}", "libcuda.so.1", "libcuda.so")
        },
        **{
            f"{lib}/{name}.so.{end}": f"{host}/{name}.so.{VERSION}"
            for name in ("libnvidia-ml", "libnvidia-ptxjitcompiler")
            for end in (VERSION, "1")
        },
        f"{lib}/libnvidia-nvvm70.so.4": f"{host}/libnvidia-nvvm70.so.4",
        "/usr/bin/nvidia-smi": "/run/nvidia/driver/usr/bin/nvidia-smi",
    }
    assert all("ro" in mount["options"] for mount in edits["mounts"])
    assert edits["env"] == ["NVIDIA_CTK_LIBCUDA_DIR=/usr/lib64"]
    assert "hooks" not in edits


def test_with_nvidias_hook_links_and_the_loaders_cache_are_made_in_the_container(
    tmp_path: Path,
) -> None:
    edits = DriverLibraries(install(tmp_path), Path("/usr/bin/nvidia-cdi-hook")).find_edits()
    assert "/usr/lib64/libcuda.so.1" not in mounts(edits)
    assert f"/usr/lib64/libcuda.so.{VERSION}" in mounts(edits)
    links, cache = edits["hooks"]
    assert {hook["hookName"] for hook in edits["hooks"]} == {"createContainer"}
    assert links["path"] == "/usr/bin/nvidia-cdi-hook"
    assert links["args"][:2] == ["nvidia-cdi-hook", "create-symlinks"]
    assert f"libcuda.so.{VERSION}::/usr/lib64/libcuda.so.1" in links["args"]
    assert cache["args"] == ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib64"]
    spec = {
        "cdiVersion": cdi.VERSION,
        "kind": "a.b/c",
        "devices": [{"name": "d", "containerEdits": edits}],
    }
    cdi.validate_spec(spec, "spec")


@pytest.mark.parametrize("target", ["usr/lib64", "/usr/lib64"], ids=["relative", "absolute"])
def test_a_folder_that_is_a_link_to_another_is_looked_at_once(tmp_path: Path, target: str) -> None:
    root = install(tmp_path)
    (tmp_path / "lib64").symlink_to(target)
    found = [m["containerPath"] for m in DriverLibraries(root).find_edits()["mounts"]]
    assert len(found) == len(set(found))
    assert all(path.startswith(("/usr/lib64/", "/usr/bin/")) for path in found)


def test_a_link_that_is_absolute_is_meant_from_the_drivers_root(tmp_path: Path) -> None:
    root = install(tmp_path)
    link = tmp_path / "usr" / "lib64" / "libnvidia-ml.so.1"
    link.unlink()
    link.symlink_to(f"/usr/lib64/libnvidia-ml.so.{VERSION}")
    assert "/usr/lib64/libnvidia-ml.so.1" in mounts(DriverLibraries(root).find_edits())


def test_another_driver_is_noticed(tmp_path: Path) -> None:
    root = install(tmp_path)
    libraries = DriverLibraries(root)
    before = libraries.find_edits()
    assert libraries.find_edits() is before
    lib = tmp_path / "usr" / "lib64"
    for path in lib.glob("*.so.1"):
        path.unlink()
    (lib / "libcuda.so").unlink()
    (tmp_path / "usr" / "bin" / "nvidia-smi").unlink()
    install(tmp_path, version="590.1.2")
    assert "/usr/lib64/libcuda.so.590.1.2" in mounts(libraries.find_edits())
    assert f"/usr/lib64/libcuda.so.{VERSION}" not in mounts(libraries.find_edits())


@pytest.mark.parametrize("broken", ["nothing", "no-version", "dangling", "outside"])
def test_without_a_driver_below_the_root_there_is_a_warning_and_no_mount(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "root"
    link = root / "usr" / "lib64" / "libnvidia-ml.so.1"
    link.parent.mkdir(parents=True)
    if broken == "no-version":
        link.write_bytes(b"elf")
    elif broken == "dangling":
        link.symlink_to("libnvidia-ml.so.1.2.3")
    elif broken == "outside":
        (tmp_path / "libnvidia-ml.so.1.2.3").write_bytes(b"elf")
        link.symlink_to("../../../libnvidia-ml.so.1.2.3")
    libraries = DriverLibraries(DriverRoot(container=root))
    assert libraries.find_edits() == {}
    assert libraries.find_edits() == {}
    assert [r.message.count("--nvidia-driver-root") for r in caplog.records] == [1]


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (
            "/usr/local/nvidia/lib64",
            "/usr/local/nvidia/lib64, so the root may be /usr/local/nvidia",
        ),
        ("/run/nvidia/usr/lib64", "/run/nvidia/usr/lib64, so the root may be /run/nvidia"),
        ("/opt/nvml", "/opt/nvml"),
    ],
)
def test_where_the_loader_has_found_nvml_is_told(tmp_path: Path, folder: str, said: str) -> None:
    mapped = "7f0000000000-7f0000001000 r-xp 00000000 fe:10 42"
    maps = tmp_path / "maps"
    maps.write_text(
        f"{mapped}    /usr/lib/libc.so.6\n{mapped}    {folder}/libnvidia-ml.so.580.159.04\n"
    )
    assert describe_loaded_library(maps) == f"; this process has it from {said}"


def test_a_process_without_nvml_is_told_nothing(tmp_path: Path) -> None:
    assert describe_loaded_library(tmp_path / "none") == ""
    (tmp_path / "maps").write_text("7f0000000000-7f0000001000 r--p 00000000 00:00 0\n")
    assert describe_loaded_library(tmp_path / "maps") == ""


def real(root: Path, found: DriverRoot, **more: Any) -> DriverCore:
    """A driver that takes its GPUs for real; the device files are null devices."""
    library = NvmlLibrary.load_simulated("t4x4")
    (root / "dev").mkdir()
    for name in ("nvidiactl", *(f"nvidia{number}" for number in range(4))):
        os.mknod(root / "dev" / name, 0o600 | 0o020000, os.makedev(1, 3))
    options = DriverOptions(
        node_name="node-a",
        cdi_root=root / "cdi",
        state_dir=root / "state",
        durable=False,
        device_root=root / "dev",
        driver_root=found,
        **more,
    )
    inventory = replace(discover_devices(library, NOWHERE, salt="node-a"), simulated=False)
    return DriverCore(options, library, inventory=inventory)


def spec_of(core: DriverCore) -> Any:
    [device] = core.prepare(make_claim(result("gpu-0")))
    resolve([core.options.cdi_root], device.cdi_device_ids)
    [path] = core.options.cdi_root.glob("*.json")
    return cdi.read_spec(path)


@makes_device_files
def test_a_claims_spec_has_the_drivers_files_once_for_all_its_devices(tmp_path: Path) -> None:
    spec = spec_of(real(tmp_path, install(tmp_path / "driver")))
    common = spec["containerEdits"]
    assert "/usr/lib64/libcuda.so.1" in mounts(common)
    assert "NVIDIA_CTK_LIBCUDA_DIR=/usr/lib64" in common["env"]
    assert "NVIDIA_VISIBLE_DEVICES=void" in common["env"]
    assert [node["path"] for node in common["deviceNodes"]] == ["/dev/nvidiactl"]
    assert all("mounts" not in device["containerEdits"] for device in spec["devices"])


@makes_device_files
def test_they_can_be_left_out(tmp_path: Path) -> None:
    core = real(tmp_path, install(tmp_path / "driver"), driver_libraries=False)
    assert "mounts" not in spec_of(core)["containerEdits"]


def test_simulated_gpus_come_without_a_driver(tmp_path: Path) -> None:
    options = options_below(tmp_path, driver_root=install(tmp_path / "driver"))
    common = spec_of(DriverCore(options, NvmlLibrary.load_simulated("t4x4")))["containerEdits"]
    assert [mount["containerPath"] for mount in common["mounts"]] == [smi.CONTAINER_PATH]
    assert not any("LIBCUDA" in variable for variable in common["env"])
