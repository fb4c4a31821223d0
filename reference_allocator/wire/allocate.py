"""Allocation problems: one snapshot and its claims in, the allocation on each node out.

A line in: {"id", "contract", "features", "slices", "deviceClasses", "nodes", "claims",
"allocated", "place", "allocator", "repeat"}; a line out: {"id", "nodes": [{"node", "outcome",
"allocations", "error", "ns", "steps"}]}. Objects are those of v1, defaulted. `allocator` picks one
of upstream's three implementations and means nothing here: the answer is that of incubating and
experimental. `place` says whether nodes are there already, which changes nothing here.

A claim to allocate may have its devices already: then it only keeps the pod from nodes that its
allocation's node selector does not match, as the scheduler's plugin has it (Filter in
dynamicresources.go).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.api import (
    DeviceClass,
    Node,
    NodeSelector,
    ResourceClaim,
    ResourceSlice,
    reading,
)
from reference_allocator.api.limits import KINDS, check_limits
from reference_allocator.environment import selector_environment
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.gates import LATEST
from reference_allocator.index import Index
from reference_allocator.rules.derived_cost import derived_cost_problem
from reference_allocator.rules.nodeselector import node_matches
from reference_allocator.wire.lines import Json, answer_line, check_form

CONTRACT: Final = "allocation/v1"
"""The version of these lines; a line that names none is of this one."""

SHARE_ID: Final = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
"""The id that stands for every share id, as they are random upstream."""

DEFAULT_TIMEOUT: Final = 10.0
"""The seconds for one node; the scheduler's own limit (DRASchedulerFilterTimeout)."""

_FIELDS: Final = """
    id contract features slices deviceClasses nodes claims allocated place allocator repeat
""".split()
_PLACES: Final = ("", "published", "template")
_ALLOCATORS: Final = ("", "stable", "incubating", "experimental")
_MAX_REPEAT: Final = 1_000_000

_Object = TypeVar("_Object", ResourceSlice, DeviceClass, Node, ResourceClaim)


def answer_allocate(
    line: str | bytes, *, timeout: float = DEFAULT_TIMEOUT, kubernetes: str = LATEST
) -> str:
    """Return the answer to one line; never raise for what the line says.

    Args:
        timeout: seconds after which the search on a node gives up.
        kubernetes: the version whose CEL environment selectors are compiled in.
    """
    return answer_line(line, lambda question: _respond(question, timeout, kubernetes))


def _respond(question: Mapping[str, Any], timeout: float, kubernetes: str) -> Json:
    reading.refuse_unknown_keys(question, _FIELDS)
    slices = _read_objects(question, "slices", ResourceSlice)
    classes = _read_objects(question, "deviceClasses", DeviceClass)
    nodes = _read_objects(question, "nodes", Node)
    claims = _read_objects(question, "claims", ResourceClaim)
    allocated = _read_objects(question, "allocated", ResourceClaim)
    features = reading.read_child(question, "features", Features.from_dict) or Features()
    if reading.read_string(question, "contract") not in ("", CONTRACT):
        raise reading.InputError(f"is not known here; {CONTRACT} is", "contract")
    if reading.read_string(question, "place") not in _PLACES:
        raise reading.InputError("expected published or template", "place")
    if reading.read_string(question, "allocator") not in _ALLOCATORS:
        raise reading.InputError("expected stable, incubating or experimental", "allocator")
    repeat = reading.read_integer(question, "repeat") or 1
    if not 0 < repeat <= _MAX_REPEAT:
        raise reading.InputError(
            f"expected 1 to {_MAX_REPEAT}, got {reading.describe_value(repeat)}", "repeat"
        )
    if features.derived_attributes:
        _check_derived_cost(claims, question.get("claims") or (), features, kubernetes)
    given = _read_given(claims, question.get("claims") or ())
    known = {(claim.namespace, claim.name) for claim in allocated}
    in_use = [
        claim
        for claim in claims
        if claim.results is not None and (claim.namespace, claim.name) not in known
    ]
    index = Index(features, slices, classes, (*allocated, *in_use), kubernetes=kubernetes)
    allocator = Allocator(index, share_ids=lambda _: SHARE_ID)
    answers = [_decide_node(allocator, node, claims, given, repeat, timeout) for node in nodes]
    return {"nodes": answers} if answers else {}


