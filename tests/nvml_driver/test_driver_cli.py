"""The command line, as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
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


def settled_memory(pid: int) -> int:
    """Resident bytes of a process, once they are the same for a second (ten at most)."""
    last = -1
    for _ in range(10):
        text = Path(f"/proc/{pid}/status").read_text()
        now = int(text.partition("VmRSS:")[2].split()[0]) * 1024
        if now == last:
            break
        last = now
        time.sleep(1)
    return last


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
            *("--metrics-port", "0", "--healthcheck-port", "0", "--logging-format", "json"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            api.wait(lambda api: len(api.slices()) == 1, timeout=30)
            assert (tmp_path / "r" / "gpu.nvidia.com-reg.sock").is_socket()
            assert (tmp_path / "p" / "gpu.nvidia.com" / "dev" / "nvidia3").is_char_device()
            assert settled_memory(process.pid) < 80 * 2**20
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
    # gRPC's C library writes its own lines when the machine is slow.
    lines = [line for line in log.splitlines() if line.startswith("{")]
    messages = [json.loads(line)["msg"] for line in lines]
    assert "driver gpu.nvidia.com on node node-a: 4 simulated devices" in messages
    assert any(message.startswith("metrics on port ") for message in messages)
    assert any(message.startswith("health checks on port ") for message in messages)
    assert "Traceback" not in log
    assert not (tmp_path / "r" / "gpu.nvidia.com-reg.sock").exists()
    assert len(api.slices()) == 1
