"""The simulated nvidia-smi: as a script, and as the reference knows it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kube.simulated import MARK
from nvml_driver.simulated import smi
from tests.nvml_driver.helpers import make_core

SHELL = shutil.which("sh") or "sh"


def written(folder: Path, gpus: str) -> str:
    """The script of a node with these GPUs."""
    core = make_core(folder, shown=gpus)
    file = core.options.state_dir / "nvidia-smi"
    assert file.stat().st_mode & 0o777 == 0o755
    return file.read_text()


def printed(script: str, folder: Path, options: str, files: list[str]) -> str:
    """What a shell makes of it where these device files are."""
    dev = folder / "dev"
    for name in files:
        (dev / name).parent.mkdir(parents=True, exist_ok=True)
        (dev / name).symlink_to("/dev/null")
    program = folder / "nvidia-smi"
    program.write_text(script.replace("/dev/$1", f"{dev}/$1"))
    done = subprocess.run(
        [SHELL, str(program), *(smi.QUERY.split() if options == smi.QUERY else [options])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (options in (smi.LIST, smi.QUERY))
    return done.stdout


@pytest.mark.parametrize("options", [smi.LIST, smi.QUERY, "--help"])
@pytest.mark.parametrize(
    ("gpus", "files"),
    [
        ("t4x4", []),
        ("t4x4", ["nvidia1", "nvidia3"]),
        ("mixed", ["nvidia1", "nvidia-caps/nvidia-cap165", "nvidia2"]),
        ("t4x0", []),
    ],
)
def test_the_reference_knows_what_the_script_prints(
    gpus: str, files: list[str], options: str, tmp_path: Path
) -> None:
    script = written(tmp_path, gpus)
    found = printed(script, tmp_path, options, files)
    assert found == smi.render_output(script, options, [f"/dev/{name}" for name in files])
    assert found.startswith(f"{MARK}\n")


def test_it_shows_the_devices_whose_files_are_there(tmp_path: Path) -> None:
    script = written(tmp_path, "mixed")
    files = ["/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap165"]
    _, gpu, mig = smi.render_output(script, smi.LIST, files).splitlines()
    assert gpu.startswith("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-")
    assert mig.startswith("  MIG 2g.10gb      Device  1: (UUID: MIG-")
    _, queried = smi.render_output(script, smi.QUERY, ["/dev/nvidia0"]).splitlines()
    assert queried.endswith(", NVIDIA A100-SXM4-40GB, 40960 MiB, Default")
