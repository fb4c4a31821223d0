"""Removes a cluster when the program that it belongs to has ended without doing so.

Started beside every cluster that is not persistent. It sleeps on the owner's pidfd, so it costs
nothing until then, and works however the owner ended: kill -9 included. A reaper that is itself
killed is no loss: the next `down` or `cleanup` removes the cluster.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from conformance.clusters.base import ClusterError
from conformance.clusters.local.layout import Layout
from conformance.clusters.local.processes.procfs import identify, wait_gone
from conformance.clusters.local.processes.supervision import ProcessSpec
from conformance.clusters.local.processes.tools import python_path
from conformance.clusters.local.removal import remove_cluster
from conformance.clusters.local.state import read_state
from conformance.locks import file_lock

NAME = "reaper"


def reaper_spec(layout: Layout, owner: int) -> ProcessSpec:
    """The reaper's process for the cluster of `layout` and the program with pid `owner`."""
    arguments = (layout.name, str(layout.dir), str(owner))
    return ProcessSpec(
        NAME,
        (sys.executable, "-m", "conformance.clusters.local.reaper", *arguments),
        layout.log(NAME),
        env={"PYTHONPATH": python_path()},
        inherit_env=True,
    )


def wait_and_remove(layout: Layout, owner: int) -> None:
    """Wait for the program `owner` to end; remove its cluster if it is still there.

    Raises ClusterError: something is left.
    """
    identity = identify(owner)
    if identity is not None:  # else it ended before we got here
        wait_gone(identity)
    with file_lock(layout.lock):
        state = read_state(layout)
        # A later cluster of the same name belongs to somebody else.
        if state is not None and state.owner is not None and state.owner.pid == owner:
            remove_cluster(layout, print, keep_logs=False)


def main(arguments: list[str]) -> int:
    """Run as `python -m conformance.clusters.local.reaper NAME DIR OWNER_PID`."""
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
