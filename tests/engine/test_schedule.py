"""Which scenarios run beside each other: the model, its properties, and the threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.events.scenario import Outcome, ScenarioFinished, ScenarioStarted
from conformance.engine.schedule.loop import Slot
from conformance.engine.schedule.model import (
    OBSERVERS,
    Running,
    State,
    Waiting,
    in_order,
    may_begin,
    next_to_begin,
)
from conformance.engine.schedule.needs import Needs, Reach, last_disruption
from conformance.engine.schedule.pools import Home, NodePool, NodePools, home_of
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.scenario.loader import LoadedScenario
from conformance.targets.base import DISTINCT_DEVICES, Capabilities, Obj, Ref
from tests.engine.miniature import Miniature, MiniScope, Recorder, node, pod, scenario, setup
from tests.targets.devices import PROFILE

SCHEDULED = {"expect": [{"pod": "p", "scheduled": True}]}
STEPS = ({"apply": [pod("p")]}, SCHEDULED)


def nodes(**devices: int) -> Capabilities:
    return Capabilities(
        "1.37.1",
        frozenset({"v1"}),
        frozenset({"allocation", "node"}),
        driver=PROFILE.driver,
        nodes=tuple(devices),
        devices=sum(devices.values()),
        devices_on=devices,
        abilities=frozenset({"fault:driver", "fault:etcd", DISTINCT_DEVICES}),
        one_device=("gpu-3", "true"),
        concurrent=True,
    )


ONE = NodePools.of(nodes(a=4))
THREE = NodePools.of(nodes(a=4, b=4, c=4))


def disrupting(component: str, name: str = "fault", **requires: Any) -> LoadedScenario:
    fault = {"fault": {"component": component}}
    return scenario(*STEPS, fault, name=name, tier="node", requires={"devices": 1, **requires})


def needs(loaded: LoadedScenario) -> Needs:
    return Needs.of(loaded.scenario.spec)


def fits(
    loaded: LoadedScenario, beside: LoadedScenario, pool: NodePool = ONE.whole, **known: bool
) -> bool:
    running = Running(Waiting("beside", needs(beside)), pool, **known)
    return may_begin(needs(loaded), pool, [running])


@st.composite
def schedules(draw: st.DrawFn) -> tuple[list[Waiting], NodePools, int]:
    pools = draw(st.sampled_from([ONE, THREE]))
    waiting = []
    for number in range(draw(st.integers(1, 12))):
        disrupts = draw(st.sampled_from(Reach))
        uses_nodes = disrupts is Reach.NODE or draw(st.booleans())
        devices = draw(st.integers(0, 4)) if uses_nodes else 0
        item = Needs(
            uses_nodes=uses_nodes,
            disrupts=disrupts,
            exclusive=uses_nodes and draw(st.booleans()),
            devices=devices,
            devices_on_one_node=draw(st.integers(0, devices)),
            all_nodes=uses_nodes and draw(st.booleans()),
        )
        waiting.append(Waiting(str(number), item, home_of(item, pools, lambda _: None)))
    return in_order(waiting), pools, draw(st.integers(1, 4))


def in_conflict(one: Running, other: Running) -> bool:
    """Whether two break a rule by running beside each other: the rules, told once more."""
    for a, b in ((one, other), (other, one)):
        if a.disruptive and a.needs.disrupts is Reach.CLUSTER:
            return True
        same = not a.pool.nodes or not b.pool.nodes or bool({*a.pool.nodes} & {*b.pool.nodes})
        if same and b.needs.uses_nodes:
            if a.disruptive and a.needs.disrupts is Reach.NODE:
                return True
            if a.needs.exclusive and a.needs.uses_nodes:
                return True
    return False


@given(schedules(), st.data())
def test_a_run_keeps_the_invariants_to_its_end(
    schedule: tuple[list[Waiting], NodePools, int], data: st.DataObject
) -> None:
    waiting, pools, slots = schedule
    running: list[Running] = []
    while waiting or running:
        state = State(tuple(waiting), tuple(running), pools, slots, OBSERVERS)
        begun = next_to_begin(state)
        if begun is not None:
            assert not any(in_conflict(begun, other) for other in running)
            if begun.disruptive and begun.needs.disrupts is Reach.CLUSTER:
                assert not running  # all others are drained, those that settled too
            waiting.remove(begun.scenario)
            running.append(begun)
            by_pool = [one for one in running if one.pool.overlaps(begun.pool)]
            total = sum(one.needs.devices for one in by_pool)
            assert total <= max(begun.pool.capabilities.devices, begun.needs.devices)
            assert sum(not one.observing for one in running) <= slots + OBSERVERS
            continue
        assert running, "nobody runs, and nobody may begin"
        index = data.draw(st.integers(0, len(running) - 1))
        change = data.draw(st.sampled_from(["end", "settle", "observe", "act"]))
        if change == "end":
            del running[index]
        elif change == "settle":
            running[index] = replace(running[index], disruptive=False)
            if data.draw(st.booleans()):
                del running[index]
        else:
            running[index] = replace(running[index], observing=change == "observe")
            del running[data.draw(st.integers(0, len(running) - 1))]


@given(schedules())
def test_nobody_waits_while_all_it_needs_is_free(
    schedule: tuple[list[Waiting], NodePools, int],
) -> None:
    waiting, pools, _ = schedule
    running: list[Running] = []
    while (begun := next_to_begin(State(tuple(waiting), tuple(running), pools, 99, 0))) is not None:
        waiting.remove(begun.scenario)
        running.append(begun)
    reserved = any(one.home is Home.RESERVED for one in [*waiting, *(r.scenario for r in running)])
    for item in waiting:
        mine = {
            Home.RESERVED: pools.reserved,
            Home.COMMON: (pools.common,),
            Home.WHOLE: (),
        }[item.home]
        for pool in mine if reserved else (pools.whole,):
            assert not may_begin(item.needs, pool, running)


@pytest.mark.parametrize(
    ("devices", "wanted", "beside", "well"),
    [
        ({"n": 4}, 2, 2, True),
        ({"n": 4}, 2, 3, False),
        ({"n": 2, "m": 2}, 2, 1, True),
        ({"n": 2, "m": 2}, 2, 2, False),  # These may be one of each node.
        ({"n": 4, "m": 4}, 2, 3, True),
    ],
)
def test_devices_of_one_node_are_left_wherever_others_take_theirs(
    devices: Mapping[str, int], wanted: int, beside: int, *, well: bool
) -> None:
    pool = NodePool(nodes(**devices))
    one = scenario(*STEPS, name="one", tier="node", requires={"devicesOnOneNode": wanted})
    assert fits(node("b", beside), one, pool) is well
    assert fits(one, node("b", beside), pool) is well


def test_nodes_that_share_devices_have_no_more_than_there_are() -> None:
    pool = NodePool(replace(nodes(n=4, m=4), devices=4))
    one = scenario(*STEPS, name="one", tier="node", requires={"devicesOnOneNode": 2})
    assert fits(node("b", 2), one, pool)
    assert not fits(node("b", 3), one, pool)


def test_an_exclusive_scenario_runs_beside_no_other_that_uses_devices() -> None:
    assert not fits(node("a", exclusive=True), node("b"))
    assert not fits(node("a"), node("b", exclusive=True))
    assert fits(node("a", exclusive=True), scenario(*STEPS))


@pytest.mark.parametrize("component", ["kubelet", "node-1/driver", "node"])
def test_who_disrupts_a_node_disrupts_only_pods_on_it(component: str) -> None:
    fault = disrupting(component)
    assert fits(scenario(*STEPS), fault, disruptive=True)
    assert fits(fault, scenario(*STEPS))
    assert not fits(node("a"), fault, disruptive=True)
    assert not fits(fault, node("a"))
    assert fits(node("a"), fault)  # it has settled
    assert not fits(disrupting("driver"), fault)


@pytest.mark.parametrize("component", ["kube-scheduler", "etcd"])
def test_who_disrupts_the_control_plane_disrupts_everybody(component: str) -> None:
    fault = disrupting(component)
    for other in (scenario(*STEPS), node("a"), disrupting("kubelet")):
        assert not fits(other, fault, disruptive=True)
        assert not fits(fault, other)


@pytest.mark.parametrize(("pools", "begins"), [(ONE, "synthetic"), (THREE, "node")])
def test_nobody_begins_for_whom_a_disruptive_scenario_would_have_to_wait(
    pools: NodePools, begins: str
) -> None:
    fault = needs(disrupting("driver"))
    home = home_of(fault, pools, lambda _: None)
    settled = [
        Running(Waiting(str(number), fault, home), pool)
        for number, pool in enumerate(pools.reserved or [pools.whole])
    ]
    waiting = (
        Waiting("fault", fault, home),
        Waiting("node", needs(node("a"))),
        Waiting("synthetic", needs(scenario(*STEPS))),
    )
    begun = next_to_begin(State(waiting, tuple(settled), pools, 4, 0))
    assert begun is not None
    assert begun.scenario.id == begins


def test_those_that_disrupt_most_begin_first_then_the_longest() -> None:
    holds = {"expect": [{"pod": "p", "scheduled": False, "consistently": "3s"}]}
    pends = {"expect": [{"pod": "p", "pending": {}}]}
    of = [
        scenario(SCHEDULED, name="short"),
        scenario(pends, name="pends"),
        disrupting("driver", "node"),
        scenario({"wait": "2s"}, holds, name="holds"),
        disrupting("etcd", "everybody"),
    ]
    ordered = in_order(Waiting(item.scenario.metadata.name, needs(item)) for item in of)
    assert [item.id for item in ordered] == ["everybody", "node", "holds", "pends", "short"]


@pytest.mark.parametrize(
    ("actions", "last"),
    [
        (["restart"], 0),
        (["stop", "start"], 1),
        (["stop"], None),
        (["restart", "kill"], None),
        (["startNext"], None),
        (["startNext", "replace"], 1),
        (["startUnregistered", "killNext"], 1),
        (["startNext", "stop", "killNext"], None),
        (["startNext", "kill", "start"], 2),
        ([], None),
    ],
)
def test_a_scenario_settles_when_all_runs_as_before(actions: list[str], last: int | None) -> None:
    steps = [{"fault": {"component": "driver", "action": action}} for action in actions]
    assert last_disruption(scenario(*steps, SCHEDULED, tier="node").scenario.spec) == last


@pytest.mark.parametrize(
    ("devices", "names"),
    [
        ({"a": 4}, []),
        ({"a": 4, "b": 4}, ["b"]),
        ({"a": 3, "b": 4}, []),  # somebody's pod may have the fourth
        ({"a": 4, "b": 4, "c": 3}, ["b"]),
        ({"a": 4, "b": 4, "c": 4}, ["b", "c"]),
        ({"a": 4, "b": 4, "c": 4, "d": 4}, ["c", "d"]),
        ({}, []),
    ],
)
def test_two_thirds_of_the_nodes_are_reserved_where_all_is_free(
    devices: Mapping[str, int], names: list[str]
) -> None:
    pools = NodePools.of(nodes(**devices))
    assert [name for pool in pools.reserved for name in pool.nodes] == names


def test_nothing_is_reserved_where_nodes_share_devices_or_one_runs_at_a_time() -> None:
    two = nodes(a=4, b=4)
    assert not NodePools.of(replace(two, devices=4)).reserved
    assert not NodePools.of(replace(two, concurrent=False)).reserved


def test_a_pool_has_its_own_devices_and_no_others() -> None:
    two = nodes(a=4, b=4)
    pools = NodePools.of(replace(two, nodes=("a", "b", "bare"), other_devices_on={"a": 1, "b": 2}))
    [own] = pools.reserved
    assert (pools.common.nodes, pools.common.capabilities.nodes) == (("a", "bare"),) * 2
    assert pools.common.capabilities.one_device == ("gpu-3", "true")
    assert own.capabilities.devices_on == {"b": 4}
    assert own.capabilities.other_devices_on == {"b": 2}
    assert DISTINCT_DEVICES not in own.capabilities.abilities  # it is known of the worker alone


SLICES = {"expect": [{"objects": {"kind": "ResourceSlice"}, "cel": "objects.size() > 0"}]}


@pytest.mark.parametrize(
    ("loaded", "lacking", "home"),
    [
        (disrupting("driver"), (), Home.RESERVED),
        (disrupting("driver"), ("reserved",), Home.WHOLE),
        (disrupting("etcd"), (), Home.COMMON),
        (node("a", exclusive=True), (), Home.COMMON),
        (node("a"), ("common",), Home.WHOLE),
        (scenario(SLICES, tier="node"), (), Home.WHOLE),
        (node("a"), ("whole", "common", "reserved"), Home.COMMON),
    ],
)
def test_where_scenarios_run(loaded: LoadedScenario, lacking: tuple[str, ...], home: Home) -> None:
    def lacks(pool: NodePool) -> str | None:
        name = "reserved" if pool.reserved else "common" if pool.nodes else "whole"
        return "it does" if name in lacking else None

    assert home_of(needs(loaded), THREE, lacks) is home


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
