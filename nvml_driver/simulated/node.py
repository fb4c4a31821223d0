"""What surrounds NVML on a node with GPUs, made from a profile: sysfs and device files.

NVML does not tell where a GPU hangs on the PCIe tree; a driver reads that from sysfs. And a
container gets a GPU as a character device. Both are real here: a small tree of directories and
links, and device files with the numbers of the null device, which CDI and container runtimes
inject like any other.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from nvml_driver.errors import DriverError
from nvml_driver.simulated.profile import Profile

NULL_DEVICE = (1, 3)
"""Major and minor of /dev/null: a device file that is always allowed and does no harm."""


def make_sysfs(profile: Profile, root: Path) -> None:
    """Write the part of sysfs that discovery reads below ``root``.

    ``bus/pci/devices/<address>`` links to the device's directory under ``devices/``, which holds
    the file ``numa_node`` (-1 where the platform does not tell), as the kernel lays it out.

    Raises:
        DriverError: the tree cannot be written.
    """
    links = root / "bus" / "pci" / "devices"
    try:
        links.mkdir(parents=True, exist_ok=True)
        for gpu in profile.gpus:
            if gpu.sysfs_path is None:
                continue
            folder = root / "devices" / gpu.sysfs_path
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "numa_node").write_text(f"{gpu.numa_node}\n")
            target = f"../../../devices/{gpu.sysfs_path}"
            link = links / gpu.pci_bus_id
            if not link.is_symlink() or str(link.readlink()) != target:
                link.unlink(missing_ok=True)
                link.symlink_to(target)
    except OSError as error:
        raise DriverError(f"cannot write the simulated sysfs tree below {root}: {error}") from None


def make_device_files(root: Path, names: Iterable[str]) -> None:
    """Make the named character devices in ``root``, with the null device's numbers, mode 0666.

    A file that is right already stays; anything else of that name is an error, never replaced.

    Raises:
        DriverError: not root, or ``root`` cannot hold device files; the message says what to do.
    """
    for name in names:
        path = root / name
        try:
            root.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(*NULL_DEVICE))
                path.chmod(0o666)  # mknod's mode goes through the umask
            found = path.stat()
        except OSError as error:
            raise DriverError(
                f"cannot make the device file {path}: {error.strerror or error}; making device "
                "files takes root (CAP_MKNOD), and --device-root says where they go"
            ) from None
        if not stat.S_ISCHR(found.st_mode) or found.st_rdev != os.makedev(*NULL_DEVICE):
            raise DriverError(f"{path} is in the way: it is not a device file of the simulation")
