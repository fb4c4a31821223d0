"""``ci/gpu/check`` finds what is different, and says when it cannot be checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nvml_driver.devices.discovery import discover_devices
from nvml_driver.nvml.library import NvmlLibrary
from tests.nvml_driver.helpers import NOWHERE
from tests.programs import ended

REPOSITORY = Path(__file__).resolve().parents[2]


def fake_nvidia_smi(root: Path, changes: dict[int, dict[str, str]] | None = None) -> Path:
    """A program that says of four simulated T4 what is so, but for the changes of some."""
    inventory = discover_devices(
        NvmlLibrary.load_simulated("t4x4"), NOWHERE, salt=os.uname().nodename
    )
    lines = []
    for index, device in enumerate(inventory):
        bus = str(device.attributes["resource.kubernetes.io/pciBusID"].value)
        said = {
            "uuid": str(device.uuid),
            "name": "Tesla T4",
            "bus": f"0000{bus.upper()}",
            "driver": "580.95.05",
            "memory": "15360",
            "cap": "7.5",
        }
        lines.append(", ".join({**said, **(changes or {}).get(index, {})}.values()))
    path = root / "nvidia-smi"
    path.write_text("#!/bin/sh\ncat <<END\n" + "\n".join(lines) + "\nEND\n")
    path.chmod(0o755)
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return ended(
        [REPOSITORY / "ci/gpu/check", *arguments],
        env={**os.environ, "PYTHON": sys.executable},
        timeout=120,
    )


def test_what_agrees_is_success(tmp_path: Path) -> None:
    done = run("--simulate", "t4x4", "--nvidia-smi", fake_nvidia_smi(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "prepared gpu-0: /dev/nvidiactl, /dev/nvidia0" in done.stdout
    assert "agree" in done.stdout


def test_each_difference_is_named(tmp_path: Path) -> None:
    changes = {
        0: {"name": "Tesla T5", "bus": "00000000:3B:00.0"},
        1: {"memory": "16384"},
        2: {"driver": "580.95.06"},
        3: {"uuid": "GPU-other"},
    }
    done = run("--simulate", "t4x4", "--nvidia-smi", fake_nvidia_smi(tmp_path, changes))
    assert done.returncode == 1
    for message in (
        "gpu-0: productName is published as 'Tesla T4', nvidia-smi says",
        "gpu-0: resource.kubernetes.io/pciBusID",
        "gpu-1: memory (MiB) is published as 15360",
        "gpu-2: driverVersion is published as '580.95.5'",
        "GPU GPU-other is not published",
    ):
        assert message in done.stdout


def test_without_nvidia_smi_it_cannot_be_checked(tmp_path: Path) -> None:
    done = run("--simulate", "t4x4", "--nvidia-smi", tmp_path / "absent")
    assert done.returncode == 2
    assert "is not here" in done.stderr
