"""A real control plane whose API server is killed, or hangs, in the middle of a run."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.dispatch import Event
from conformance.results.events.scenario import Outcome, StepStarted
from conformance.targets.cluster import ClusterTarget
from conformance.targets.opening.target import Opened
from localkube.processes.supervision import Processes
from tests.engine.miniature import scenario
from tests.localkube.pool import Shared
from tests.targets.cluster.test_cluster_health import PASSES, WAITS

pytestmark = [pytest.mark.needs_go, pytest.mark.slow]


@pytest.fixture
def shared(control_plane: Shared) -> Iterator[Shared]:
    """A control plane whose API server runs again afterwards."""
    yield control_plane
    server = Processes(control_plane.cluster.layout).records()["kube-apiserver"].identity
    if server.alive():
        os.kill(server.pid, signal.SIGCONT)
    control_plane.cluster.disturb("kube-apiserver", "start")


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
        (signal.SIGKILL, "although the suite did not stop it; its log ends with", 20),
        (signal.SIGSTOP, "has not answered for 30 s", 60),
    ],
)
def test_a_run_ends_within_a_minute_and_keeps_what_passed(
    shared: Shared, number: signal.Signals, said: str, seconds: float
) -> None:
    access = shared.access
    pid = Processes(shared.cluster.layout).records()["kube-apiserver"].identity.pid
    assassin = Assassin(pid, number)
    target = ClusterTarget(access)
    scenarios = [
        scenario(*PASSES, name="a-passes"),
        scenario(*WAITS, name="b-waits"),
        scenario(*PASSES, name="c-never-begins"),
    ]
    setup = Setup(f"run{number}", Opened(target, target.capabilities(), None, access.image))
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
