"""Nodes that are kept for scenarios which disturb them, and who runs where meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from conformance.engine.events import Outcome
from conformance.engine.neighbours import Neighbour, beside, let_disturb
from conformance.engine.parts import Belonging, Part, divided, whole
from conformance.engine.places import Phase, Place
from conformance.engine.podspec import HOSTNAME, confine
from conformance.engine.requirements import reason_to_skip
from conformance.engine.suite import run_suite
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from conformance.targets.seam.values import DISTINCT_DEVICES, Capabilities, Obj
from tests.engine.miniature import Miniature, Recorder, node, pod, scenario, setup
from tests.engine.test_neighbours import STEPS, disturbing
from tests.targets.devices import PROFILE


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
    )


TWO = nodes(a=4, b=4)
SLICES = {"expect": [{"objects": {"kind": "ResourceSlice"}, "cel": "objects.size() > 0"}]}


def lacks(loaded: LoadedScenario, part: Part) -> str | None:
    return reason_to_skip(loaded.scenario.spec, part.capabilities, PROFILE)


def belonging(*scenarios: LoadedScenario, to: Capabilities = TWO) -> Belonging:
    return Belonging(scenarios, to, lacks)


def kept(parts: list[Part]) -> list[tuple[str, ...]]:
    return [part.nodes for part in parts if part.kept]


@pytest.mark.parametrize(
    ("devices", "names"),
    [
        ({"a": 4}, []),
        ({"a": 4, "b": 4}, [("b",)]),
        ({"a": 3, "b": 4}, []),  # somebody's pod may have the fourth
        ({"a": 4, "b": 4, "c": 3}, [("b",)]),
        ({"a": 4, "b": 4, "c": 4}, [("b",), ("c",)]),
        ({"a": 4, "b": 4, "c": 4, "d": 4}, [("c",), ("d",)]),
        ({}, []),
    ],
)
def test_two_thirds_of_the_nodes_are_kept_where_all_is_free(
    devices: Mapping[str, int], names: list[tuple[str]]
) -> None:
    assert kept(divided(nodes(**devices))) == names


def test_nodes_that_share_devices_are_not_kept() -> None:
    assert kept(divided(replace(TWO, devices=4))) == []


def test_a_part_has_its_own_devices_and_no_others() -> None:
    more = replace(TWO, nodes=("a", "b", "bare"), other_devices_on={"a": 1, "b": 2})
    rest, own = divided(more)
    assert (rest.nodes, rest.capabilities.nodes) == (("a", "bare"), ("a", "bare"))
    assert (rest.capabilities.devices, rest.capabilities.one_device) == (4, ("gpu-3", "true"))
    assert own.capabilities.devices_on == {"b": 4}
    assert own.capabilities.other_devices_on == {"b": 2}
    assert DISTINCT_DEVICES not in own.capabilities.abilities  # it is known of the worker alone


def test_who_disturbs_nodes_runs_on_kept_ones_and_everybody_else_does_not() -> None:
    fault, alone, other = disturbing("driver"), node("alone", exclusive=True), node("other")
    objects = disturbing("etcd", "objects")
    where = belonging(fault, alone, other, objects)
    rest, own = where.parts()
    assert [where.takes(own, item) for item in (fault, alone, other, objects)] == [
        True,
        True,
        False,
        False,
    ]
    assert not any(where.takes(own, item) == where.takes(rest, item) for item in (fault, other))
    where.ended(fault)
    assert len(where.parts()) == 2
    where.ended(alone)
    [everything] = where.parts()
    assert everything.capabilities == TWO
    assert not everything.nodes
    assert where.takes(everything, other)


def test_nothing_is_kept_for_those_alone_that_want_no_others() -> None:
    assert len(belonging(node("alone", exclusive=True)).parts()) == 1


@pytest.mark.parametrize(
    "wide",
    [
        scenario(*STEPS, name="wide", tier="node", requires={"nodes": 2}),
        node("wide", 8),
        disturbing("driver", "wide", devices=5),
        disturbing("driver", "wide", abilities=[DISTINCT_DEVICES]),
        scenario(SLICES, name="wide", tier="node"),
        disturbing("driver", "wide", SLICES),
    ],
    ids=[
        "two nodes",
        "all devices",
        "disturbs and has more",
        "a device of the worker",
        "slices",
        "disturbs and looks at slices",
    ],
)
def test_who_needs_more_waits_until_nothing_is_kept(wide: LoadedScenario) -> None:
    fault = disturbing("driver")
    where = belonging(fault, wide)
    assert not any(where.takes(part, wide) for part in where.parts())
    where.ended(fault)
    assert all(where.takes(part, wide) for part in where.parts())


def test_who_lacks_something_is_skipped_at_once() -> None:
    where = belonging(disturbing("driver"), far := node("far", 99))
    assert where.takes(where.parts()[0], far)


def test_what_is_disturbed_on_a_node_is_not_waited_for_on_others() -> None:
    rest, own = divided(TWO)
    runs = Neighbour(node("runs"), Place(), rest)
    waits = Neighbour(disturbing("driver"), Place(phase=Phase.WAITING), own)
    assert beside(own, [runs]) == []
    assert beside(rest, [waits]) == []
    assert beside(whole(TWO)[0], [runs, waits]) == [runs, waits]
    let_disturb([runs, waits])
    assert waits.phase is Phase.DISTURBING


def test_the_control_plane_is_that_of_all_parts() -> None:
    rest, own = divided(TWO)
    fault = Neighbour(disturbing("driver"), Place(phase=Phase.DISTURBING), own)
    etcd = Neighbour(disturbing("etcd"), Place(phase=Phase.WAITING), rest)
    assert beside(own, [etcd]) == [etcd]
    phases = []
    for running in ([fault, etcd], [etcd]):
        let_disturb(running)
        phases.append(etcd.phase)
    assert phases == [Phase.WAITING, Phase.DISTURBING]


def made(kind: str, spec: Any) -> Obj:
    found = {"kind": kind, "spec": spec}
    confine(found, ["a", "b"])
    return found


ONLY = {"key": HOSTNAME, "operator": "In", "values": ["a", "b"]}


def affinity(*terms: Any) -> Obj:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_pods_and_those_that_objects_make_are_confined() -> None:
    wanted = {"affinity": affinity({"matchExpressions": [ONLY]})}
    assert made("Pod", {})["spec"] == wanted
    assert made("Job", {"template": {"spec": {}}})["spec"]["template"]["spec"] == wanted
    assert made("ResourceClaim", {"template": {"spec": {}}})["spec"] == {"template": {"spec": {}}}


def test_what_a_pod_wants_itself_is_kept() -> None:
    zone = {"key": "zone", "operator": "Exists"}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    found = made("Pod", {"affinity": affinity({"matchExpressions": [zone]}, named)})
    assert found["spec"]["affinity"] == affinity(
        {"matchExpressions": [zone, ONLY]}, {**named, "matchExpressions": [ONLY]}
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeName": "elsewhere"},
        {"affinity": "wrong"},
        {"affinity": affinity()},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 1}}},
        "wrong",
    ],
)
def test_what_is_bound_or_malformed_stays_as_it_is(spec: Any) -> None:
    assert made("Pod", spec)["spec"] == spec


def test_a_run_goes_on_elsewhere_while_a_driver_is_stopped() -> None:
    target, recorder = Miniature(), Recorder()
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
            assert went_on.wait(20), "the others waited for the end of what a node disturbs"

    target.on_create, target.on_fault = on_create, on_fault
    given = setup(target)
    options = TargetOptions(target="cluster", cluster="local", record=False)
    opened: Opened = replace(given.opened, capabilities=TWO, profile=PROFILE, options=options)
    stop = [{"fault": {"component": "driver", "action": how}} for how in ("stop", "start")]
    needs = {"devices": 1}
    on_node: dict[str, Any] = {"expect": [{"pod": "disturbed", "scheduled": True}]}
    disturbs = scenario(
        {"apply": [pod("disturbed")]}, on_node, *stop, name="d", tier="node", requires=needs
    )
    waits = {"expect": [{"pod": "goes-on", "scheduled": True}]}
    goes_on = scenario({"apply": [pod("goes-on")]}, waits, name="g", tier="node", requires=needs)
    result = run_suite([disturbs, goes_on], replace(given, opened=opened), [recorder], workers=2)
    assert {item.outcome for item in result.finished} == {Outcome.PASSED}
    assert on == {"disturbed": "b", "goes-on": "a"}
    assert "stop b/driver" in target.log
