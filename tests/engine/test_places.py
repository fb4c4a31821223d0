"""Scenarios of a cluster that only look on give their place to others."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from conformance.engine.events import Outcome, ScenarioFinished, ScenarioStarted
from conformance.engine.order import least_seconds, longest_first
from conformance.engine.places import Phase, Place, Places
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.seam.values import Obj, Ref
from tests.engine.miniature import Miniature, MiniScope, Recorder, pod, scenario, setup

SCHEDULED = {"expect": [{"pod": "p", "scheduled": True}]}


def taken(places: Places) -> Place:
    place = places.take(Phase.CALM)
    assert place is not None
    return place


def cluster(target: Miniature) -> Setup:
    given = setup(target)
    options = TargetOptions(target="cluster", cluster="local")
    return replace(given, opened=replace(given.opened, options=options))


def making(name: str, *before: dict[str, Any]) -> LoadedScenario:
    """A scenario whose pod has its name as a label."""
    return scenario({"apply": [pod("p", labels={"of": name})]}, *before, SCHEDULED, name=name)


def test_there_are_so_many_places() -> None:
    places = Places(2)
    first, _ = taken(places), taken(places)
    assert places.take(Phase.CALM) is None
    first.leave()
    first.leave()
    assert places.take(Phase.CALM)
    assert places.take(Phase.CALM) is None


def test_who_returns_comes_before_who_begins() -> None:
    places = Places(1)
    early = taken(places)
    looking, look_no_more = threading.Event(), threading.Event()

    def look_on() -> None:
        with early.left():
            looking.set()
            look_no_more.wait(10)

    thread = threading.Thread(target=look_on)
    thread.start()
    assert looking.wait(10)
    late = taken(places)
    look_no_more.set()
    thread.join(0.2)
    assert thread.is_alive()
    late.leave()
    thread.join(10)
    assert places.take(Phase.CALM) is None
    assert early.waited > 0.1


def test_who_returns_does_not_wait_for_those_that_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("conformance.engine.places.PATIENCE", 0.05)
    places = Places(1)
    early = taken(places)
    with early.left():
        late = taken(places)
    late.leave()
    assert places.take(Phase.CALM) is None
    early.leave()
    assert places.take(Phase.CALM)


@pytest.mark.parametrize(
    "looking_on",
    [{"wait": "3s"}, {"expect": [{"pod": "p", "scheduled": True, "consistently": "3s"}]}],
)
def test_another_begins_while_one_looks_on(
    looking_on: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Miniature()
    other_began = threading.Event()
    seen: list[bool] = []

    def on_create(obj: Obj) -> None:
        if obj["metadata"]["labels"].get("of") == "b":
            other_began.set()

    def until_the_other_began(_scope: MiniScope, *_: Any) -> None:
        seen.append(other_began.wait(10))

    target.on_create = on_create
    monkeypatch.setattr(MiniScope, "pause", until_the_other_began)
    if "expect" in looking_on:
        wait = MiniScope.wait

        def waiting(scope: MiniScope, check: Any, timeout: float) -> Any:
            return until_the_other_began(scope) if timeout == 3 else wait(scope, check, timeout)

        monkeypatch.setattr(MiniScope, "wait", waiting)
    result = run_suite([making("a", looking_on), making("b")], cluster(target), [])
    assert seen == [True]
    assert [item.outcome for item in result.finished] == [Outcome.PASSED] * 2


def test_a_cleanup_beside_the_next_scenario_fails_its_own() -> None:
    target = Miniature()
    other_began = threading.Event()

    def on_create(obj: Obj) -> None:
        labels = obj["metadata"]["labels"]
        if labels.get("of") == "a":
            obj["metadata"]["finalizers"] = ["example.com/never"]
        if labels.get("of") == "b":
            other_began.set()

    def on_delete(_ref: Ref, obj: Obj) -> None:
        if obj["metadata"]["labels"].get("of") == "a":
            assert other_began.wait(10)

    target.on_create, target.on_delete = on_create, on_delete
    result = run_suite([making("a"), making("b")], cluster(target), [])
    first, second = result.finished
    assert first.outcome is Outcome.FAILED
    assert "Pod p (finalizers example.com/never) is still there" in first.message
    assert second.outcome is Outcome.PASSED


@pytest.mark.parametrize("workers", [1, 3])
def test_on_the_reference_one_ends_before_the_next_begins(workers: int) -> None:
    recorder = Recorder()
    scenarios = [making(name) for name in "abc"]
    target = Miniature()
    target.on_create = lambda _obj: time.sleep(0.05)  # others could begin meanwhile
    run_suite(scenarios, setup(target), [recorder], workers=workers)
    told = [
        event.scenario.name
        for event in recorder.events
        if isinstance(event, ScenarioStarted | ScenarioFinished)
    ]
    assert told == ["a", "a", "b", "b", "c", "c"]


def test_the_longest_begins_first_and_before_all_what_bears_no_other() -> None:
    holds = {"expect": [{"pod": "p", "scheduled": False, "consistently": "3s"}]}
    pends = {"expect": [{"pod": "p", "pending": {}}]}
    node: dict[str, Any] = {"tier": "node", "requires": {"devices": 1}}
    alone = {"tier": "node", "requires": {"devices": 1, "exclusive": True}}
    given = [
        scenario(SCHEDULED, name="short"),
        scenario(SCHEDULED, name="as-short"),
        scenario(pends, name="pends"),
        scenario(SCHEDULED, name="starts", **node),
        scenario(SCHEDULED, name="exclusive", **alone),
        scenario({"wait": "2s"}, holds, name="holds"),
    ]
    assert [item.scenario.metadata.name for item in longest_first(given)] == [
        "exclusive",
        "holds",
        "starts",
        "pends",
        "short",
        "as-short",
    ]


def test_a_job_takes_as_long_as_its_pods_one_after_the_other() -> None:
    def job(**spec: int) -> LoadedScenario:
        made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
        return scenario({"apply": [made]}, SCHEDULED, tier="node", requires={"devices": 1})

    two, four = job(completions=4, parallelism=2), job(completions=4)
    assert least_seconds(two.scenario.spec) < least_seconds(four.scenario.spec)