def _read_given(
    claims: Sequence[ResourceClaim], sources: Sequence[Json]
) -> dict[int, tuple[Json, NodeSelector | None]]:
    """Return position of a claim that has devices -> its allocation, and where that can be used."""
    given: dict[int, tuple[Json, NodeSelector | None]] = {}
    for index, (claim, source) in enumerate(zip(claims, sources, strict=True)):
        if claim.results is not None:
            allocation = source["status"]["allocation"]
            try:
                selector = reading.read_child(allocation, "nodeSelector", NodeSelector.from_dict)
            except reading.InputError as error:
                raise error.with_parent("claims", index, "status", "allocation") from None
            given[index] = allocation, selector
    return given


def _read_objects(
    question: Mapping[str, Any], key: str, kind: type[_Object]
) -> tuple[_Object, ...]:
    def read(value: object) -> _Object:
        name = kind.__name__
        check_form(value, f"core/v1.{name}" if name == "Node" else f"resource/v1.{name}")
        if kind.__name__ in KINDS:
            check_limits(kind.__name__, value)
        obj = kind.from_dict(value)
        if isinstance(obj, Node) and not obj.name:
            raise reading.InputError("required value", "metadata", "name")
        return obj

    return reading.read_items(question, key, read)


def _check_derived_cost(
    claims: Sequence[ResourceClaim], sources: Sequence[Json], features: Features, kubernetes: str
) -> None:
    """Raise InputError if a claim's derived attributes could cost more than the API lets in."""
    environment = replace(
        selector_environment(features, kubernetes), consumable_capacity=features.consumable_capacity
    )
    for index, (claim, source) in enumerate(zip(claims, sources, strict=True)):
        if claim.requests:
            problem = derived_cost_problem(source["spec"]["devices"], environment)
            if problem is not None:
                raise reading.InputError(problem.message, "claims", index, "spec", "devices")


def _decide_node(
    allocator: Allocator,
    node: Node,
    claims: Sequence[ResourceClaim],
    given: Mapping[int, tuple[Json, NodeSelector | None]],
    repeat: int,
    timeout: float,
) -> Json:
    """Return the answer for a node: the outcome, and the best time of `repeat` decisions.

    No decision is begun after `timeout`, however often it is to be repeated.
    """
    best: int | None = None
    end = time.monotonic() + timeout
    for _ in range(repeat):
        deadline = time.monotonic() + timeout
        start = time.perf_counter_ns()
        outcome = _decide(allocator, node, claims, given, deadline)
        elapsed = time.perf_counter_ns() - start
        best = elapsed if best is None else min(best, elapsed)
        if outcome.kind == "timeout" or time.monotonic() >= end:
            break
    return _make_answer(node.name, outcome, best or 0)


def _decide(
    allocator: Allocator,
    node: Node,
    claims: Sequence[ResourceClaim],
    given: Mapping[int, tuple[Json, NodeSelector | None]],
    deadline: float,
) -> Outcome:
    """Allocate what has no devices yet, on a node where all that was given can be used."""
    if not given:
        return allocator.allocate(node, claims, deadline=deadline)
    try:
        for _, selector in given.values():
            if selector is not None and not node_matches(node, None, False, selector):
                return Outcome("none")
    except AllocationError as error:
        return Outcome("error", error=str(error))
    pending = [claim for index, claim in enumerate(claims) if index not in given]
    outcome = (
        allocator.allocate(node, pending, deadline=deadline) if pending else Outcome("allocated")
    )
    if outcome.kind != "allocated":
        return outcome
    made = iter(outcome.allocations)
    return outcome._replace(
        allocations=tuple(
            given[index][0] if index in given else next(made) for index in range(len(claims))
        )
    )


def _make_answer(name: str, outcome: Outcome, nanoseconds: int) -> Json:
    answer: Json = {"node": name, "outcome": outcome.kind}
    if outcome.allocations:
        answer["allocations"] = list(outcome.allocations)
    if outcome.error:
        answer["error"] = outcome.error
    return {**answer, "ns": nanoseconds, "steps": outcome.steps}
