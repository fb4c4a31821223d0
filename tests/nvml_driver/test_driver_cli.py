"""The command line, as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.nvml_driver.helpers import makes_device_files
from tests.nvml_driver.stub_api import StubApi

COMMAND = [sys.executable, "-m", "nvml_driver"]


def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "NODE_NAME")
    }
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_slices_prints_what_the_node_would_publish() -> None:
    done = call("slices", "--simulate", "a100-40x8", "--node-name", "n1", "--driver-name", "d.io")
    assert (done.returncode, done.stderr) == (0, "")
    [slice_] = yaml.safe_load_all(done.stdout)
    assert slice_["kind"] == "ResourceSlice"
    assert slice_["spec"]["driver"] == "d.io"
    assert slice_["spec"]["pool"] == {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    assert [device["name"] for device in slice_["spec"]["devices"]] == [
        f"gpu-{minor}" for minor in range(8)
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["slices", "--simulate", "t5x5"], 2, "a100-40x8, "),
        (["slices", "--symulate", "t4x4"], 2, "No such option"),
        (["run", "--simulate", "t4x4", "--kubeconfig", "/absent"], 1, "/absent does not exist"),
        (["run", "--simulate", "t4x4"], 1, "no --kubeconfig was given"),
    ],
)
def test_an_error_is_one_message(arguments: list[str], status: int, message: str) -> None:
    done = call(*arguments)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.needs_root
@makes_device_files
def test_run_serves_and_publishes_until_sigterm(api: StubApi, tmp_path: Path) -> None:
    with subprocess.Popen(
        [
            *COMMAND,
            *("run", "--node-name", "node-a", "--simulate", "t4x4"),
            *("--kubeconfig", str(api.kubeconfig(tmp_path))),
            *("--cdi-root", str(tmp_path / "cdi")),
            *("--kubelet-plugins-directory-path", str(tmp_path / "p")),
            *("--kubelet-registrar-directory-path", str(tmp_path / "r")),
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            api.wait(lambda api: len(api.slices()) == 1, timeout=30)
            assert (tmp_path / "r" / "gpu.nvidia.com-reg.sock").is_socket()
            assert (tmp_path / "p" / "gpu.nvidia.com" / "dev" / "nvidia3").is_char_device()
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "4 simulated devices" in log
    assert "Traceback" not in log
    assert not (tmp_path / "r" / "gpu.nvidia.com-reg.sock").exists()
    assert len(api.slices()) == 1
