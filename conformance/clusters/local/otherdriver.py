"""A second driver beside a node's own: there while somebody needs it, and nothing of it afterwards.

It is our own driver on simulated GPUs, under another name and with names of its own for what
containers get (``--container-prefix``), whatever the node's driver is. Both use the node's one
directory for CDI specs and that for registration sockets, as drivers of several vendors do.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from conformance.clusters.local import attached, driver, owndriver
from conformance.clusters.local.api import LocalApi
from conformance.clusters.local.layout import Layout, NodeLayout
from conformance.clusters.local.options import OtherDriver
from conformance.clusters.local.processes import Processes, ProcessSpec
from conformance.clusters.local.tools import python_path

PART: Final = "other-driver"
"""What stands behind a node's name for it."""

REMOVE: Final = "remove"
"""The action by which it ends for good."""


def spec(layout: Layout, other: OtherDriver, index: int) -> ProcessSpec:
    """Its process on node `index` (from 1)."""
    node = layout.node(index)
    name = f"{node.name}/{PART}"
    env = driver.driver_environment(layout, node)
    env["DRA_CONFORMANCE_DRIVER_DIRECTORY"] = str(node.other)
    env["PYTHONPATH"] = python_path()
    command = owndriver.other_command(other, node)
    return ProcessSpec(name, command, layout.log(name), env=env, inherit_env=True)


def sockets(node: NodeLayout, driver_name: str) -> set[str]:
    """Its registration sockets on a node, also those that it has left behind."""
    return {str(path) for path in node.registrar.glob(f"{driver_name}-*")}


def remove(
    node: NodeLayout, driver_name: str, processes: Processes, api: LocalApi, grace_seconds: float
) -> None:
    """End it, and remove its slices and files; nothing happens where it never ran."""
    name = f"{node.name}/{PART}"
    if name not in processes.records():
        return
    processes.stop(name, grace_seconds=grace_seconds)
    processes.forget(name)
    for socket in sockets(node, driver_name):
        Path(socket).unlink(missing_ok=True)
    shutil.rmtree(node.other, ignore_errors=True)
    # A kubelet deletes them only 30 s after it has lost the driver.
    selector = f"spec.driver%3D{driver_name},spec.nodeName%3D{node.name}"
    api.delete(f"{attached.SLICES_PATH}?fieldSelector={selector}")
