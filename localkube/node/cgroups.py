"""The control groups that a local cluster's pods live below: made for the kubelet, removed after.

Works on cgroup v1 (one tree per controller), v2 and both mounted together. A cgroup directory can
only be removed when it is empty of processes and of further cgroups.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from localkube.base import ClusterError
from localkube.processes import procfs


def mount_points() -> list[Path]:
    """Return where cgroup hierarchies are mounted, v1 and v2."""
    return [point for point, kind in procfs.list_mounts() if kind in ("cgroup", "cgroup2")]


def create(name: str) -> None:
    """Make the cgroup `name` ("/dra-1a2b/node-1") in every hierarchy.

    On v2 a controller works in a cgroup only when every cgroup above passes it on, so that is
    switched on on the way down.
    Raises ClusterError: a hierarchy cannot be written, as in an unprivileged container.
    """
    for root in mount_points():
        directory = root
        for folder_name in name.strip("/").split("/"):
            _pass_controllers_on(directory)
            directory /= folder_name
            try:
                directory.mkdir(exist_ok=True)
            except OSError as error:
                raise ClusterError(
                    f"cannot make the control group {directory}: {error.strerror}. A node's pods "
                    "need one; in a container that takes --privileged"
                ) from error
        _pass_controllers_on(directory)


def remove(name: str) -> list[str]:
    """Remove the cgroup `name` and all below it; returns the directories that could not be."""
    remaining = []
    for root in mount_points():
        top = root / name.strip("/")
        for directory, _, _ in os.walk(top, topdown=False):
            try:
                Path(directory).rmdir()
            except OSError:
                remaining.append(directory)
    return remaining


def _pass_controllers_on(directory: Path) -> None:
    try:
        controllers = (directory / "cgroup.controllers").read_text().split()
    except OSError:
        return  # v1
    for controller in controllers:
        # One at a time: some (for example threaded ones) may be refused, and are then not needed.
        with contextlib.suppress(OSError):
            (directory / "cgroup.subtree_control").write_text(f"+{controller}")
