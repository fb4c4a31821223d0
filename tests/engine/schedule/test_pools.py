"""What a scenario needs, and how nodes are divided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from conformance.engine.schedule.needs import last_disruption
from conformance.engine.schedule.pools import Home, NodePool, NodePools, home_of
from conformance.scenario.loader import LoadedScenario
from conformance.seam.abilities import Ability
from conformance.seam.values import OneDevice
from tests.engine.miniature import node, scenario
from tests.engine.schedule.kit import SCHEDULED, THREE, disrupting, needs, nodes


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


@pytest.mark.parametrize(("gates", "last"), [([False], None), ([False, True], 2)])
def test_a_scenario_settles_when_its_gates_are_on_again(
    gates: list[bool], last: int | None
) -> None:
    steps = [{"fault": {"component": "kubelet", "featureGates": {"G": on}}} for on in gates]
    steps.append({"fault": {"component": "kubelet"}})  # with the gates that it has
    spec = scenario(*steps, SCHEDULED, tier="node").scenario.spec
    assert last_disruption(spec) == last


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
    assert not NodePools.of(replace(two, free=replace(two.free, total=4))).reserved
    assert not NodePools.of(replace(two, concurrent=False)).reserved


def test_a_pool_has_its_own_devices_and_no_others() -> None:
    two = nodes(a=4, b=4)
    free = replace(two.free, other_by_node={"a": 1, "b": 2})
    pools = NodePools.of(replace(two, nodes=("a", "b", "bare"), free=free))
    [own] = pools.reserved
    assert (pools.common.nodes, pools.common.capabilities.nodes) == (("a", "bare"),) * 2
    assert pools.common.capabilities.free.last_by_node == {"a": ("gpu-3", "true", False)}
    assert own.capabilities.free.by_node == {"b": 4}
    assert own.capabilities.free.other_by_node == {"b": 2}
    assert (
        Ability.DISTINCT_DEVICES not in own.capabilities.free.abilities
    )  # none of its own can be told


@pytest.mark.parametrize("shared", [True, False])
def test_a_reserved_node_has_its_own_device_that_can_be_asked_for_alone(shared: bool) -> None:
    two = nodes(a=4, b=4)
    both = {"a": OneDevice("gpu-3", "a", True), "b": OneDevice("gpu-7", "b", shared)}
    abilities = two.free.abilities | {Ability.SHARED_DEVICES}
    free = replace(two.free, last_by_node=both, abilities=abilities)
    [own] = NodePools.of(replace(two, free=free)).reserved
    assert own.capabilities.free.last_by_node == {"b": ("gpu-7", "b", shared)}
    assert Ability.DISTINCT_DEVICES in own.capabilities.free.abilities
    assert (Ability.SHARED_DEVICES in own.capabilities.free.abilities) is shared


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
