"""Makes what NVIDIA's driver takes for a node's NVIDIA driver, from our simulated NVML.

The library is the one of our own driver (``nvml_driver/simulated``), which reads the GPUs from the
file that ``NVML_SIMULATED_PROFILE`` names. The version is read from the names of libraries, so
``libcuda`` is there, too; it and ``nvidia-smi`` are only looked for.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from nvml_driver.simulated.build import LIBRARY, build_library, default_cache_root
from nvml_driver.simulated.node import make_device_files
from nvml_driver.simulated.profile import load_profile


def main(root: Path, profile: str) -> None:
    """Fill ``root``; what is there already stays, so a driver that starts again finds the same."""
    gpus = load_profile(profile)
    (root / "usr/lib64").mkdir(parents=True, exist_ok=True)
    (root / "usr/bin").mkdir(exist_ok=True)
    (root / "dev").mkdir(exist_ok=True)
    (root / "gpus").write_bytes(gpus.describe())
    libraries, version = root / "usr/lib64", gpus.driver_version
    shutil.copy(build_library(default_cache_root()), libraries / f"libnvidia-ml.so.{version}")
    (libraries / f"libcuda.so.{version}").touch()
    for name in (LIBRARY, "libcuda.so.1"):
        link = libraries / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"{name.removesuffix('.1')}.{version}")
    smi = root / "usr/bin/nvidia-smi"
    smi.write_text("#!/bin/sh\n", encoding="ascii")
    smi.chmod(0o755)
    names = ("nvidiactl", *(f"nvidia{gpu.minor}" for gpu in gpus.shown))
    make_device_files(root / "dev", names)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
