"""Switching a node off: what runs on it ends at once, and what lies in memory is gone.

Really done: containers, containerd, the kubelet and the driver are killed; mounts below the node's
directory (tmpfs, containers' roots, network namespaces), containerd's state and the CDI specs are
removed; the boot id that the kubelet reports is a new one. Simulated: the kernel goes on, and a
driver that is not our own reads the machine's boot id, for it runs outside of the node.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from conformance.clusters.base import ClusterError
from conformance.clusters.local.layout import NodeLayout
from conformance.clusters.local.processes import procfs
from conformance.clusters.local.processes.supervision import enter_command
from conformance.clusters.local.processes.tools import failure_of, find_tool

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
    if left := procfs.kill_all(lambda: procfs.children(init, recursive=True), _GONE_SECONDS):
        raise ClusterError(f"{node.name}: processes {left} do not end")
    inside = enter_command(init, pid_namespace=True)  # umount reads the /proc that it finds there
    for point in procfs.mounts_below(node.dir, init):
        # Some go with others, for what is mounted once may be seen in several places.
        failure_of(*inside, find_tool("umount"), "--lazy", str(point))
    if mounted := procfs.mounts_below(node.dir, init):
        raise ClusterError(f"{node.name}: still mounted: {', '.join(map(str, mounted))}")
    for folder in (node.containerd / "state", node.cdi, node.private / "run-containerd"):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    boot_id = node.private / "boot_id"
    command = (
        () if boot_id.exists() else (find_tool("mount"), "--bind", str(boot_id), str(_BOOT_ID))
    )
    boot_id.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    if command and (failed := failure_of(*inside, *command)):
        raise ClusterError(f"{node.name}: no new boot id: {failed}")
