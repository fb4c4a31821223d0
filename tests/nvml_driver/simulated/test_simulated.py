"""Simulated NVML: its profiles, its build and the C library's own checks."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pynvml
import pytest

from nvml_driver.errors import DriverError, NvmlUnavailableError, ProfileError
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.simulated import build, list_shipped_profiles, profile
from nvml_driver.simulated.build import default_cache_root
from nvml_driver.simulated.node import make_device_files
from tests.programs import ended


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    """The library by itself, without nvidia-ml-py."""
    return ctypes.CDLL(str(build.build_library(default_cache_root())))


def open_machine(library: ctypes.CDLL, text: bytes) -> tuple[int | None, str]:
    """The machine, or None, and the complaint."""
    message = ctypes.create_string_buffer(256)
    size = ctypes.c_size_t
    library.nvmlSimulatedOpen.restype = ctypes.c_void_p
    machine = library.nvmlSimulatedOpen(text, size(len(text)), message, size(len(message)))
    return machine, message.value.decode()


def test_every_shipped_profile_loads_and_names_its_sources() -> None:
    assert list_shipped_profiles() == (
        *("a100-40x8", "a100-80x8", "a30x4", "b200x8", "h100-80x8", "h200x1", "l40sx8", "mixed"),
        "t4x4",
    )
    for name in list_shipped_profiles():
        shown = profile.load_profile(name)
        assert shown.name == name
        assert shown.sources
        with NvmlLibrary.load_simulated(name).open_session() as nvml:
            assert nvml.nvmlDeviceGetCount() == len(shown.shown)


def test_one_process_can_show_one_profile_after_another() -> None:
    counts = []
    for name in ("t4x4", "a100-40x8", "t4x4"):
        with NvmlLibrary.load_simulated(name).open_session() as nvml:
            counts.append(nvml.nvmlDeviceGetCount())
    assert counts == [4, 8, 4]


def test_a_gpu_is_found_by_index_uuid_and_address() -> None:
    with NvmlLibrary.load_simulated("t4x4").open_session() as nvml:
        uuid = nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(2))
        assert nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(uuid)) == 2
        by_address = nvml.nvmlDeviceGetHandleByPciBusId("00000000:00:1D.0")
        assert nvml.nvmlDeviceGetMinorNumber(by_address) == 2
        with pytest.raises(pynvml.NVMLError_NotFound):
            nvml.nvmlDeviceGetHandleByUUID("GPU-unknown")
        memory = nvml.nvmlDeviceGetMemoryInfo(by_address, version=pynvml.nvmlMemory_v2)
        assert memory.total == 15 * 2**30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": [{"minor": 0}]}, "gpus.0.uuid"),
        ({"driverVersion": 580}, "driverVersion"),
        ({"unknown": 1}, "unknown"),
        ({"driverVersion": "1\ngpu"}, "driverVersion"),
        ({"faults": {"nvmlX": "NO_SUCH_ERROR"}}, "NVML_ERROR_NO_SUCH_ERROR"),
    ],
)
def test_a_bad_profile_is_refused_with_the_path(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    document = json.loads(_shipped_text("t4x4")) | change
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ProfileError, match=str(path)) as caught:
        profile.load_profile(path)
    assert message in str(caught.value)


def test_a_profile_that_is_not_json_is_refused_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{\n  "name": ,\n}')
    with pytest.raises(ProfileError, match=r"bad\.json:2:11: not JSON"):
        profile.load_profile(path)


def test_two_gpus_with_one_minor_number_are_refused() -> None:
    document = json.loads(_shipped_text("t4x4"))
    document["gpus"][1]["minor"] = 0
    with pytest.raises(ProfileError, match="same minor: 0"):
        profile.parse_profile(json.dumps(document), "x")


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ProfileError, match=r"a100-40x8, .*, t4x4"):
        profile.load_profile("t5x5")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "line 1: must be 'nvml-simulated 2'"),
        (b"nvml-simulated 9\n", "line 1"),
        (b"nvml-simulated 2\ngpu\nminor x\n", "line 3: unknown key or bad value"),
        (b"nvml-simulated 2\ngpu\nminor -1\n", "line 3"),
        (b"nvml-simulated 2\ngpu\nuuid " + b"x" * 96 + b"\n", "line 3"),
        (b"nvml-simulated 2\n" + b"y" * 5000 + b"\n", "line 2: the line is too long"),
        (b"nvml-simulated 2\ndriver_version a\0b\n", "line 2"),
        (b"nvml-simulated 2\ngpu\npci_bus_id 0000:00:20.0\n", "line 3"),
        (b"nvml-simulated 2\ngpu\npci_bus_id 0000:00:1f.1\n", "line 3"),
        (b"nvml-simulated 2\n" + b"gpu\n" * 257, "more than 256 GPUs"),
        (b"nvml-simulated 2\ngpu\n" + b"fault nvmlX 3\n" * 33, "line 35"),
        (b"nvml-simulated 2\n" + b"\n" * 2**20, "larger than 1 MiB"),
    ],
)
def test_the_library_refuses_a_bad_description(
    library: ctypes.CDLL, text: bytes, complaint: str
) -> None:
    machine, message = open_machine(library, text)
    assert machine is None
    assert complaint in message


def test_the_library_refuses_handles_that_it_did_not_give(library: ctypes.CDLL) -> None:
    machine, complaint = open_machine(library, profile.load_profile("t4x4").describe())
    assert (machine is not None, complaint) == (True, "")
    minor = ctypes.c_uint()
    handle = ctypes.c_void_p()
    library.nvmlSimulatedSelect(ctypes.c_void_p(machine))
    assert library.nvmlInit_v2() == 0
    try:
        assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
        assert library.nvmlDeviceGetMinorNumber(handle, ctypes.byref(minor)) == 0
        for bad in (None, 8, (handle.value or 0) + 1):
            result = library.nvmlDeviceGetMinorNumber(ctypes.c_void_p(bad), ctypes.byref(minor))
            assert result == pynvml.NVML_ERROR_INVALID_ARGUMENT
        name = ctypes.create_string_buffer(4)
        too_small = library.nvmlDeviceGetName(handle, name, len(name))
        assert too_small == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
        assert library.nvmlSimulatedClose(ctypes.c_void_p(machine)) == pynvml.NVML_ERROR_IN_USE
    finally:
        assert library.nvmlShutdown() == 0
    assert library.nvmlShutdown() == pynvml.NVML_ERROR_UNINITIALIZED
    assert library.nvmlSimulatedClose(ctypes.c_void_p(machine)) == 0
    gone = library.nvmlDeviceGetMinorNumber(handle, ctypes.byref(minor))
    assert gone == pynvml.NVML_ERROR_UNINITIALIZED


def test_machines_can_be_used_at_once_by_several_threads() -> None:
    def count(name: str) -> tuple[int, str]:
        with NvmlLibrary.load_simulated(name).open_session() as nvml:
            for _ in range(20):
                found = nvml.nvmlDeviceGetCount()
                told = nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(0))
            return found, told

    with ThreadPoolExecutor() as pool:
        told = list(pool.map(count, ["t4x4", "a100-40x8", "b200x8", "a30x4"] * 5))
    assert (
        told
        == [*((4, "Tesla T4"), (8, "NVIDIA A100-SXM4-40GB"), (8, "NVIDIA B200"), (4, "NVIDIA A30"))]
        * 5
    )


def test_a_session_within_another_means_its_own_machine() -> None:
    with NvmlLibrary.load_simulated("a100-40x8").open_session() as outer:
        handle = outer.nvmlDeviceGetHandleByIndex(7)
        with NvmlLibrary.load_simulated("t4x4").open_session() as inner:
            assert inner.nvmlDeviceGetCount() == 4
            assert inner.nvmlDeviceGetMinorNumber(handle) == 7
        assert outer.nvmlDeviceGetCount() == 8


def test_another_process_is_reported_by_environment(tmp_path: Path) -> None:
    described = tmp_path / "profile"
    described.write_bytes(profile.load_profile("a100-40x8").describe())
    library = build.build_library(default_cache_root())
    script = "import pynvml; pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetCount())"
    done = _python(script, LD_LIBRARY_PATH=library.parent, NVML_SIMULATED_PROFILE=described)
    assert (done.returncode, done.stdout) == (0, "8\n")

    done = _python(script, LD_LIBRARY_PATH=library.parent, NVML_SIMULATED_PROFILE=tmp_path / "no")
    assert "NVML_SIMULATED_PROFILE names no readable file" in done.stderr
    assert "Driver Not Loaded" in done.stderr


def test_a_simulated_library_is_known_as_such_however_it_was_loaded() -> None:
    library = build.build_library(default_cache_root())
    script = (
        "from nvml_driver.nvml.library import NvmlLibrary as L; print(L.load_system().is_simulated)"
    )
    assert _python(script, LD_LIBRARY_PATH=library.parent).stdout == "True\n"


def test_a_second_library_in_one_process_is_refused(tmp_path: Path) -> None:
    NvmlLibrary.load_simulated("t4x4")
    with pytest.raises(NvmlUnavailableError, match="separate processes"):
        NvmlLibrary.load_simulated("t4x4", cache_root=tmp_path)


def test_building_happens_once_for_each_source_and_compiler(tmp_path: Path) -> None:
    first = build.build_library(tmp_path)
    stamp = first.stat().st_mtime_ns
    assert build.build_library(tmp_path) == first
    assert first.stat().st_mtime_ns == stamp
    assert sorted(path.name for path in first.parent.iterdir()) == [build.LIBRARY, "lock"]


@pytest.mark.slow
def test_the_compiler_from_pypi_builds_it_too(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    library = build.build_library(tmp_path, [sys.executable, "-m", "ziglang", "cc"])
    described = tmp_path / "profile"
    described.write_bytes(profile.load_profile("t4x4").describe())
    script = "import pynvml; pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetCount())"
    done = _python(script, LD_LIBRARY_PATH=library.parent, NVML_SIMULATED_PROFILE=described)
    assert (done.returncode, done.stdout) == (0, "4\n")


def test_a_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    compiler = [sys.executable, "-c", "import sys; sys.exit('no licence')"]
    with pytest.raises(NvmlUnavailableError, match="no licence"):
        build.build_library(tmp_path, compiler)
    assert not list(tmp_path.rglob(build.LIBRARY))


def test_without_a_compiler_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(NvmlUnavailableError, match=r"dra-conformance\[compiler\]"):
        build.find_compiler()


def test_a_device_file_that_is_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").write_text("mine")
    with pytest.raises(DriverError, match="in the way"):
        make_device_files(tmp_path, ["nvidia0"])
    assert (tmp_path / "nvidia0").read_text() == "mine"


def _shipped_text(name: str) -> str:
    return (Path(profile.__file__).parent / "profiles" / f"{name}.json").read_text()


def _python(script: str, **environment: Path) -> subprocess.CompletedProcess[str]:
    passed = {name: str(value) for name, value in environment.items()}
    return ended([sys.executable, "-c", script], env={**os.environ, **passed}, timeout=60)
