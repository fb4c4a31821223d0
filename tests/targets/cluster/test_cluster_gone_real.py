"""A real control plane whose API server is killed, or hangs, in the middle of a run."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from conformance.clusters.base import ClusterAccess
from conformance.clusters.local import LocalCluster, LocalOptions
from conformance.clusters.local.processes.supervision import Processes
from conformance.engine.events import Event, Outcome, StepStarted
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.targets.cluster import ClusterTarget
from conformance.targets.opening import Opened
from tests.clusters import local_support as support
from tests.engine.miniature import scenario
from tests.targets.cluster.test_cluster_health import PASSES, WAITS

pytestmark = [pytest.mark.needs_root, pytest.mark.slow]


@pytest.fixture
def local() -> Iterator[tuple[LocalCluster, ClusterAccess]]:
    binaries = support.built_binaries()
    with support.short_directory() as directory:
        cluster = LocalCluster(
            LocalOptions(name="g", state_dir=directory / "g", binaries=binaries, nodes=0)
        )
        try:
            yield cluster, cluster.up()
        finally:
            cluster.down()


class Assassin:
    """A reporter that sends the API server a signal while the second scenario waits."""

    def __init__(self, pid: int, number: signal.Signals) -> None:
        self._timer = threading.Timer(2, os.kill, [pid, number])
        self.at = 0.0

    def handle(self, event: Event) -> None:
        if isinstance(event, StepStarted) and event.scenario.endswith("waits") and event.index == 1:
            self._timer.start()
            self.at = time.monotonic()


@pytest.mark.parametrize(
    ("number", "said", "seconds"),
    [
        (signal.SIGKILL, "and nobody stopped it; its log ends with", 20),
        (signal.SIGSTOP, "has not answered for 30 s", 60),
    ],
)
def test_a_run_ends_within_a_minute_and_keeps_what_passed(
    local: tuple[LocalCluster, ClusterAccess], number: signal.Signals, said: str, seconds: float
) -> None:
    cluster, access = local
    pid = Processes(cluster.layout).records()["kube-apiserver"].identity.pid
    assassin = Assassin(pid, number)
    target = ClusterTarget(access)
    scenarios = [
        scenario(*PASSES, name="a-passes"),
        scenario(*WAITS, name="b-waits"),
        scenario(*PASSES, name="c-never-begins"),
    ]
    setup = Setup("run0", Opened(target, target.capabilities(), None, access.image))
    try:
        result = run_suite(scenarios, setup, [assassin])
    finally:
        target.close()
    assert time.monotonic() - assassin.at < seconds
    outcomes = [item.outcome for item in result.finished]
    assert outcomes == [Outcome.PASSED, Outcome.ERROR, Outcome.LOST]
    first, *log = result.finished[1].message.splitlines()
    assert said in first
    assert log
    assert result.interrupted
    assert result.left
