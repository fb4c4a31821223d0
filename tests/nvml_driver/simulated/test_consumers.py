"""Programs of others that read GPUs by NVML, unmodified, on the simulated library.

Each is pinned and installed below build/clients; docs/simulated-nvml.md says what works.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from shutil import which

import pytest

from kube.cdi.spec import parse
from localkube.gocommand import find_go, make_environment
from nvml_driver.simulated.profile import load_profile
from tests.programs import ended
from tests.pypi import PACKAGES, install_packages

pytestmark = [pytest.mark.needs_clients, pytest.mark.slow, pytest.mark.everything]

PROFILES = ("t4x4", "mixed", "h100-80x8", "h200x1", "b200x8")
CONTAINER_TOOLKIT = "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk@v1.20.2"


def run_simulated(
    profile: str, *command: str | Path, packages: Path | None = None
) -> subprocess.CompletedProcess[str]:
    simulate = (sys.executable, "-m", "nvml_driver", "simulate", "--profile", profile, "--")
    # For the program alone: what starts it has an nvidia-ml-py of its own.
    more = () if packages is None else ("env", f"PYTHONPATH={packages}", "PYTHONWARNINGS=ignore")
    return ended([*simulate, *more, *command], timeout=120)


def names_of(profile: str) -> list[str]:
    return [gpu.name for gpu in load_profile(profile).shown]


@pytest.mark.parametrize("profile", PROFILES)
def test_gpustat_lists_each_gpu(profile: str) -> None:
    packages = install_packages("gpustat==1.1.1")
    done = run_simulated(profile, sys.executable, "-m", "gpustat", "--json", packages=packages)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout[done.stdout.index("{") :])
    assert shown["driver_version"] == load_profile(profile).driver_version
    assert [gpu["name"] for gpu in shown["gpus"]] == names_of(profile)
    assert {gpu["temperature.gpu"] for gpu in shown["gpus"]} == {None}
    assert all(gpu["processes"] == [] for gpu in shown["gpus"])


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "mixed"])
def test_nvitop_draws_its_table(profile: str) -> None:
    """Not of MIG devices: nvitop 1.7.2 ends with a KeyError where one has no BAR1 information."""
    packages = install_packages("nvitop==1.7.2")
    done = run_simulated(profile, sys.executable, "-m", "nvitop", "-1", packages=packages)
    assert done.returncode == 0, done.stderr
    assert "No running processes found" in done.stdout
    rows = re.findall(r"^│ +(\d+) .* 0000", done.stdout, re.MULTILINE)
    assert rows == [str(index) for index in range(len(names_of(profile)))]


def test_nvitop_finds_mig_devices() -> None:
    packages = install_packages("nvitop==1.7.2")
    program = (
        "from nvitop import Device\n"
        "for gpu in Device.all():\n"
        "    print(gpu.index, *(mig.index for mig in gpu.mig_devices()))\n"
    )
    done = run_simulated("mixed", sys.executable, "-c", program, packages=packages)
    assert done.stdout == "0\n1 (1, 0) (1, 1) (1, 2)\n2\n3\n", done.stderr


@pytest.mark.parametrize("profile", PROFILES)
def test_py3nvml_asks_by_names_without_versions(profile: str) -> None:
    packages = install_packages("py3nvml==0.2.7")
    program = (
        "from py3nvml.py3nvml import *\nnvmlInit()\n"
        "for i in range(nvmlDeviceGetCount()):\n"
        "    gpu = nvmlDeviceGetHandleByIndex(i)\n"
        "    bus = nvmlDeviceGetPciInfo(gpu).busId\n"
        "    same = nvmlDeviceGetHandleByPciBusId(bus)\n"
        "    print(nvmlDeviceGetIndex(same), nvmlDeviceGetName(gpu))\n"
    )
    done = run_simulated(profile, sys.executable, "-c", program, packages=packages)
    expected = [f"{index} {name}" for index, name in enumerate(names_of(profile))]
    assert done.stdout.splitlines() == expected, done.stderr


@pytest.mark.parametrize("profile", PROFILES)
def test_pynvml_of_before_nvidia_ml_py_finds_each_gpu(profile: str) -> None:
    packages = install_packages("pynvml==11.5.3")
    program = (
        "from pynvml import *\nnvmlInit()\n"
        "for i in range(nvmlDeviceGetCount()):\n"
        "    gpu = nvmlDeviceGetHandleByIndex(i)\n"
        "    assert nvmlDeviceGetComputeRunningProcesses(gpu) == []\n"
        "    print(nvmlDeviceGetName(gpu), nvmlDeviceGetMemoryInfo(gpu).total)\n"
    )
    done = run_simulated(profile, sys.executable, "-c", program, packages=packages)
    expected = [f"{gpu.name} {gpu.memory_bytes}" for gpu in load_profile(profile).shown]
    assert done.stdout.splitlines() == expected, done.stderr


@pytest.fixture(scope="module")
def nvidia_ctk() -> Path:
    """The program of go-nvml and go-nvlib, built from its module."""
    PACKAGES.mkdir(parents=True, exist_ok=True)
    program = PACKAGES / CONTAINER_TOOLKIT.rpartition("/")[2]
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=PACKAGES) as scratch:
            environment = make_environment() | {"GOBIN": scratch, "CGO_ENABLED": "1"}
            subprocess.run(
                [find_go(), "install", CONTAINER_TOOLKIT],
                cwd="ci/upstream",
                env=environment,
                check=True,
                capture_output=True,
            )
            Path(scratch, "nvidia-ctk").rename(program)
    return program


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "mixed"])
def test_nvidia_ctk_writes_a_cdi_spec(nvidia_ctk: Path, profile: str, tmp_path: Path) -> None:
    """Not of MIG devices, whose capability files are the kernel driver's."""
    shown = load_profile(profile)
    for library in ("libcuda.so", "libnvidia-ml.so"):
        file = tmp_path / "usr/lib64" / f"{library}.{shown.driver_version}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    spec = tmp_path / "spec.yaml"
    generate = ("cdi", "generate", "--mode", "nvml", "--driver-root", tmp_path, "--output", spec)
    done = run_simulated(profile, nvidia_ctk, *generate)
    assert done.returncode == 0, done.stderr
    indexes = [str(index) for index in range(len(shown.shown))]
    uuids = [gpu.uuid for gpu in shown.shown]
    assert sorted(device.name for device in parse(spec).devices) == sorted(
        [*indexes, *uuids, "all"]
    )


