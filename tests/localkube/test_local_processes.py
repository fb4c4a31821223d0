from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from pydantic import TypeAdapter

from kube.base.processes import identify_process, is_alive, wait_gone
from localkube.base import ClusterError, ClusterUsageError
from localkube.component import Component, Running
from localkube.layout import Layout
from localkube.processes import procfs
from localkube.processes.supervision import Processes, ProcessRecord, ProcessSpec
from localkube.processes.tools import describe_log
from localkube.removal import find_processes, remove_cluster
from tests.localkube.test_local_config import make_state

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")

STUBBORN = "trap '' TERM; echo armed; exec sleep 1000"  # what is ignored stays so
"""Ignores SIGTERM; "armed" in its log says that it does so by now."""


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout("test", tmp_path / "cluster")
    yield layout
    remove_cluster(layout, lambda _line: None, keep_logs=False)


def spec(layout: Layout, *command: str, name: str = "etcd") -> ProcessSpec:
    return ProcessSpec(name, command, layout.log(name))


def test_started_process_runs_and_its_output_is_in_its_log(layout: Layout) -> None:
    processes = Processes(layout)
    record = processes.start(spec(layout, "/bin/sh", "-c", "echo out; echo err >&2"))
    assert wait_gone(record.identity, 10)
    assert layout.log("etcd").read_text() == "out\nerr\n"


def test_process_sees_the_mark_and_no_settings_of_the_user(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    processes = Processes(layout)
    record = processes.start(spec(layout, "/usr/bin/env"))
    wait_gone(record.identity, 10)
    assert layout.log("etcd").read_text().split() == [f"{procfs.MARK}={layout.dir}"]
    inheriting = dataclasses.replace(
        spec(layout, "/usr/bin/env", name="d"), inherit_env=True, env={"A": "b"}
    )
    wait_gone(processes.start(inheriting).identity, 10)
    lines = layout.log("d").read_text().splitlines()
    assert "HTTPS_PROXY=http://proxy" in lines
    assert "A=b" in lines


def test_program_that_cannot_be_executed_is_one_message(layout: Layout) -> None:
    with pytest.raises(ClusterError, match=r"etcd: cannot start /nowhere/etcd: No such file"):
        Processes(layout).start(spec(layout, "/nowhere/etcd"))


def test_another_object_finds_and_stops_it_by_its_record(layout: Layout) -> None:
    record = Processes(layout).start(spec(layout, "/bin/sleep", "1000"))
    other = Processes(layout)
    assert other.alive("etcd")
    assert other.records()["etcd"] == record
    other.stop("etcd", grace_seconds=10)
    assert not other.alive("etcd")
    assert not is_alive(record.identity)


def has_armed(log: Path) -> bool:
    return "armed" in log.read_text()


class Told(Component):
    """A component that is ready once it has said something."""

    def is_ready(self) -> bool:
        return self.processes.alive(self.name)


def test_a_component_is_upgraded_to_the_program_of_the_next_minor(
    layout: Layout, tmp_path: Path
) -> None:
    for name in ("now", "next"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "etcd").symlink_to("/bin/sleep")
    state = replace(make_state(0), binaries=tmp_path / "now")
    processes = Processes(layout)
    processes.start(ProcessSpec("etcd", (f"{tmp_path}/now/etcd", "1000"), layout.log("etcd")))
    processes.start(ProcessSpec("other", ("/bin/sleep", "1000"), layout.log("other")))
    with pytest.raises(ClusterUsageError, match="etcd cannot be upgraded"):
        Told(Running(layout, state, processes), "etcd").upgrade()
    cluster = Running(layout, replace(state, next_binaries=tmp_path / "next"), processes)
    for _ in range(2):  # a scenario that is tried again finds it upgraded
        Told(cluster, "etcd").upgrade()
        spec = processes.records()["etcd"].spec
        assert spec.command == (f"{tmp_path}/next/etcd", "1000")
    with pytest.raises(ClusterUsageError, match="other cannot be upgraded"):
        Told(cluster, "other").upgrade()


def test_gates_stand_beside_the_clusters_own_until_they_are_undone(layout: Layout) -> None:
    state = replace(make_state(0), feature_gates={"Own": True})
    processes = Processes(layout)
    shell = ("/bin/sh", "-c", "exec sleep 1000", "--feature-gates=Own=true")
    processes.start(ProcessSpec("etcd", shell, layout.log("etcd")))
    component = Told(Running(layout, state, processes), "etcd")
    for gates, flag in (({"Other": False}, "Other=false,Own=true"), ({}, "Own=true")):
        component.set_gates(gates)
        command = processes.records()["etcd"].spec.command
        assert command == (*shell[:-1], f"--feature-gates={flag}")


def test_several_that_ignore_sigterm_share_one_grace_period(layout: Layout) -> None:
    processes = Processes(layout)
    names = [f"node-{number}/driver" for number in range(6)]
    for name in names:
        processes.start(ProcessSpec(name, ("/bin/sh", "-c", STUBBORN), layout.log(name)))
    for name in names:
        armed = partial(has_armed, layout.log(name))
        processes.wait_ready(name, armed, 30, "arming itself")
    started = time.monotonic()
    processes.stop(*names, grace_seconds=1)
    assert time.monotonic() - started < len(names)
    assert not any(processes.alive(name) for name in names)


def test_stopping_what_does_not_run_does_nothing(layout: Layout) -> None:
    processes = Processes(layout)
    processes.stop("etcd", grace_seconds=1)
    wait_gone(processes.start(spec(layout, "/bin/true")).identity, 10)
    processes.stop("etcd", grace_seconds=1)


def test_number_that_belongs_to_another_process_by_now_is_left_alone(layout: Layout) -> None:
    processes = Processes(layout)
    with subprocess.Popen(["/bin/sleep", "1000"]) as innocent:
        identity = identify_process(innocent.pid)
        assert identity is not None
        earlier = dataclasses.replace(identity, start_time=identity.start_time - 1)
        layout.processes.mkdir(parents=True)
        record = ProcessRecord(spec(layout, "/bin/sleep", "1000"), earlier)
        text = TypeAdapter(ProcessRecord).dump_json(record)
        (layout.processes / "etcd.json").write_bytes(text)
        assert not processes.alive("etcd")
        processes.stop("etcd", grace_seconds=0)
        assert innocent.poll() is None
        innocent.kill()


def test_process_of_an_earlier_boot_is_not_alive() -> None:
    identity = identify_process(os.getpid())
    assert identity is not None
    assert identity.alive()
    assert not dataclasses.replace(identity, boot_id="an earlier one").alive()


def test_zombie_is_not_alive() -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as child:
        identity = identify_process(child.pid)
        assert identity is not None
        child.kill()
        descriptor = os.pidfd_open(child.pid)
        os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOWAIT)  # ended, and still unburied
        os.close(descriptor)
        assert not identity.alive()


