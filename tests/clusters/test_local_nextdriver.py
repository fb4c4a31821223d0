"""A driver's next version that does not get as far: the driver itself is left alone.

One that does is in test_local_real.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from conformance.clusters.base import ClusterError
from conformance.clusters.local.api import LocalApi
from conformance.clusters.local.layout import Layout
from conformance.clusters.local.nextdriver import NextDriver
from conformance.clusters.local.processes import Processes, ProcessSpec
from conformance.clusters.local.removal import remove_cluster

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")

DRIVER, KUBELET = "node-1/driver", "node-1/kubelet"
NAME = "d.example.com"


class Silent:
    """Stands in for a kubelet that has registered nobody."""

    def text(self, _path: str) -> Any:
        return None


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout("test", tmp_path / "cluster")
    yield layout
    remove_cluster(layout, lambda _line: None, keep_logs=False)


def running(layout: Layout, script: str) -> tuple[Processes, NextDriver]:
    """A driver that does as a script says, and what runs beside it."""
    processes = Processes(layout)
    node = layout.node(1)
    env = {"KUBELET_REGISTRAR_DIRECTORY_PATH": str(node.registrar)}
    for name, what in ((DRIVER, script), (KUBELET, "exec sleep 1000")):
        log = layout.log(name)
        processes.start(ProcessSpec(name, ("/bin/sh", "-c", what), log, env=env))
    silent = cast("LocalApi", Silent())
    return processes, NextDriver(node, processes, silent, silent, NAME)


@pytest.mark.parametrize("action", ["startNext", "startUnregistered", "replace"])
def test_a_program_that_does_not_run_twice_is_told_and_the_driver_runs_on(
    action: str, layout: Layout
) -> None:
    script = '[ -n "$POD_UID" ] || exec sleep 1000; echo there is one; exit 1'
    processes, beside = running(layout, script)
    before = processes.records()
    with pytest.raises(ClusterError, match=r"next-driver exited while waiting(.|\n)*there is one"):
        beside.disturb(action, 0)
    assert processes.records() == before
    assert processes.alive(DRIVER)


def test_every_other_instance_has_a_pod_uid(layout: Layout) -> None:
    said = 'echo "uid=$POD_UID at $KUBELET_REGISTRAR_DIRECTORY_PATH"'
    _, beside = running(layout, f'{said}; [ -n "$POD_UID" ] || exec sleep 1000; exit 1')
    while not layout.log(DRIVER).exists() or not layout.log(DRIVER).read_text():
        time.sleep(0.01)
    for action in ("startNext", "startUnregistered"):
        with pytest.raises(ClusterError):
            beside.disturb(action, 0)
    node = layout.node(1)
    assert layout.log(DRIVER).read_text().splitlines() == [
        f"uid= at {node.registrar}",
        f"uid=2 at {node.registrar}",
        f"uid=2 at {node.driver / 'unregistered'}",
    ]
    assert not (node.driver / "unregistered").exists()
