"""The simulated NVML under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nvml_driver.simulated
from nvml_driver.simulated import build, profile
from tests.programs import ended

SOURCES = Path(nvml_driver.simulated.__file__).parent / "library"
FUZZ = Path(__file__).with_name("fuzz_nvml.c")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")


def _compile(folder: Path, *arguments: str | Path) -> Path:
    program = folder / "program"
    command = ["cc", "-std=gnu11", "-O1", "-g", "-pthread", *SANITIZE, *map(str, arguments)]
    done = ended([*command, "-o", str(program)], timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return program


def compiled_fuzzer(folder: Path) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    try:
        subprocess.run([_compile(folder, probe)], check=True, capture_output=True, timeout=60)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this compiler or system has no sanitizers: {error}")
    return _compile(folder, "-Wall", "-Wextra", "-Werror", FUZZ, *sorted(SOURCES.glob("*.c")))


def test_no_sequence_of_calls_touches_memory_that_is_not_its_own(tmp_path: Path) -> None:
    fuzzer = compiled_fuzzer(tmp_path)
    described = []
    for name in ("a30x4", "h100-80x8", "mixed"):
        path = tmp_path / name
        control = tmp_path / f"{name}.control"
        control.write_text("fault 0 nvmlDeviceGetName 3 2 4\nevent 0 8 79\nevent 0 8")
        shown = profile.load_profile(name)
        path.write_bytes(shown.describe(state=tmp_path / f"{name}.state", control=control))
        described.append(str(path))
    for seed in "123":
        done = ended([str(fuzzer), seed, "60", *described], timeout=120)
        assert done.returncode == 0, done.stderr
        assert "Sanitizer" not in done.stderr
        assert int(done.stdout) > 20  # rounds whose description was good


def test_discovery_and_mig_run_under_the_address_sanitizer(tmp_path: Path) -> None:
    """The library as Python loads it, called through nvidia-ml-py."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc, which finds its own libasan")
    asan = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(asan).is_absolute():
        pytest.skip("gcc comes without libasan")
    # libasan has to be the first library of the process; its library is built by the same compiler.
    library = build.build_library(tmp_path, ("gcc",), SANITIZE[:1] + SANITIZE[2:])
    script = """
import sys
from pathlib import Path
from nvml_driver.simulated import build
build.build_library = lambda *_: Path(sys.argv[1])
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.options import Features
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.model.roots import NodeRoots
for name in ("mixed", "a30x4", "h100-80x8", "t4x4"):
    library = NvmlLibrary.load_simulated(name)
    found = discover_devices(library, NodeRoots(), features=Features(dynamic_mig=True))
    partitions = NvmlPartitions(library, NodeRoots())
    for device in found:
        if device.place is not None and device.kind == "mig-partition":
            if partitions.find_instance(device.place) is None:
                partitions.destroy_instance(partitions.create_instance(device.place))
    for line in ("mode 1", "create 9 4", "create 9 9", "destroy 2", "destroy 99", "mode 0", "x"):
        try:
            library.machine.control(f"mig 0 {line}")
        except NvmlUnavailableError:
            pass
    print(name, len(found))
"""
    done = ended(
        [sys.executable, "-c", script, str(library)],
        env={
            **os.environ,
            "LD_PRELOAD": asan,
            # The interpreter itself keeps memory until it ends.
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
            "UBSAN_OPTIONS": "halt_on_error=1",
        },
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "AddressSanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
    assert done.stdout.split()[::2] == ["mixed", "a30x4", "h100-80x8", "t4x4"]
