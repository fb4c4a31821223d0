from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.run import RunFinished, RunStopping
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.targets.cluster import ClusterTarget, health
from conformance.targets.cluster.scope import ClusterScope
from conformance.targets.opening.target import Opened
from kube.base.errors import TargetGoneError
from kube.values import Query, Ref
from tests.engine.miniature import Recorder, scenario
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.conftest import until

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
POD0 = Ref("v1", "Pod", "p")
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}
OBJECT = {"kind": "ResourceClaim", "name": "c"}
PASSES = ({"apply": [CLAIM]}, {"expect": [{"object": OBJECT, "cel": "has(object.spec)"}]})
ALLOCATED = "has(object.status) && has(object.status.allocation)"
WAITS = ({"apply": [CLAIM]}, {"expect": [{"object": OBJECT, "cel": ALLOCATED}]})

Leave = Callable[[FakeApi], None]


def hang(api: FakeApi) -> None:
    api.deaf = True
    api.mute = True


def die(api: FakeApi) -> None:
    api.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "SILENCE", 1.5)
    monkeypatch.setattr(health, "PERIOD", 0.3)


@pytest.mark.parametrize("leave", [hang, die])
def test_a_wait_ends_when_the_server_is_gone_and_closing_takes_no_time(
    api: FakeApi, target: ClusterTarget, leave: Leave
) -> None:
    scope = target.scope("demo")
    scope.wait(lambda: scope.find(Query("v1", "Event")), 0)
    began = time.monotonic()
    threading.Timer(0.2, leave, [api]).start()
    with pytest.raises(TargetGoneError, match=r"has not answered for 1\.5 s"):
        scope.wait(lambda: scope.get(POD0), 100)
    assert time.monotonic() - began < 8
    began = time.monotonic()
    target.close()
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("leave", [hang, die])
def test_a_request_that_is_under_way_ends_when_the_server_is_gone(
    api: FakeApi, scope: ClusterScope, leave: Leave
) -> None:
    scope.create(POD)
    leave(api)
    began = time.monotonic()
    with pytest.raises(TargetGoneError):
        scope.get(POD0)
    with pytest.raises(TargetGoneError):
        scope.delete(POD0)
    assert time.monotonic() - began < 8


def test_a_server_that_is_only_away_for_a_moment_is_waited_for(
    api: FakeApi, scope: ClusterScope
) -> None:
    scope.create(POD)
    hang(api)
    threading.Timer(0.7, setattr, [api, "deaf", False]).start()
    assert scope.get(POD0) is not None
    time.sleep(1.5)
    assert scope.get(POD0) is not None


def test_a_server_that_is_always_unavailable_is_gone(api: FakeApi, scope: ClusterScope) -> None:
    scope.create(POD)
    api.fail("GET", "/", 503, times=999)
    with pytest.raises(TargetGoneError):
        scope.get(POD0)


@pytest.mark.parametrize("leave", [hang, die])
def test_a_run_whose_server_is_gone_ends_as_inconclusive_and_keeps_what_passed(
    api: FakeApi, target: ClusterTarget, leave: Leave
) -> None:
    recorder = Recorder()
    given = Setup("run0", Opened(target, target.capabilities(), None, "image"))
    scenarios = [
        scenario(*PASSES, name="a-passes"),
        scenario(*WAITS, name="b-waits"),
        scenario(*PASSES, name="c-never-begins"),
    ]

    def go() -> None:
        until(lambda: api.count("POST", "/resourceclaims") == 2)
        # The second begins while the first is still being cleaned up.
        until(lambda: any(isinstance(event, ScenarioFinished) for event in recorder.events))
        leave(api)

    leaving = threading.Thread(target=go)
    leaving.start()
    began = time.monotonic()
    result = run_suite(scenarios, given, [recorder])
    leaving.join()
    assert time.monotonic() - began < 30
    assert [item.outcome for item in result.finished] == [
        Outcome.PASSED,
        Outcome.ERROR,
        Outcome.LOST,
    ]
    assert result.interrupted
    assert "has not answered" in result.finished[1].message
    assert result.left[-1].startswith("perhaps all objects labelled dra-conformance.dev/run=run0")
    stopping = next(event for event in recorder.events if isinstance(event, RunStopping))
    assert "has not answered" in stopping.reason
    assert isinstance(recorder.events[-1], RunFinished)
