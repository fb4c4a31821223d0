"""Steps in parallel: all are carried out and told, whatever becomes of one."""

from __future__ import annotations

from typing import Any

from conformance.engine.run.scenario_run import run_scenario
from conformance.results.events.scenario import Outcome, ScenarioFinished
from kube.errors import ApiError
from kube.values import Obj
from tests.engine.miniature import Miniature, pod, scenario, setup


def run(target: Miniature, *steps: dict[str, Any]) -> ScenarioFinished:
    return run_scenario(scenario(*steps), setup(target), lambda _: None)


def makes(name: str, *, parallel: bool = True) -> dict[str, Any]:
    return {"apply": [pod(name)], **({"parallel": True} if parallel else {})}


def scheduled(name: str) -> dict[str, Any]:
    return {"expect": [{"pod": name, "scheduled": True}]}


def test_neighbours_that_say_so_are_carried_out_at_once() -> None:
    target = Miniature()
    first = (makes("a"), makes("b"), makes("c", parallel=False), makes("d"), makes("e"))
    finished = run(target, *first, scheduled("e"))
    assert finished.outcome is Outcome.PASSED
    assert target.at_once == [2, 2]
    titles = [step.title for step in finished.steps][:5]
    assert titles == [
        "apply Pod a in parallel",
        "apply Pod b in parallel",
        "apply Pod c",
        "apply Pod d in parallel",
        "apply Pod e in parallel",
    ]


def test_what_one_is_refused_the_others_do_all_the_same() -> None:
    target, asked = Miniature(), []

    def refuse(obj: Obj) -> None:
        asked.append(obj["metadata"]["name"])
        if asked[-1] in {"b", "c"}:
            raise ApiError(422, "Invalid", f"{asked[-1]} is not valid")

    target.on_create = refuse
    finished = run(target, makes("a"), makes("b"), makes("c"), makes("d"), scheduled("a"))
    assert asked[1:] == ["a", "b", "c", "d"]
    assert (finished.outcome, finished.cleanup) == (Outcome.FAILED, Outcome.PASSED)
    assert "b is not valid" in finished.message
    outcomes = [step.outcome for step in finished.steps]
    assert outcomes == [Outcome.PASSED, Outcome.FAILED, Outcome.FAILED, Outcome.PASSED]
    assert "c is not valid" in finished.steps[2].message
    assert target.objects == {}


def test_a_mistake_of_the_suite_is_told_as_one() -> None:
    target = Miniature()

    def break_down(obj: Obj) -> None:
        if obj["metadata"]["name"] == "b":
            raise KeyError("x")

    target.on_create = break_down
    finished = run(target, makes("a"), makes("b"), scheduled("a"))
    assert finished.outcome is Outcome.ERROR
    assert "the suite failed: KeyError" in finished.message
