"""Makes what surrounds NVML on a node with GPUs from a profile: sysfs, /proc and device files.

NVML does not say where a GPU hangs on the PCIe tree, nor which device files a MIG device needs; a
driver reads that from sysfs and /proc. And a container gets a GPU as a character device. All are
real here: a small tree of directories and links, and device files with numbers behind which there
is no device, which CDI, container runtimes and the kernel's device cgroup treat like any other.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterable
from pathlib import Path

from nvml_driver.errors import DriverError
from nvml_driver.model.roots import NodeRoots
from nvml_driver.simulated.profile import Profile

MAJOR = 120
"""For local and experimental use (devices.txt of the kernel), so no driver of it has this one:
to open such a file gives ENXIO, or EPERM where it is not allowed."""

MAJOR_APART = 121
"""Also for local use: of the files of a driver that shows its devices by names of their own."""

_MINORS = {
    "nvidia": 0,
    "nvidia-caps/nvidia-cap": 0x1000,
    "vfio/": 0x4000,
    "vfio/devices/vfio": 0x8000,
}
"""Name without its number -> minor of number 0."""
_OTHER_MINORS = {"nvidiactl": 0xFF, "vfio/vfio": 0xFFF, "iommu": 0xFFE}

_NVIDIA = "0x10de"
_CLASS_3D = "0x030200"
_GIS, _CIS = 15, 8  # of one GPU, in the numbering of mig-minors


def make_node(profile: Profile, folder: Path) -> NodeRoots:
    """Make everything below one directory; a boot id stays until deleted. Raises DriverError."""
    roots = NodeRoots(
        sysfs=folder / "sys",
        proc=folder / "proc",
        dev=folder / "dev",
        boot_id=folder / "boot_id",
        pci_ids=folder / "pci.ids",
    )
    make_sysfs(profile, roots.sysfs)
    try:
        roots.dev.mkdir(parents=True, exist_ok=True)
        if not roots.boot_id.exists():
            roots.boot_id.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        minors = roots.proc / "driver" / "nvidia-caps" / "mig-minors"
        minors.parent.mkdir(parents=True, exist_ok=True)
        minors.write_text(mig_minors(profile), encoding="ascii")
    except OSError as error:
        raise DriverError(f"cannot write the simulated node in {folder}: {error}") from None
    return roots


def mig_minors(profile: Profile) -> str:
    """Return ``/proc/driver/nvidia-caps/mig-minors``: the minors of all possible capabilities.

    The numbering is the one of NVIDIA's MIG User Guide, "Device Nodes and Capabilities": 9 for each
    of the 15 GPU instances of a GPU, from 3 on.
    """
    lines = ["config 1", "monitor 2"]
    for gpu in profile.gpus:
        if gpu.mig is None:
            continue
        for gi in range(_GIS):
            first = 3 + (gpu.minor * _GIS + gi) * (_CIS + 1)
            lines.append(f"gpu{gpu.minor}/gi{gi}/access {first}")
            lines += [f"gpu{gpu.minor}/gi{gi}/ci{ci}/access {first + 1 + ci}" for ci in range(_CIS)]
    return "\n".join(lines) + "\n"


def make_sysfs(profile: Profile, root: Path) -> None:
    """Write the part of sysfs that discovery reads below ``root``. Raises DriverError.

    ``bus/pci/devices/<address>`` links to the device's directory under ``devices/``, which holds
    ``numa_node`` (-1 where the platform does not report), ``vendor``, ``device``, ``class`` and
    links to the kernel driver and the IOMMU group, as the kernel lays it out.
    """
    links = root / "bus" / "pci" / "devices"
    try:
        links.mkdir(parents=True, exist_ok=True)
        for gpu in profile.gpus:
            if gpu.sysfs_path is None:
                continue
            folder = root / "devices" / gpu.sysfs_path
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / "numa_node", f"{gpu.numa_node}")
            _write(folder / "vendor", _NVIDIA)
            _write(folder / "device", f"0x{gpu.pci_device_id >> 16:04x}")
            _write(folder / "class", _CLASS_3D)
            _link(folder / "driver", root / "bus" / "pci" / "drivers" / gpu.bound_to)
            if gpu.iommu_group is not None:
                _link(
                    folder / "iommu_group", root / "kernel" / "iommu_groups" / f"{gpu.iommu_group}"
                )
            _link(links / gpu.pci_bus_id, folder)
    except OSError as error:
        raise DriverError(f"cannot write the simulated sysfs tree below {root}: {error}") from None


def _write(path: Path, text: str) -> None:
    content = f"{text}\n"
    if not path.exists() or path.read_text() != content:
        path.write_text(content)


def _link(path: Path, to: Path) -> None:
    """Make a relative link, as sysfs has them, to a directory that is made if need be."""
    to.mkdir(parents=True, exist_ok=True)
    target = os.path.relpath(to, path.parent)
    if not path.is_symlink() or str(path.readlink()) != target:
        path.unlink(missing_ok=True)
        path.symlink_to(target)


def device_number(name: str, *, apart: bool = False) -> tuple[int, int]:
    """Return major and minor of a device file, by its name below ``/dev``; each has its own."""
    major = MAJOR_APART if apart else MAJOR
    if name in _OTHER_MINORS:
        return major, _OTHER_MINORS[name]
    stem = name.rstrip("0123456789")
    return major, _MINORS[stem] + int(name[len(stem) :])


def make_device_files(root: Path, names: Iterable[str], *, apart: bool = False) -> None:
    """Make the named character devices in ``root``, with their numbers, mode 0666.

    A file that is right already stays; anything else of that name is an error, never replaced. The
    DriverError (not root, or no device files there) says what to do.
    """
    for name in names:
        path, number = root / name, os.makedev(*device_number(name, apart=apart))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                os.mknod(path, 0o666 | stat.S_IFCHR, number)
                path.chmod(0o666)  # mknod's mode goes through the umask
            status = path.stat()
        except OSError as error:
            raise DriverError(
                f"cannot make the device file {path}: {error.strerror or error}; making device "
                "files takes root (CAP_MKNOD), and --device-root says where they go"
            ) from None
        if not stat.S_ISCHR(status.st_mode) or status.st_rdev != number:
            raise DriverError(f"{path} is in the way: it is not a device file of the simulation")
