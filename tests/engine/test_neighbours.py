"""Which scenarios run beside each other, and which begins next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.engine.disruption import disturbed, last_disturbance
from conformance.engine.events import Outcome, ScenarioFinished, ScenarioStarted
from conformance.engine.neighbours import Neighbour, fits_beside, let_disturb, next_to_begin
from conformance.engine.order import longest_first
from conformance.engine.parts import whole
from conformance.engine.places import Phase, Place
from conformance.engine.suite import run_suite
from conformance.scenario.loader import LoadedScenario
from conformance.targets.seam.values import Capabilities
from tests.engine.miniature import Miniature, Recorder, node, pod, scenario, setup

FOUR = Capabilities("1.37.1", frozenset(), frozenset({"node"}), devices=4, devices_on={"n": 4})
TWICE_TWO = replace(FOUR, devices_on={"n": 2, "m": 2})
NETWORK = replace(FOUR, devices_on={"n": 4, "m": 4})
PART = whole(FOUR)[0]
UPDATE = ("startNext", "replace")
STEPS = ({"apply": [pod("p")]}, {"expect": [{"pod": "p", "scheduled": True}]})


def disturbing(
    component: str, name: str = "fault", *after: dict[str, Any], **requires: Any
) -> LoadedScenario:
    fault = {"fault": {"component": component}}
    needs = {"devices": 1, **requires}
    return scenario(*STEPS, fault, *after, name=name, tier="node", requires=needs)


def running(*scenarios: LoadedScenario, phase: Phase = Phase.DISTURBING) -> list[Neighbour]:
    """Scenarios of which those that disturb something are in that phase."""
    return [
        Neighbour(item, Place(phase=phase if disturbed(item.scenario.spec) else Phase.CALM), PART)
        for item in scenarios
    ]


def fits(loaded: LoadedScenario, beside: list[LoadedScenario], there: Capabilities) -> bool:
    return fits_beside(loaded.scenario.spec, running(*beside), there)


def quiet(loaded: LoadedScenario, *beside: LoadedScenario) -> bool:
    """Whether a scenario that waits to disturb something may."""
    waits = running(loaded, phase=Phase.WAITING)
    let_disturb(waits + running(*beside, phase=Phase.CALM))
    return waits[0].phase is Phase.DISTURBING


def begins(pending: list[LoadedScenario], beside: list[Neighbour]) -> str | None:
    index = next_to_begin(pending, beside, FOUR)
    return None if index is None else pending[index].scenario.metadata.name


def test_device_scenarios_share_what_there_is() -> None:
    running = [node("a", 2), scenario(*STEPS, name="other")]
    assert fits(node("b", 2), running, FOUR)
    assert not fits(node("c", 3), running, FOUR)


@pytest.mark.parametrize(
    ("there", "wanted", "beside", "well"),
    [
        (FOUR, 2, 2, True),
        (FOUR, 2, 3, False),
        (TWICE_TWO, 2, 1, True),
        (TWICE_TWO, 2, 2, False),  # These may be one of each node.
        (NETWORK, 2, 2, True),
        (NETWORK, 2, 3, False),
    ],
)
@pytest.mark.parametrize("runs_already", [True, False])
def test_devices_of_one_node_are_left_wherever_others_take_theirs(
    there: Capabilities, wanted: int, beside: int, *, well: bool, runs_already: bool
) -> None:
    one = scenario(*STEPS, name="one", tier="node", requires={"devicesOnOneNode": wanted})
    first, second = (one, node("b", beside)) if runs_already else (node("b", beside), one)
    assert fits(second, [first], there) is well


def test_an_exclusive_scenario_runs_beside_no_other_that_uses_devices() -> None:
    assert not fits(node("a", exclusive=True), [node("b")], FOUR)
    assert not fits(node("a"), [node("b", exclusive=True)], FOUR)
    assert fits(node("a", exclusive=True), [scenario(*STEPS)], FOUR)


@pytest.mark.parametrize("component", ["kubelet", "node-1/driver", "node"])
def test_who_disturbs_a_node_disturbs_only_who_needs_a_kubelet(component: str) -> None:
    fault = disturbing(component)
    assert fits(scenario(*STEPS), [fault], FOUR)
    assert not fits(node("a"), [fault], FOUR)
    assert quiet(fault, scenario(*STEPS))
    assert not quiet(fault, node("a"))


@pytest.mark.parametrize("component", ["kube-scheduler", "etcd"])
def test_who_disturbs_the_control_plane_disturbs_everybody(component: str) -> None:
    fault = disturbing(component)
    for other in (scenario(*STEPS), node("a"), disturbing("kubelet", "other")):
        assert not fits(other, [fault], FOUR)
        assert not quiet(fault, other)
    assert quiet(fault)


@pytest.mark.parametrize("phase", Phase)
def test_of_two_that_disturb_each_other_one_is_calm(phase: Phase) -> None:
    first, second = disturbing("kubelet", "first"), disturbing("driver", "second")
    beside = running(first, phase=phase)
    assert fits_beside(second.scenario.spec, beside, FOUR) is (phase is Phase.CALM)
    assert not quiet(second, first)
    steps = [{"fault": {"component": "driver", "action": action}} for action in UPDATE]
    update = scenario(*STEPS, *steps, name="update", tier="node", requires={"devices": 1})
    assert fits_beside(update.scenario.spec, beside, FOUR) is (phase is Phase.CALM)


def test_of_two_that_disturb_each_other_one_has_ended_if_that_may_take_long() -> None:
    late = {"expect": [{"pod": "p", "scheduled": True, "eventually": "60s"}]}
    beside = running(disturbing("kubelet", "first", late), phase=Phase.CALM)
    assert not fits_beside(disturbing("driver").scenario.spec, beside, FOUR)
    steps = [{"fault": {"component": "driver", "action": action}} for action in UPDATE]
    update = scenario(*STEPS, *steps, name="update", tier="node", requires={"devices": 1})
    assert fits_beside(update.scenario.spec, beside, FOUR)


@pytest.mark.parametrize("phase", [Phase.BEFORE, Phase.WAITING, Phase.CALM])
def test_until_and_after_it_disturbs_others_fit_beside_it(phase: Phase) -> None:
    assert fits_beside(node("a").scenario.spec, running(disturbing("kubelet"), phase=phase), FOUR)


def test_while_a_driver_is_updated_others_run_unless_they_disturb_something() -> None:
    steps = [{"fault": {"component": "driver", "action": action}} for action in UPDATE]
    update = scenario(*STEPS, *steps, name="update", tier="node", requires={"devices": 1})
    other = disturbing("kubelet", "other")
    assert fits(node("a"), [update], FOUR)
    assert not fits(other, [update], FOUR)
    assert quiet(update, node("a"), other)  # the other is calm
    assert not quiet(other, update)
    waits = running(update, phase=Phase.WAITING)
    let_disturb(waits + running(other, phase=Phase.DISTURBING))
    assert waits[0].phase is Phase.WAITING
    assert begins([node("a")], waits) == "a"


def test_an_update_with_nobody_beside_it_is_not_kept_waiting() -> None:
    steps = [{"fault": {"component": "driver", "action": action}} for action in UPDATE]
    needs = {"devices": 1, "exclusive": True}
    update = scenario(*STEPS, *steps, name="update", tier="node", requires=needs)
    assert begins([update, node("a")], running(node("runs"))) is None
    assert begins([update, node("a")], []) == "update"


def test_who_is_going_to_disturb_is_not_kept_waiting_by_those_that_come_after() -> None:
    pending = [disturbing("kubelet"), node("long"), scenario(*STEPS, name="allocation")]
    assert begins(pending, running(node("runs"))) == "fault"
    for phase in (Phase.BEFORE, Phase.WAITING):
        assert begins(pending[1:], running(disturbing("driver"), phase=phase)) == "allocation"
        assert begins(pending[1:2], running(disturbing("driver"), phase=phase)) is None
    many = [disturbing("kubelet"), node("two", 2)]
    assert begins(many, running(node("three", 4))) is None


def test_until_one_has_ended_that_is_long_about_it_the_shortest_begin() -> None:
    pending = [disturbing("kubelet", "third"), node("long"), node("short")]
    late = {"expect": [{"pod": "p", "scheduled": True, "eventually": "60s"}]}
    calm = running(disturbing("driver", "first", late), phase=Phase.CALM)
    waits = running(disturbing("driver", "second"), phase=Phase.WAITING)
    assert begins(pending, calm) == "short"
    assert begins(pending, waits) is None
    assert begins(pending, calm + waits) == "short"
    assert begins(pending, running(disturbing("driver", "soon-over"), phase=Phase.CALM)) == "third"
    steps = [{"fault": {"component": "driver", "action": action}} for action in UPDATE]
    update = scenario(*STEPS, *steps, name="update", tier="node", requires={"devices": 1})
    assert begins([update, *pending], calm) == "update"


@pytest.mark.parametrize("retries", [0, 1])
def test_nothing_is_disturbed_while_others_run(retries: int) -> None:
    fault = {"fault": {"component": "kube-scheduler"}}
    scenarios = [
        made
        for number in range(3)
        for made in (
            scenario(*STEPS, fault, STEPS[1], name=f"disturbs-{number}"),
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
    result = run_suite(scenarios, replace(setup(target), retries=retries), [recorder], workers=4)
    assert {item.outcome for item in result.finished} == {Outcome.PASSED}
    assert sorted(beside, key=sorted) == [{f"disturbs-{number}"} for number in range(3)]


def test_who_is_going_to_disturb_gets_its_devices_first() -> None:
    wants = disturbing("kubelet", "wants", devices=2)
    beside = running(node("three", 3))
    assert begins([wants, node("one")], beside) is None
    assert begins([wants, scenario(*STEPS, name="allocation")], beside) == "allocation"
    later = disturbing("driver", "later")
    assert begins([wants, later], beside) is None


def test_who_disturbs_everybody_begins_first_then_who_leaves_most_time_to_others() -> None:
    def looks(seconds: str, how: str) -> dict[str, Any]:
        return {"expect": [{"pod": "p", "scheduled": True, how: seconds}]}

    given = [
        node("runs"),
        disturbing("kubelet", "soon-over"),
        disturbing("driver", "waits", looks("60s", "eventually")),
        disturbing("driver", "holds", looks("90s", "consistently")),
        disturbing("kube-scheduler", "everybody"),
    ]
    assert [item.scenario.metadata.name for item in longest_first(given)] == [
        "everybody",
        "holds",
        "waits",
        "soon-over",
        "runs",
    ]


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
def test_a_scenario_is_calm_when_all_runs_as_before(actions: list[str], last: int | None) -> None:
    steps = [{"fault": {"component": "driver", "action": action}} for action in actions]
    spec = scenario(*steps, STEPS[1], tier="node").scenario.spec
    assert last_disturbance(spec) == last
