"""The places at which a driver finds what the kernel shows of GPUs beside NVML.

All of it can be elsewhere: in a container, and for simulated GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoots:
    """Directories and files of one node; ``boot_id`` changes with each boot.

    ``proc`` has ``driver/nvidia-caps/mig-minors``, which lists MIG's capability devices;
    ``pci_ids`` are the names of PCI devices, as the hwdata package has them.
    """

    sysfs: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    boot_id: Path = Path("/proc/sys/kernel/random/boot_id")
    pci_ids: Path = Path("/usr/share/misc/pci.ids")
