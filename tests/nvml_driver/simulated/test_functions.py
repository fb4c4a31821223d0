"""Every function of NVML is there, and does what the table says of it."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pynvml
import pytest

from ci.nvml_functions import TABLE, make_table, read_functions, read_written
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.simulated import build
from nvml_driver.simulated.build import default_cache_root
from tests.programs import ended

ROW: Final = re.compile(r"^FUNCTION\((\w+), (nvml\w+), (\w+), \((.*)\)\)$", re.MULTILINE)
ROWS: Final = ROW.findall(TABLE.read_text(encoding="utf-8"))
NOT_SUPPORTED: Final = pynvml.NVML_ERROR_NOT_SUPPORTED
MIXED_MIG_GPU: Final = 1


def test_each_function_is_exported_and_says_whether_it_is_supported() -> None:
    library = ctypes.CDLL(str(build.build_library(default_cache_root())))
    assert len(ROWS) == 396
    with NvmlLibrary.load_simulated("mixed").open_session() as nvml:
        gpu = nvml.nvmlDeviceGetHandleByIndex(MIXED_MIG_GPU)
        for behaviour, name, handle, _ in ROWS:
            function = getattr(library, name)
            if behaviour != "UNSUPPORTED" or handle == "INSTANCE":
                continue
            arguments = (gpu,) if handle == "DEVICE" else ()
            assert function(*arguments) == NOT_SUPPORTED, name
            if handle == "DEVICE":
                wrong = function(ctypes.c_void_p(8))
                assert wrong == pynvml.NVML_ERROR_INVALID_ARGUMENT, name
    assert library.nvmlDeviceGetFanSpeed(None) == pynvml.NVML_ERROR_UNINITIALIZED


def test_the_table_says_what_the_library_has_written_itself() -> None:
    """Where this fails, ``python -m ci.nvml_functions`` writes the table again."""
    in_table = {name for behaviour, name, _, _ in ROWS if behaviour == "WRITTEN"}
    assert in_table == read_written() - {
        f"nvmlSimulated{what}" for what in ("Open", "Close", "Select", "Control")
    }


def test_a_header_is_read_without_its_comments() -> None:
    header = """
    /* nvmlReturn_t DECLDIR nvmlOld(void); */
    nvmlReturn_t DECLDIR nvmlDeviceGetX(nvmlDevice_t device, // which
                                        unsigned int * x);
    const DECLDIR char* nvmlErrorString(nvmlReturn_t result);
    """
    assert make_table(read_functions(header), {"nvmlErrorString"}, "1").splitlines()[4:] == [
        "FUNCTION(UNSUPPORTED, nvmlDeviceGetX, DEVICE, (nvmlDevice_t device, unsigned int *x))",
        "FUNCTION(WRITTEN, nvmlErrorString, SYSTEM, (nvmlReturn_t result))",
    ]


def test_a_mig_device_has_an_index_and_attributes() -> None:
    with NvmlLibrary.load_simulated("mixed").open_session() as nvml:
        gpu = nvml.nvmlDeviceGetHandleByIndex(MIXED_MIG_GPU)
        shown = []
        for number in range(3):
            mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number)
            said = nvml.nvmlDeviceGetAttributes_v2(mig)
            memory = nvml.nvmlDeviceGetMemoryInfo(mig).total >> 20
            assert nvml.nvmlDeviceGetIndex(mig) == number
            assert said.memorySizeMB == memory
            shown.append((said.gpuInstanceSliceCount, said.computeInstanceSliceCount))
        assert all(slices == of_compute for slices, of_compute in shown)
        with pytest.raises(pynvml.NVMLError_NotSupported):
            nvml.nvmlDeviceGetAttributes_v2(gpu)


def test_no_mig_device_is_possible_while_the_mode_is_off() -> None:
    with NvmlLibrary.load_simulated("mixed").open_session() as nvml:
        counts = [
            nvml.nvmlDeviceGetMaxMigDeviceCount(nvml.nvmlDeviceGetHandleByIndex(index))
            for index in range(3)
        ]
    assert counts == [0, 7, 0]


@pytest.mark.parametrize(
    "bus_id", ["0000:00:1c.0", "00000000:00:1C.0", "00:1C.0", "0000:00:1c", "0:0:1c.0"]
)
def test_a_gpu_is_found_by_each_form_of_its_address(bus_id: str) -> None:
    with NvmlLibrary.load_simulated("t4x4").open_session() as nvml:
        found = nvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
        assert nvml.nvmlDeviceGetIndex(found) == 1


@pytest.mark.parametrize("bus_id", ["", "1c", "00:1c.1", "00:1c.0 ", "0000:00:1c.0.0", "x:y.0"])
def test_what_is_no_address_is_refused(bus_id: str) -> None:
    with (
        NvmlLibrary.load_simulated("t4x4").open_session() as nvml,
        pytest.raises(pynvml.NVMLError_InvalidArgument),
    ):
        nvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())


# By ctypes: nvidia-ml-py has a lock of its own, which a child would find held.
THREADS_AND_FORKS = """
import ctypes, os, threading
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
def ask():
    gpu, count = ctypes.c_void_p(), ctypes.c_uint()
    for _ in range(300):
        assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)) == 0
        assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu, ctypes.byref(count), None) == 0
threads = [threading.Thread(target=ask) for _ in range(16)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        ask()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
for thread in threads:
    thread.join()
print(nvml.nvmlShutdown())
"""


def simulate(*command: str, profile: str = "t4x4") -> subprocess.CompletedProcess[str]:
    start = (sys.executable, "-m", "nvml_driver", "simulate", "--profile", profile, "--")
    return ended([*start, *command], timeout=120)


def test_programs_may_call_from_threads_and_fork() -> None:
    done = simulate(sys.executable, "-W", "ignore", "-c", THREADS_AND_FORKS)
    assert (done.stdout, done.stderr, done.returncode) == ("0\n", "", 0)


@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        (("sh", "-c", "exit 3"), 3, ""),
        (("sh", "-c", "kill -9 $$"), 137, ""),
        (("/nowhere/program",), 1, "cannot start /nowhere/program: No such file or directory"),
    ],
)
def test_simulate_ends_as_its_program_does(
    command: tuple[str, ...], status: int, says: str
) -> None:
    done = simulate(*command)
    assert done.returncode == status
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == bool(says)


def test_simulate_leaves_nothing_behind(tmp_path: Path) -> None:
    done = simulate("sh", "-c", "dirname $NVML_SIMULATED_PROFILE")
    assert not Path(done.stdout.strip()).exists()
    assert simulate("true", profile=str(tmp_path / "none")).returncode == 2
