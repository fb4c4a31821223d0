"""Properties of our own answers to generated problems, and both sides where Go is at hand."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.allocators.judging import snapshot_of
from conformance.fuzz.draw.inventories import Json
from reference_allocator.checks import check
from reference_allocator.explain import explain
from reference_allocator.wire import answer_allocate
from tests.oracle import fuzz
from tests.oracle.known_differences import KNOWN
from tests.oracle.older_minors import adapt
from tests.oracle.problems import problem
from tests.oracle.upstream import comparable


def problems() -> st.SearchStrategy[Json]:
    """Lines for `allocate`."""
    return st.randoms(use_true_random=False).map(lambda random: problem(random, "generated"))


ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generated() -> list[Json]:
    return [problem(Random(f"property-{number}"), str(number)) for number in range(150)]


def ours(question: Json) -> Json:
    return comparable(json.loads(answer_allocate(json.dumps(question))))


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(problems())
def test_generated_problems_are_valid_and_answers_keep_every_rule(question: Json) -> None:
    answer = ours(question)
    assert "invalid" not in answer
    for node, result in zip(question["nodes"], answer["nodes"], strict=True):
        if result["outcome"] == "allocated":
            allocations = result.get("allocations", [])
            assert not check(snapshot_of(question), node, question["claims"], allocations)


def test_answers_keep_every_rule_with_values_at_the_limits_of_the_api() -> None:
    """In 1.38, whose amounts are read in another way; the last one once did not (`--hunt`)."""
    allocated = 0
    for identifier in (*(f"limits-{number}" for number in range(80)), "hx-0-1217"):
        question = problem(Random(identifier), identifier, odd=True, at_limits=True)
        adapt(question, "1.38")
        answer = json.loads(answer_allocate(json.dumps(question), kubernetes="1.38"))
        assert "invalid" not in answer
        snapshot = snapshot_of(question, "1.38")
        for node, result in zip(question["nodes"], answer["nodes"], strict=True):
            allocations = result.get("allocations", [])
            if allocations:
                allocated += 1
                assert not check(snapshot, node, question["claims"], allocations)
    assert allocated > 20


def test_what_is_not_allocated_is_explained_for_every_node(generated: list[Json]) -> None:
    explained = 0
    for question in generated:
        if {node["outcome"] for node in ours(question)["nodes"]} == {"none"}:
            text = explain(snapshot_of(question)).text
            assert text.startswith(f"0/{len(question['nodes'])} nodes:")
            assert all(node["metadata"]["name"] in text for node in question["nodes"])
            explained += 1
    assert explained > 20


def test_the_order_in_which_slices_are_listed_does_not_matter(generated: list[Json]) -> None:
    compared = 0
    for question in generated:
        if not in_update(question):
            turned = {**question, "slices": question["slices"][::-1]}
            assert ours(turned) == ours(question)
            compared += 1
    assert compared > 50


def in_update(question: Json) -> bool:
    """Whether slices disagree about their pool; then the one that is seen first says how it is."""
    pools: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for item in question["slices"]:
        pool = item["spec"]["pool"]
        numbers = (pool["generation"], pool["resourceSliceCount"])
        pools.setdefault((item["spec"]["driver"], pool["name"]), set()).add(numbers)
    return any(len(numbers) > 1 for numbers in pools.values())


def test_problems_depend_on_their_seed_only() -> None:
    assert problem(Random("a"), "a") == problem(Random("a"), "a")
    assert problem(Random("a"), "a") != problem(Random("b"), "a")


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_every_known_difference_is_met_by_some_problem(known: Any) -> None:
    assert known.reason
    assert any(known.applies(problem(Random(f"k-{n}"), "k")) for n in range(1000))


@pytest.mark.slow
@pytest.mark.needs_go
@pytest.mark.skipif(shutil.which("go") is None, reason="needs the go command")
def test_both_allocators_agree(tmp_path: Path) -> None:
    """On the same problems each time: new ones are for `make fuzz`, and for the night."""
    subprocess.run([ROOT / "ci/upstream/build", "1.37", "allocate"], check=True, timeout=1800)
    oracle = str(ROOT / "build/oracle/allocate-1.37")
    few = ("-n", "200", "--seed", "unit")
    assert fuzz.main(["--oracle", oracle, *few, "--output", str(tmp_path)]) == 0
