"""Which files in ``/dev/nvidia-caps`` open a MIG device: minor numbers, as the kernel driver tells.

``/proc/driver/nvidia-caps/mig-minors`` lists them for all instances that could be; older drivers
only have one file for each that is there, ``capabilities/gpu0/mig/gi1/access``. Both are described
in NVIDIA's MIG User Guide, "Device Nodes and Capabilities".
"""

from __future__ import annotations

import re
from pathlib import Path

from nvml_driver.nvml.sysfs import read_word


def minors(
    proc: Path, gpu_minor: int, gi_id: int, ci_id: int | None
) -> tuple[int | None, int | None]:
    """Minor numbers for a GPU instance and a compute instance; None where /proc does not tell.

    Args:
        proc: where ``/proc`` is.
        gpu_minor: of the GPU.
        gi_id: of the GPU instance.
        ci_id: of the compute instance in it, None for none.
    """
    gi = f"gpu{gpu_minor}/gi{gi_id}"
    table = read_word(proc / "driver" / "nvidia-caps" / "mig-minors") or ""
    known = dict(re.findall(r"^(\S+)/access (\d+)$", table, re.MULTILINE))
    files = proc / "driver" / "nvidia" / "capabilities" / f"gpu{gpu_minor}" / "mig" / f"gi{gi_id}"
    gi_minor = known.get(gi) or _from_file(files / "access")
    ci_minor = None
    if ci_id is not None:
        ci_minor = known.get(f"{gi}/ci{ci_id}") or _from_file(files / f"ci{ci_id}" / "access")
    return _number(gi_minor), _number(ci_minor)


def _from_file(path: Path) -> str | None:
    found = re.search(r"^DeviceFileMinor:\s*(\d+)\s*$", read_word(path) or "", re.MULTILINE)
    return found.group(1) if found else None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
