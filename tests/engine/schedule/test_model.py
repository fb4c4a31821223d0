"""Which scenarios run beside each other: rules, and properties of any schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.engine.schedule.model import (
    OBSERVERS,
    Running,
    State,
    Waiting,
    choose_slots,
    in_order,
    may_begin,
    next_to_begin,
)
from conformance.engine.schedule.needs import Needs, Reach
from conformance.engine.schedule.pools import Home, NodePool, NodePools, home_of
from conformance.scenario.loader import LoadedScenario
from tests.engine.miniature import node, scenario
from tests.engine.schedule.kit import ONE, SCHEDULED, STEPS, THREE, disrupting, needs, nodes


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


@settings(deadline=None)
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
            assert total <= max(begun.pool.capabilities.free.total, begun.needs.devices)
            assert sum(not one.observing for one in running) <= slots
            assert len(running) <= slots + OBSERVERS
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


@settings(deadline=None)
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
        mine = {Home.RESERVED: pools.reserved, Home.COMMON: (pools.common,), Home.WHOLE: ()}[
            item.home
        ]
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
    two = nodes(n=4, m=4)
    pool = NodePool(replace(two, free=replace(two.free, total=4)))
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


@pytest.mark.parametrize("processors", [1, 2, 16])
def test_more_act_at_once_where_more_processors_run_the_cluster(processors: int) -> None:
    chosen = choose_slots(nodes(a=4), processors)
    assert chosen == processors * choose_slots(nodes(a=4), 1) > processors


def test_on_somebody_elses_cluster_as_many_act_whatever_this_machine_has() -> None:
    assert 1 < choose_slots(nodes(a=4), None) < choose_slots(nodes(a=4), 16)


def test_in_virtual_time_one_acts_after_the_other() -> None:
    assert choose_slots(replace(nodes(a=4), concurrent=False), 16) == 1


def test_what_waits_long_for_others_begins_before_what_waits_shortly() -> None:
    gone = {"none": {"kind": "Pod", "name": "p"}}
    late = scenario({"expect": [{**gone, "eventually": "180s"}]})
    usual = scenario({"expect": [{**gone, "eventually": "60s"}]})
    waiting = [Waiting("usual", needs(usual)), Waiting("late", needs(late))]
    assert [item.id for item in in_order(waiting)] == ["late", "usual"]
