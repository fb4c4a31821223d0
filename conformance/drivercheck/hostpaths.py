"""What a driver under check finds in place of the folders that drivers have in their code.

A driver's DaemonSet mounts the kubelet's root and the CDI folders from its node (hostPath), and
many drivers name them in their code and nowhere else. In a mount namespace of its own, which takes
root, the driver finds the check's folders there. One that the machine lacks is made, and stays.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from conformance.clusters.local.layout import KUBELET_ROOT

BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
PLACES: Final = {KUBELET_ROOT: ".", "/var/run/cdi": "cdi", "/etc/cdi": "etc-cdi"}
"""Where a driver looks -> what it finds there, below the folder of the check."""

_BIND: Final = """\
while [ "$1" != -- ]; do
    [ -e "$2" ] || mkdir -p "$2"
    mount --bind "$1" "$2" || exit 1
    shift 2
done
shift
exec "$@"
"""


def can_be_shown() -> bool:
    """Whether this user may give a process a mount namespace."""
    return os.geteuid() == 0 and _has_namespaces()


@functools.cache
def _has_namespaces() -> bool:
    """Whether a root of this machine may, which in containers is mostly not so."""
    command = ("unshare", "--mount", "true")
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def places(folder: Path) -> dict[str, Path]:
    """Where a driver looks -> the folder of the check in that place, where it can be shown."""
    if not can_be_shown():
        return {}
    return {place: folder / name for place, name in PLACES.items() if (folder / name).is_dir()}


def showing(found: Mapping[str, Path]) -> tuple[str, ...]:
    """Start of a command whose rest finds other files in these places; empty for none."""
    if not found:
        return ()
    pairs = (word for place, source in found.items() for word in (str(source), place))
    return ("unshare", "--mount", "sh", "-c", _BIND, "sh", *pairs, "--")


def outside(path: str, folder: Path) -> str:
    """A path that a driver names, as it is seen outside of its mount namespace."""
    below = Path(path).is_relative_to(KUBELET_ROOT)
    own = folder / Path(path).relative_to(KUBELET_ROOT) if below else Path(path)
    return str(own) if below and own.exists() else path
