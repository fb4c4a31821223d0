"""Differences are found, and explained only where the explanation holds."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any
from unittest import mock

import pytest

from conformance.fuzz.draw.dice import Dice
from conformance.fuzz.shrink_json import shrink
from reference_allocator.wire import answer_allocate
from tests.oracle import comparing
from tests.oracle.comparing import compare, complaint
from tests.oracle.crowded import many_counters, too_few_devices
from tests.oracle.golden import read
from tests.oracle.pinned import complaint_about_a_choice
from tests.oracle.problems import problem
from tests.oracle.refused import CHANGES
from tests.oracle.upstream import Upstream

Json = dict[str, Any]
QUESTION = read("found.in")[1]


def upstream(answer: Callable[[Json], Json]) -> Upstream:
    """Stands for the real allocator; `answer` turns questions into its answers."""

    class Stub:
        def ask(self, question: Mapping[str, Any]) -> bytes:
            return json.dumps(answer(dict(question))).encode()

    return Stub()


def ours(question: Json) -> Json:
    answer: Json = json.loads(answer_allocate(json.dumps(question)))
    return answer


def none(question: Json) -> Json:
    nodes = [
        {"node": node["metadata"]["name"], "outcome": "none", "steps": 1, "ns": 1}
        for node in question["nodes"]
    ]
    return {"id": question["id"], "nodes": nodes}


def test_equal_answers_are_the_same_whatever_the_times() -> None:
    def later(question: Json) -> Json:
        answer = ours(question)
        for node in answer["nodes"]:
            node["ns"] += 1000
            node["steps"] += 1
        return answer

    assert compare(QUESTION, upstream(later)).kind == "same"


def test_another_outcome_is_a_difference() -> None:
    found = compare(QUESTION, upstream(none))
    assert (found.kind, found.outcomes) == ("different", ("allocated", "none"))
    assert found.failed


def test_one_other_device_is_a_difference() -> None:
    def tampered(question: Json) -> Json:
        answer = copy.deepcopy(ours(question))
        answer["nodes"][0]["allocations"][0]["devices"]["results"][0]["device"] = "other"
        return answer

    assert compare(QUESTION, upstream(tampered)).kind == "different"


def test_1_34_is_asked_with_the_pools_last_that_are_invalid_on_the_node() -> None:
    """A pool has a name twice on node-0, and there only; 1.34 ends at the first invalid one."""

    def item(name: str, pool: str, node: str) -> Json:
        spec: Json = {"driver": "a.example.com", "nodeName": node, "devices": [{"name": "gpu"}]}
        spec |= {"pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}}
        return {"metadata": {"name": name}, "spec": spec}

    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}
    request = {"name": "r", "exactly": exactly}
    claim = {"metadata": {"name": "c", "namespace": "default", "uid": "u"}}
    slices = [item(name, "a", "node-0") for name in ("twice-0", "twice-1")]
    slices += [item("once", "a", "node-1"), item("right", "b", "node-0")]
    question = {
        "id": "invalid",
        "nodes": [{"metadata": {"name": name}} for name in ("node-0", "node-1")],
        "slices": slices,
        "deviceClasses": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": [{**claim, "spec": {"devices": {"requests": [request]}}}],
    }

    def ends_at_the_first(asked: Json) -> Json:
        answer: Json = json.loads(answer_allocate(json.dumps(asked), kubernetes="1.34"))
        for node in answer["nodes"]:
            own = [one for one in asked["slices"] if one["spec"]["nodeName"] == node["node"]]
            if own[0]["metadata"]["name"].startswith("twice"):
                node.pop("allocations", None)
                node["outcome"] = "error"
        return answer

    found = compare(question, upstream(ends_at_the_first), kubernetes="1.34")
    assert (found.kind, found.accepted) == ("known: pools-in-any-order", 2)
    assert compare(question, upstream(none), kubernetes="1.34").kind == "different"
    later = compare(question, upstream(ends_at_the_first), kubernetes="1.37")
    assert later.kind == "different"


def test_an_allocation_that_breaks_a_rule_is_found_though_both_agree() -> None:
    agreed = ours(QUESTION)
    results = agreed["nodes"][0]["allocations"][0]["devices"]["results"]
    results[1]["device"] = results[0]["device"]
    assert agreed["nodes"][0]["node"] in complaint(QUESTION, agreed)
    assert not complaint(QUESTION, ours(QUESTION))


def test_allocations_that_the_checker_accepted_are_counted() -> None:
    allocated = sum("allocations" in node for node in ours(QUESTION)["nodes"])
    assert allocated
    assert compare(QUESTION, upstream(ours)).accepted == allocated
    assert compare(QUESTION, upstream(ours), checked=False).accepted == 0


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"outcome": "timeout"}, "upstream-timeout"),
        ({"outcome": "error", "error": "panic: runtime error"}, "upstream-panic"),
    ],
)
def test_an_upstream_that_gives_up_or_panics_is_counted_apart(said: Json, kind: str) -> None:
    def failing(question: Json) -> Json:
        answer = none(question)
        answer["nodes"][0].update(said)
        return answer

    assert compare(QUESTION, upstream(failing)).kind == kind


def test_a_search_that_does_not_cut_is_told_though_the_answer_is_right() -> None:
    def as_many_steps(question: Json) -> Json:
        answer = ours(question)
        answer["nodes"][0]["steps"] = 1
        return answer

    with mock.patch.object(comparing, "_MANY_STEPS", 0):
        assert compare(QUESTION, upstream(as_many_steps)).kind == "slow"
        assert compare(QUESTION, upstream(none)).kind == "different"


def test_the_checker_is_asked_about_devices_that_nobody_would_choose() -> None:
    """Upstream allocates whatever was chosen: then a choice that breaks a rule is a complaint."""
    problems = [problem(Random(f"choice-{number}"), str(number)) for number in range(60)]
    refused = [
        item
        for item in problems
        if complaint_about_a_choice(item, Random(item["id"]), upstream(none)).startswith("accepted")
    ]
    assert 0 < len(refused) < len(problems)


@pytest.mark.parametrize("name", CHANGES)
def test_objects_that_the_api_server_refuses_are_drawn_and_answered(name: str) -> None:
    changed = 0
    for number in range(40):
        random = Random(f"{name}-{number}")
        question = problem(random, name)
        before = copy.deepcopy(question)
        CHANGES[name](Dice(random), question)
        changed += question != before
        assert "invalid" not in ours(question)
    assert changed


@pytest.mark.parametrize("build", [many_counters, too_few_devices])
def test_crowded_problems_are_read(build: Callable[[Dice], tuple[list[Json], list[Json]]]) -> None:
    slices, claims = build(Dice(Random("crowded")))
    question = {**QUESTION, "slices": slices, "claims": claims, "deviceClasses": []}
    assert "invalid" not in ours(question)


def test_a_line_that_only_one_side_can_read_is_a_difference() -> None:
    found = compare(QUESTION, upstream(lambda question: {"id": question["id"], "invalid": "no"}))
    assert (found.kind, found.outcomes) == ("different", ("", "invalid"))


def test_a_known_difference_holds_only_if_the_other_question_is_answered_as_ours() -> None:
    skipping = copy.deepcopy(QUESTION)
    skipping["slices"][0]["spec"]["skipNodeOperations"] = ["Prepare"]
    assert compare(skipping, upstream(none)).kind == "same"

    def incubating(question: Json) -> Json:
        return none(question) if question.get("allocator") == "experimental" else ours(QUESTION)

    assert compare(skipping, upstream(incubating)).kind == "known: skip-node-operations"
    assert compare(skipping, upstream(lambda _: ours(QUESTION))).kind == "different"


def test_where_upstream_answers_at_random_one_of_its_answers_has_to_be_ours() -> None:
    shared = copy.deepcopy(QUESTION)
    device = shared["slices"][0]["spec"]["devices"][0]
    device["allowMultipleAllocations"] = True
    device["capacity"] = {"bandwidth": {"value": "1"}, "queues": {"value": "1"}}
    asked = 0

    def seldom_ours(question: Json) -> Json:
        nonlocal asked
        asked += 1
        return none(question) if asked < 5 else ours(question)

    assert "allocations" in ours(shared)["nodes"][0]
    assert compare(shared, upstream(seldom_ours)).kind == "known: capacity-named-at-random"
    assert asked == 5
    assert compare(shared, upstream(none)).kind == "different"


def test_only_what_matters_is_left() -> None:
    problem = {"id": "x", "items": [{"n": index, "more": [1, 2]} for index in range(40)], "z": 1}

    def fails(candidate: Json) -> bool:
        return any(item.get("n") == 27 for item in candidate.get("items", ()))

    assert shrink(problem, fails) == {"id": "x", "items": [{"n": 27}]}


def test_parts_that_only_fail_together_stay_together() -> None:
    def fails(candidate: Json) -> bool:
        return {3, 17} <= set(candidate.get("items", ()))

    assert shrink({"items": list(range(20))}, fails) == {"items": [3, 17]}


def test_the_problem_itself_is_not_changed() -> None:
    problem = {"items": [1, 2, 3]}
    shrink(problem, lambda candidate: True)
    assert problem == {"items": [1, 2, 3]}


def test_stops_when_the_budget_is_spent() -> None:
    tried: list[Json] = []

    def fails(candidate: Json) -> bool:
        tried.append(candidate)
        return False

    shrink({"items": list(range(100))}, fails, budget=7)
    assert len(tried) == 7


def test_names_are_kept() -> None:
    problem = {"claims": [{"metadata": {"name": "a", "uid": "b"}, "spec": {}}]}
    assert shrink(problem, lambda candidate: bool(candidate.get("claims"))) == {
        "claims": [{"metadata": {"name": "a"}}]
    }
