"""Switching a node off: what runs on it ends at once, and what lies in memory is gone.

Really done: containers, containerd, the kubelet and the driver are killed; mounts below the node's
directory (tmpfs, containers' roots, network namespaces), containerd's state and the CDI specs are
removed; the boot id that the kubelet reports is a new one. Simulated: the kernel goes on, and a
driver that is not our own reads the machine's boot id, for it runs outside of the node.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

from conformance.clusters.base import ClusterError
from conformance.clusters.local import owndriver, procfs
from conformance.clusters.local.layout import NodeLayout
from conformance.clusters.local.processes import POLL_SECONDS, enter_command
from conformance.clusters.local.tools import find_tool

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_GONE_SECONDS = 20.0


def lose_memory(node: NodeLayout, init: int) -> None:
    """End all that runs in a node whose components are stopped, and empty its memory.

    Args:
        node: whose files are emptied.
        init: the process that holds its namespaces (`Processes.node_init`).

    Raises:
        ClusterError: something does not end, or cannot be unmounted.
    """
    _kill_all(node, init)
    inside = enter_command(init, pid_namespace=True)  # umount reads the /proc that it finds there
    for point in _mounts_below(node.dir, init):
        # Some go with others, for what is mounted once may be seen in several places.
        _run(*inside, find_tool("umount"), "--lazy", str(point))
    if left := _mounts_below(node.dir, init):
        raise ClusterError(f"{node.name}: still mounted: {', '.join(map(str, left))}")
    for folder in (node.containerd / "state", node.cdi, node.private / "run-containerd"):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    owndriver.reboot(node)
    boot_id = node.private / "boot_id"
    command = (
        () if boot_id.exists() else (find_tool("mount"), "--bind", str(boot_id), str(_BOOT_ID))
    )
    boot_id.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    if command and (failed := _run(*inside, *command)):
        raise ClusterError(f"{node.name}: no new boot id: {failed}")


def _kill_all(node: NodeLayout, init: int) -> None:
    deadline = time.monotonic() + _GONE_SECONDS
    while left := procfs.descendants(init):
        if time.monotonic() > deadline:
            raise ClusterError(f"{node.name}: processes {left} do not end")
        procfs.send(left, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def _mounts_below(directory: Path, pid: int) -> list[Path]:
    """Mount points below a directory as a process sees them, the deepest first."""
    points = []
    for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        point = Path(line.split()[4].encode().decode("unicode_escape"))
        if directory in point.parents:
            points.append(point)
    return sorted(points, key=lambda point: len(point.parts), reverse=True)


def _run(*command: str) -> str:
    """Run a command; what it says if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stderr.strip() if done.returncode else ""
