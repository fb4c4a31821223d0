"""Scenarios in threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from conformance.engine.run import awaiting
from conformance.engine.schedule.loop import Slot
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished, ScenarioStarted
from conformance.scenario.loader import LoadedScenario
from conformance.seam.values import Capabilities
from kube.values import Obj, Ref
from tests.engine.miniature import Miniature, MiniScope, Recorder, pod, scenario, setup
from tests.engine.schedule.kit import SCHEDULED, STEPS, nodes
from tests.targets.devices import PROFILE


def cluster(target: Miniature, capabilities: Capabilities | None = None) -> Setup:
    given = setup(target)
    found = replace(capabilities or given.opened.capabilities, concurrent=True)
    profile = PROFILE if capabilities else None
    return replace(given, opened=replace(given.opened, capabilities=found, profile=profile))


def making(name: str, *before: dict[str, Any]) -> LoadedScenario:
    """A scenario whose pod has its name as a label."""
    return scenario({"apply": [pod("p", labels={"of": name})]}, *before, SCHEDULED, name=name)


def test_another_begins_while_one_observes(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Miniature()
    other_began = threading.Event()
    seen: list[bool] = []

    def on_create(obj: Obj) -> None:
        if obj["metadata"]["labels"].get("of") == "b":
            other_began.set()

    target.on_create = on_create
    monkeypatch.setattr(MiniScope, "pause", lambda *_: seen.append(other_began.wait(10)))
    given = [making("a", {"wait": "3s"}), making("b")]
    result = run_suite(given, cluster(target), [])
    assert seen == [True]
    assert [item.outcome for item in result.finished] == [Outcome.PASSED] * 2


def test_another_begins_while_one_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Miniature()
    other_began = threading.Event()
    shares: list[float] = []
    seen: list[bool] = []
    wait_in_virtual_time = MiniScope.wait

    def on_create(obj: Obj) -> None:
        if obj["metadata"]["labels"].get("of") == "b":
            other_began.set()

    def wait(scope: MiniScope, check: Callable[[], Any], timeout: float) -> Any:
        shares.append(timeout)
        if len(shares) == 2:
            seen.append(other_began.wait(10))
        return wait_in_virtual_time(scope, check, timeout)

    target.on_create = on_create
    monkeypatch.setattr(MiniScope, "wait", wait)
    never = {"expect": [{"pod": "pending", "scheduled": True, "eventually": "20s"}]}
    waits = scenario({"apply": [pod("pending", labels={"of": "a"})]}, never, name="a")
    run_suite([waits, making("b")], cluster(target), [])
    assert shares[0] == awaiting.BUSY_SECONDS
    assert seen == [True]


@pytest.mark.parametrize(("version", "first"), [("1.36.2", "known"), ("1.36.3", "plain")])
def test_what_may_wait_until_it_gives_up_begins_first(version: str, first: str) -> None:
    known = replace(making("known"), id="regressions/refused-device-gives-counters-back")
    target = Miniature()
    began: list[str] = []
    target.on_create = lambda obj: began.append(obj["metadata"]["labels"].get("of", ""))
    capabilities = replace(target.capabilities(), kubernetes_version=version)
    run_suite([making("plain"), known], cluster(target, capabilities), [])
    assert next(filter(None, began)) == first


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


def test_a_slot_says_what_its_scenario_does() -> None:
    changed = threading.Event()
    slot = Slot(changed, disruptive=True)
    with slot.observe():
        assert slot.observing
        assert changed.is_set()
    assert not slot.observing
    changed.clear()
    slot.settle()
    assert not slot.disruptive
    assert changed.is_set()


@pytest.mark.parametrize("concurrent", [True, False])
@pytest.mark.parametrize("retries", [0, 1])
def test_nothing_is_disrupted_while_others_run(retries: int, *, concurrent: bool) -> None:
    fault = {"fault": {"component": "kube-scheduler"}}
    scenarios = [
        made
        for number in range(3)
        for made in (
            scenario(*STEPS, fault, STEPS[1], name=f"disrupts-{number}"),
            scenario(*STEPS, name=f"looks-{number}"),
        )
    ]
    target, recorder = Miniature(), Recorder()
    beside: list[set[str]] = []

    def on_fault(action: str) -> None:
        alive = set()
        for event in list(recorder.events):
            if isinstance(event, ScenarioStarted):
                alive.add(event.scenario.name)
            elif isinstance(event, ScenarioFinished):
                alive.remove(event.scenario.name)
        if action == "restart":  # and not the start with which a scenario ends
            beside.append(alive)

    target.on_fault = on_fault
    given = cluster(target) if concurrent else setup(target)
    result = run_suite(scenarios, replace(given, retries=retries), [recorder], workers=4)
    assert {item.outcome for item in result.finished} == {Outcome.PASSED}
    assert sorted(beside, key=sorted) == [{f"disrupts-{number}"} for number in range(3)]


@pytest.mark.parametrize("workers", [1, 3])
def test_on_the_reference_one_ends_before_the_next_begins(workers: int) -> None:
    recorder, target = Recorder(), Miniature()
    target.on_create = lambda _obj: time.sleep(0.05)  # others could begin meanwhile
    run_suite([making(name) for name in "abc"], setup(target), [recorder], workers=workers)
    told = [
        event.scenario.name
        for event in recorder.events
        if isinstance(event, ScenarioStarted | ScenarioFinished)
    ]
    assert told == ["a", "a", "b", "b", "c", "c"]


def test_a_run_goes_on_elsewhere_while_a_driver_is_stopped() -> None:
    target = Miniature()
    on: dict[str, str] = {}
    went_on = threading.Event()

    def on_create(obj: Obj) -> None:
        if obj["kind"] == "Pod":
            terms = obj["spec"]["affinity"]["nodeAffinity"]
            [term] = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            on[obj["metadata"]["name"]] = term["matchExpressions"][-1]["values"][0]
            if obj["metadata"]["name"] == "goes-on":
                went_on.set()

    def on_fault(action: str) -> None:
        if action == "stop":
            assert went_on.wait(20), "the others waited for the end of what a node disrupts"

    target.on_create, target.on_fault = on_create, on_fault
    needed: dict[str, Any] = {"tier": "node", "requires": {"devices": 1}}
    stop = [{"fault": {"component": "driver", "action": how}} for how in ("stop", "start")]
    there = {"expect": [{"pod": "disrupted", "scheduled": True}]}
    waits = {"expect": [{"pod": "goes-on", "scheduled": True}]}
    disrupts = scenario({"apply": [pod("disrupted")]}, there, *stop, name="d", **needed)
    goes_on = scenario({"apply": [pod("goes-on")]}, waits, name="g", **needed)
    result = run_suite([disrupts, goes_on], cluster(target, nodes(a=4, b=4)), [], workers=2)
    assert {item.outcome for item in result.finished} == {Outcome.PASSED}
    assert on == {"disrupted": "b", "goes-on": "a"}
    assert "stop b/driver" in target.log