@pytest.fixture(scope="module")
def rust_program() -> Path:
    """A program that prints what Rust's nvml-wrapper says of each GPU, built with pinned crates."""
    built = PACKAGES / "nvml-wrapper"
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "--target-dir", built],
        cwd=Path(__file__).parent / "nvml-wrapper",
        check=True,
        capture_output=True,
    )
    return built / "debug" / "nvml-wrapper-shows"


@pytest.mark.skipif(which("cargo") is None, reason="there is no cargo on this machine")
@pytest.mark.parametrize("profile", PROFILES)
def test_nvml_wrapper_of_rust_shows_each_gpu(rust_program: Path, profile: str) -> None:
    done = run_simulated(profile, rust_program)
    expected = [
        [str(index), gpu.name, gpu.uuid, str(gpu.memory_bytes), "NotSupported", "0"]
        for index, gpu in enumerate(load_profile(profile).shown)
    ]
    assert [line.split("\t") for line in done.stdout.splitlines()] == expected, done.stderr


@pytest.mark.skipif(which("nvtop") is None, reason="nvtop is not installed (Debian's package)")
@pytest.mark.parametrize("profile", PROFILES)
def test_nvtop_draws_each_gpu(profile: str) -> None:
    simulate = (sys.executable, "-m", "nvml_driver", "simulate", "--profile", profile, "--")
    child, terminal = pty.fork()
    if not child:
        os.execve(sys.executable, [*simulate, "nvtop"], os.environ | {"TERM": "xterm"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 160, 0, 0))
    drawn, names = "", names_of(profile)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and drawn.count("Device ") < len(names):
            if select.select([terminal], [], [], 1)[0]:
                drawn += os.read(terminal, 65536).decode(errors="replace")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    plain = re.sub(r"\x1b[\[(][0-9;?]*[a-zA-Z]", "", drawn)
    assert re.findall(r"Device \d+ ?\[([^\]]+)\]", plain) == names