FIRST_THREAD_ENDS = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # this thread exits
"""


def test_process_of_which_a_thread_still_runs_is_alive() -> None:
    """Its files are open: somebody may still answer at its sockets."""
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS]) as child:
        identity = identify_process(child.pid)
        assert identity is not None
        try:
            while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.01)
            assert identity.alive()
            assert not wait_gone(identity, 0)
        finally:
            child.kill()
        assert wait_gone(identity, 10)


def test_half_written_record_is_passed_over(layout: Layout) -> None:
    processes = Processes(layout)
    processes.start(spec(layout, "/bin/sleep", "1000"))
    (layout.processes / "kubelet.json").write_text('{"spec": {"na')
    assert list(processes.records()) == ["etcd"]


def test_record_survives_its_file(layout: Layout) -> None:
    full = ProcessSpec("n/d", ("/bin/true", "b"), layout.log("d"), {"A": "b"}, inherit_env=True)
    record = Processes(layout).start(full)
    assert Processes(layout).records() == {"n/d": record}


def test_waiting_ends_early_with_the_end_of_the_log_when_the_process_exits(layout: Layout) -> None:
    processes = Processes(layout)
    processes.start(spec(layout, "/bin/sh", "-c", "echo unrecognized feature gate: Foo; exit 1"))
    with pytest.raises(ClusterError, match="exited while waiting for it") as caught:
        processes.wait_ready("etcd", lambda: False, 60, "waiting for it")
    assert "unrecognized feature gate: Foo" in str(caught.value)
    assert str(layout.log("etcd")) in str(caught.value)


def test_waiting_gives_up_when_the_time_is_over(layout: Layout) -> None:
    processes = Processes(layout)
    processes.start(spec(layout, "/bin/sleep", "1000"))
    with pytest.raises(ClusterError, match=r"gave up after 0 s of waiting for it"):
        processes.wait_ready("etcd", lambda: False, 0.2, "waiting for it")


def test_after_close_nothing_is_started_and_waits_end(layout: Layout) -> None:
    processes = Processes(layout)
    processes.start(spec(layout, "/bin/sleep", "1000"))
    processes.close()
    with pytest.raises(ClusterError, match="another component failed"):
        processes.start(spec(layout, "/bin/sleep", "1000", name="other"))
    with pytest.raises(ClusterError, match="another component failed"):
        processes.wait_ready("etcd", lambda: False, 60, "waiting")


def test_only_the_last_lines_of_a_log_are_told(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("\n".join(f"line {number}" for number in range(100)))
    text = describe_log(log, lines=2)
    assert text.splitlines()[1:] == ["  line 98", "  line 99"]
    assert "empty" in describe_log(tmp_path / "none.log")


def test_the_memory_that_a_process_had_counts_when_it_has_let_go_of_it(layout: Layout) -> None:
    script = "import time; block = b'x' * (64 << 20); del block; print('let go', flush=True)"
    command = (sys.executable, "-c", f"{script}; time.sleep(1000)")
    record = Processes(layout).start(spec(layout, *command))
    deadline = time.monotonic() + 10
    while "let go" not in layout.log("etcd").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    peak = procfs.peak_memory(find_processes(layout))
    assert 64 << 20 <= peak < 128 << 20
    assert procfs.peak_memory([record.identity.pid, record.identity.pid]) == 2 * peak
    assert procfs.peak_memory([2**22 + 1]) == 0  # no process: pid_max(5) is at most 2^22


def test_removal_finds_a_process_that_was_never_written_down(layout: Layout) -> None:
    layout.dir.mkdir()
    environment = {procfs.MARK: str(layout.dir)}
    with subprocess.Popen(["/bin/sleep", "1000"], env=environment) as lost:
        # Between fork and exec it still has our environment, without the mark.
        while lost.pid not in procfs.find_marked(layout.dir):
            assert lost.poll() is None
        remove_cluster(layout, lambda _line: None, keep_logs=False)
        assert lost.wait(10) == -9


def test_removal_is_idempotent_and_leaves_no_file(layout: Layout) -> None:
    Processes(layout).start(spec(layout, "/bin/sleep", "1000"))
    (layout.dir / "n1").mkdir()
    (layout.dir / "n1" / "file").touch()
    for _ in range(2):
        remove_cluster(layout, lambda _line: None, keep_logs=False)
        assert not layout.dir.exists()


def test_removal_after_a_failed_start_keeps_the_logs_alone(layout: Layout) -> None:
    Processes(layout).start(spec(layout, "/bin/sleep", "1000"))
    layout.pki.mkdir()
    remove_cluster(layout, lambda _line: None, keep_logs=True)
    assert list(layout.dir.iterdir()) == [layout.logs]


def test_process_that_takes_over_a_name_is_the_one_that_is_stopped_by_it(layout: Layout) -> None:
    processes = Processes(layout)
    old = processes.start(spec(layout, "/bin/sleep", "1000", name="node-1/driver"))
    new = processes.start(spec(layout, "/bin/sleep", "1001", name="node-1/next-driver"))
    processes.stop("node-1/driver", grace_seconds=5)
    processes.rename("node-1/next-driver", "node-1/driver")
    [record] = processes.records().values()
    assert record == ProcessRecord(
        dataclasses.replace(new.spec, name="node-1/driver"), new.identity
    )
    assert not is_alive(old.identity)
    assert processes.alive("node-1/driver")
    assert not processes.was_stopped(record)
    processes.stop("node-1/driver", grace_seconds=5)
    assert not is_alive(new.identity)
