"""What holds for every problem: the checker agrees, pruning changes nothing, nothing is missed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.checks import check
from reference_allocator.index import Index
from reference_allocator.search import pruning
from reference_allocator.search.result import derived_share_id
from tests.reference_allocator.builders import Json, make_snapshot, node, solve
from tests.reference_allocator.problems import Problem, problems


def _solve(problem: Problem) -> Outcome:
    return solve(
        problem.slices,
        problem.claims,
        classes=problem.classes,
        taken=problem.taken,
        features=problem.features,
    )


@given(problems())
def test_the_checker_accepts_every_answer_and_pruning_changes_none(problem: Problem) -> None:
    with mock.patch.object(pruning, "START_AFTER", 10**9):
        plain = _solve(problem)
    for start_after in (0, 2):
        with mock.patch.object(pruning, "START_AFTER", start_after):
            pruned = _solve(problem)
        assert (pruned.kind, pruned.error) == (plain.kind, plain.error)
        assert pruned.allocations == plain.allocations
        assert start_after or pruned.steps <= plain.steps


_DECIDED_ELSEWHERE = {"config", "node-selector", "result-fields", "share"}


@given(problems(rich=False))
def test_the_search_finds_a_solution_exactly_where_trying_everything_does(problem: Problem) -> None:
    outcome = _solve(problem)
    assert outcome.kind in ("allocated", "none")
    assert (outcome.kind == "allocated") == _exists(problem)


def _exists(problem: Problem) -> bool:
    """Whether any choice of devices passes the checker, claim by claim."""
    candidates = [
        {"driver": item["spec"]["driver"], "pool": item["spec"]["pool"]["name"], "device": name}
        for item in problem.slices
        for name in (entry["name"] for entry in item["spec"].get("devices", []))
    ]
    choices: list[list[Json]] = []
    for claim in problem.claims:
        valid = [
            allocation
            for allocation in _allocations(claim, candidates)
            if _accepted(problem, [claim], [allocation])
        ]
        choices.append(valid)
    return any(
        _disjoint(chosen) and _accepted(problem, problem.claims, chosen)
        for chosen in product(*choices)
    )


def _allocations(claim: Json, candidates: list[Json]) -> Iterator[Json]:
    per_request: list[list[list[Json]]] = []
    for request in claim["spec"]["devices"]["requests"]:
        bodies = (
            [(request["name"], request["exactly"])]
            if "exactly" in request
            else [(f"{request['name']}/{item['name']}", item) for item in request["firstAvailable"]]
        )
        per_request.append(
            [
                [
                    {"request": name, "tolerations": body.get("tolerations", []), **candidate}
                    for candidate in chosen
                ]
                for name, body in bodies
                for chosen in combinations(candidates, body["count"])
            ]
        )
    for chosen in product(*per_request):
        results = [result for results_of_request in chosen for result in results_of_request]
        names = [(item["pool"], item["device"]) for item in results]
        if len(set(names)) == len(names):
            yield {"devices": {"results": results}}


def _disjoint(allocations: tuple[Any, ...]) -> bool:
    names = [
        (item["pool"], item["device"])
        for allocation in allocations
        for item in allocation["devices"]["results"]
    ]
    return len(set(names)) == len(names)


def _accepted(problem: Problem, claims: list[Json], allocations: Any) -> bool:
    snapshot = make_snapshot(
        problem.slices,
        claims,
        classes=problem.classes,
        taken=problem.taken,
        features=problem.features,
    )
    broken = check(snapshot, node(), claims, list(allocations))
    return not {item.rule for item in broken} - _DECIDED_ELSEWHERE


@given(problems())
def test_one_allocator_answers_the_same_again_and_again(problem: Problem) -> None:
    allocator = Allocator(Index(problem.features, problem.slices, problem.classes, problem.taken))
    first = allocator.allocate(node(), problem.claims)
    assert allocator.allocate(node("node-b"), problem.claims) is not None
    assert allocator.allocate(node(), problem.claims) == first


_SPACE = uuid.UUID("5f0ae5b2-9a49-5d0e-8a3c-0d6f6a1c9d55")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_share_id_is_the_name_based_uuid_of_its_text(text: str) -> None:
    assert derived_share_id(text) == str(uuid.uuid5(_SPACE, text))
