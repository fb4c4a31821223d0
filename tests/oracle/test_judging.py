"""Differences are found, and explained only where the explanation holds."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, cast

from reference_allocator.wire import answer_allocate
from tests.oracle.golden import read
from tests.oracle.judge import complaint, judge
from tests.oracle.upstream import Upstream

Json = dict[str, Any]
QUESTION = read("found.in")[1]


def upstream(answer: Callable[[Json], Json]) -> Upstream:
    """Stands for the real allocator; `answer` turns questions into its answers."""

    class Stub:
        def ask(self, line: str) -> Json:
            return answer(json.loads(line))

    return cast("Upstream", Stub())


def ours(question: Json) -> Json:
    answer: Json = json.loads(answer_allocate(json.dumps(question)))
    return answer


def none(question: Json) -> Json:
    nodes = [{"node": node["metadata"]["name"], "outcome": "none"} for node in question["nodes"]]
    return {"id": question["id"], "nodes": nodes}


def test_equal_answers_are_the_same_whatever_the_times() -> None:
    def later(question: Json) -> Json:
        answer = ours(question)
        for node in answer["nodes"]:
            node["ns"] += 1000
            node["steps"] += 1
        return answer

    assert judge(QUESTION, upstream(later)).kind == "same"


def test_another_outcome_is_a_difference() -> None:
    verdict = judge(QUESTION, upstream(none))
    assert (verdict.kind, verdict.outcomes) == ("different", ("allocated", "none"))
    assert verdict.failed


def test_one_other_device_is_a_difference() -> None:
    def tampered(question: Json) -> Json:
        answer = copy.deepcopy(ours(question))
        answer["nodes"][0]["allocations"][0]["devices"]["results"][0]["device"] = "other"
        return answer

    assert judge(QUESTION, upstream(tampered)).kind == "different"


def test_an_allocation_that_breaks_a_rule_is_found_though_both_agree() -> None:
    agreed = ours(QUESTION)
    results = agreed["nodes"][0]["allocations"][0]["devices"]["results"]
    results[1]["device"] = results[0]["device"]
    assert agreed["nodes"][0]["node"] in complaint(QUESTION, agreed)
    assert not complaint(QUESTION, ours(QUESTION))


def test_allocations_that_the_checker_accepted_are_counted() -> None:
    allocated = sum("allocations" in node for node in ours(QUESTION)["nodes"])
    assert allocated
    assert judge(QUESTION, upstream(ours)).accepted == allocated
    assert judge(QUESTION, upstream(ours), checked=False).accepted == 0


def test_an_upstream_that_gives_up_is_counted_apart() -> None:
    def slow(question: Json) -> Json:
        answer = none(question)
        answer["nodes"][0]["outcome"] = "timeout"
        return answer

    assert judge(QUESTION, upstream(slow)).kind == "upstream-timeout"


def test_a_line_that_only_one_side_can_read_is_a_difference() -> None:
    verdict = judge(QUESTION, upstream(lambda question: {"id": question["id"], "invalid": "no"}))
    assert (verdict.kind, verdict.outcomes) == ("different", ("", "invalid"))


def test_a_known_difference_holds_only_if_the_other_question_is_answered_as_ours() -> None:
    skipping = copy.deepcopy(QUESTION)
    skipping["slices"][0]["spec"]["skipNodeOperations"] = ["Prepare"]
    assert judge(skipping, upstream(none)).kind == "same"

    def incubating(question: Json) -> Json:
        return none(question) if question.get("allocator") == "experimental" else ours(QUESTION)

    assert judge(skipping, upstream(incubating)).kind == "known: skip-node-operations"
    assert judge(skipping, upstream(lambda _: ours(QUESTION))).kind == "different"
