"""Removing a local cluster, whatever state it is in and whoever started it.

What is to be removed is found in three ways, each of which covers a gap of the others: the process
records (orderly stop), the mark in the environment of every process (started, killed before it was
recorded), and the names that are computed from the state directory (interfaces, cgroups, mounts
below it). So it works half way through a start, after a kill -9, and a second time.

This file is also a program, the reaper of every cluster that is not persistent: it sleeps on the
pidfd of the program that the cluster belongs to, and removes the cluster however that ends, kill -9
included. A reaper that is itself killed is no loss: the next `down` or `cleanup` removes it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

from kube.base.locks import file_lock
from kube.base.processes import identify_process, wait_gone
from kube.components import OTHER_SCHEDULER
from localkube.base import ClusterError, Progress
from localkube.layout import Layout
from localkube.node import cgroups, network
from localkube.processes import procfs
from localkube.processes.deaths import REAPER
from localkube.processes.supervision import Processes, ProcessSpec
from localkube.processes.tools import failure_of, find_tool, python_path
from localkube.state import read_state

_CONTROL_PLANE = ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")
"""In the order in which it stops."""

_DRIVER_SECONDS = 10.0
_GONE_SECONDS = 20.0
_HURRY_SECONDS = 3.0


def remove_cluster(layout: Layout, progress: Progress, *, keep_logs: bool) -> None:
    """Stop and remove everything of the cluster. The caller holds its lock.

    Args:
        layout: where the cluster is.
        keep_logs: leave the log files (a start failed and its message names them).

    Raises ClusterError: something is left; the message names it.
    """
    if layout.dir.exists():
        progress(f"stopping cluster {layout.name}")
        _stop_recorded(Processes(layout))
    # The reaper and everything that was never recorded. Not ourselves: a driver may call us.
    remaining = _kill_rest(layout)
    remaining += _unmount(layout)
    if os.geteuid() == 0:
        network.remove_interfaces(layout)
        remaining += [f"network interface {name}" for name in network.list_interfaces(layout)]
        remaining += [f"control group {path}" for path in _remove_cgroups(layout)]
    # Records last: the next `down` finds by them what still runs.
    if not remaining:
        remaining += _remove_files(layout, keep_logs)
    if remaining:
        raise ClusterError(
            f"cluster {layout.name} was stopped, but this is left: " + "; ".join(remaining)
        )


def _stop_recorded(processes: Processes) -> None:
    """Stop what is written down, in an order in which nothing is started again.

    Drivers first and gracefully: they may have something to undo on real devices. The rest is
    killed, because its data is about to be deleted: kubelets before anything that they would
    restart, nodes as a whole, then the control plane from the outside in.
    """
    records = processes.records()
    drivers = [name for name in records if name.endswith("/driver")]
    # Without an API server there is nothing that a driver could undo there, but it would try.
    hurry = not processes.alive("kube-apiserver")
    processes.stop(*drivers, grace_seconds=_HURRY_SECONDS if hurry else _DRIVER_SECONDS)
    on_nodes = [name for name in records if name.startswith("node-")]
    for names in (
        [name for name in on_nodes if name.endswith("/kubelet")],
        [name for name in on_nodes if "/" in name],
        on_nodes,
        (OTHER_SCHEDULER, *_CONTROL_PLANE),
    ):
        processes.stop(*names, grace_seconds=0)


def find_processes(layout: Layout) -> set[int]:
    """Return the pids of all processes of a cluster, its pods' included, but not this one's."""
    return {*procfs.find_marked(layout.dir), *procfs.in_cgroup(layout.cgroup)} - {os.getpid()}


def _kill_rest(layout: Layout) -> list[str]:
    find = partial(find_processes, layout)
    return [f"process {pid}" for pid in procfs.kill_all(find, _GONE_SECONDS)]


def _unmount(layout: Layout) -> list[str]:
    """Unmount what is mounted below the state directory.

    A node's mounts are in a namespace of its own and gone by now; this is for what a driver has
    mounted outside.
    """
    for point in procfs.mounts_below(layout.dir):
        failure_of(find_tool("umount"), "--lazy", str(point))
    return [f"mount {point}" for point in procfs.mounts_below(layout.dir)]


def _remove_cgroups(layout: Layout) -> list[str]:
    """Remove cgroups, return those left; killed processes leave theirs a moment after /proc."""
    deadline = time.monotonic() + _GONE_SECONDS
    while True:
        remaining = cgroups.remove(layout.cgroup)
        if not remaining or time.monotonic() > deadline:
            return remaining
        time.sleep(procfs.POLL_SECONDS)


def _remove_files(layout: Layout, keep_logs: bool) -> list[str]:
    failed: list[str] = []
    for path in sorted(layout.dir.glob("*")) if layout.dir.exists() else []:
        if keep_logs and path == layout.logs:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, onerror=lambda _f, name, _e: failed.append(f"file {name}"))
        else:
            path.unlink(missing_ok=True)
    if not keep_logs and layout.dir.exists() and not failed:
        layout.dir.rmdir()
    return failed


def reaper_spec(layout: Layout, owner: int) -> ProcessSpec:
    """Return the reaper's process for the cluster of `layout` and the program with pid `owner`."""
    arguments = (layout.name, str(layout.dir), str(owner))
    return ProcessSpec(
        REAPER,
        (sys.executable, "-m", "localkube.removal", *arguments),
        layout.log(REAPER),
        env={"PYTHONPATH": python_path()},
        inherit_env=True,
    )


def wait_and_remove(layout: Layout, owner: int) -> None:
    """Wait for the program `owner` to end; remove its cluster if it is still there.

    Raises ClusterError: something is left.
    """
    identity = identify_process(owner)
    if identity is not None:  # else it ended before we got here
        wait_gone(identity)
    with file_lock(layout.lock):
        state = read_state(layout)
        # A later cluster of the same name belongs to somebody else.
        if state is not None and state.owner is not None and state.owner.pid == owner:
            remove_cluster(layout, print, keep_logs=False)


def main(arguments: list[str]) -> int:
    """Run as `python -m localkube.removal NAME DIR OWNER_PID`."""
    name, directory, owner = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        wait_and_remove(Layout(name, Path(directory)), int(owner))
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
