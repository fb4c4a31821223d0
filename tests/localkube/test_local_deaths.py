from __future__ import annotations

import queue
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kube.base.processes import wait_gone
from localkube import LocalCluster, LocalOptions
from localkube import cluster as cluster_module
from localkube.base import ClusterError, ClusterUsageError
from localkube.layout import Layout
from localkube.processes.deaths import first_dead, watch_components
from localkube.processes.supervision import Processes, ProcessSpec
from localkube.removal import remove_cluster
from localkube.start import Start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")

DRIVER = "node-1/driver"


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout("test", tmp_path / "cluster")
    yield layout
    remove_cluster(layout, lambda _line: None, keep_logs=False)


def start(layout: Layout, script: str, name: str = DRIVER) -> Processes:
    processes = Processes(layout)
    processes.start(ProcessSpec(name, ("/bin/sh", "-c", script), layout.log(name)))
    return processes


@pytest.fixture
def watch() -> Iterator[Callable[[Processes], queue.Queue[str]]]:
    ends: list[Callable[[], None]] = []

    def begin(processes: Processes) -> queue.Queue[str]:
        told: queue.Queue[str] = queue.Queue()
        ends.append(watch_components(processes, told.put))
        return told

    yield begin
    for end in ends:
        end()


Watching = Callable[[Processes], "queue.Queue[str]"]


def test_a_driver_that_dies_is_told_with_its_status_and_the_end_of_its_log(
    layout: Layout, watch: Watching
) -> None:
    processes = start(layout, "echo token=abcdefgh; echo boo; sleep 0.3; exit 7")
    pid = processes.records()[DRIVER].identity.pid
    first, *tail = watch(processes).get(timeout=60).splitlines()
    assert first.startswith(
        f"{DRIVER} (pid {pid}) has ended, exit status 7, although the suite did not stop it"
    )
    assert tail == ["  token=<redacted>", "  boo"]


def test_a_driver_that_was_killed_from_outside_is_told_with_the_signal(
    layout: Layout, watch: Watching
) -> None:
    told = watch(start(layout, "kill -KILL $$")).get(timeout=60)
    assert "by signal SIGKILL" in told
    assert "its log is empty" in told


@pytest.mark.parametrize("grace", [0, 5])
def test_a_driver_that_was_stopped_is_no_death_in_any_program(layout: Layout, grace: float) -> None:
    processes = start(layout, "sleep 100")
    assert first_dead(processes) is None
    processes.stop(DRIVER, grace_seconds=grace)
    assert not processes.alive(DRIVER)
    assert first_dead(Processes(layout)) is None


def test_a_driver_that_dies_after_it_was_stopped_and_started_again_is_told(layout: Layout) -> None:
    processes = start(layout, "sleep 100")
    processes.stop(DRIVER, grace_seconds=0)
    record = start(layout, "exit 1").records()[DRIVER]
    assert wait_gone(record.identity, 10)
    assert first_dead(processes) == record


@pytest.mark.parametrize(
    ("name", "watched"),
    [
        ("etcd", True),
        ("kube-apiserver", True),
        ("node-1/kubelet", True),
        ("node-1/next-driver", False),
        ("reaper", False),
    ],
)
def test_components_are_watched_and_not_what_may_end(
    layout: Layout, name: str, watched: bool
) -> None:
    processes = start(layout, "exit 1", name=name)
    record = processes.records()[name]
    assert wait_gone(record.identity, 10)
    assert first_dead(processes) == (record if watched else None)


def test_the_logs_of_a_failed_start_stay_for_who_reads_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "cluster"
    cluster = LocalCluster(LocalOptions(name="t", state_dir=directory, nodes=0))
    log = cluster.layout.log("etcd")

    def fail(_self: Start) -> None:
        log.parent.mkdir(parents=True)
        log.write_text("why")
        raise ClusterError(f"etcd exited (log: {log})")

    monkeypatch.setattr(Start, "run", fail)
    monkeypatch.setattr(cluster_module, "resolve_binaries", lambda *_args: tmp_path)
    with pytest.raises(ClusterError):
        cluster.up()
    cluster.down()  # as whoever had asked for the cluster does
    assert log.read_text() == "why"
    with pytest.raises(ClusterUsageError):
        cluster.access()
    LocalCluster(cluster.options).down()
    assert not directory.exists()
