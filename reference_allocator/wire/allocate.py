"""Allocation problems: one snapshot and its claims in, the allocation on each node out.

A line in: {"id", "contract", "features", "slices", "deviceClasses", "nodes", "claims", "pod",
"following", "allocated", "place", "allocator", "repeat"}; a line out: {"id", "nodes": [{"node",
"outcome", "allocations", "error", "ns", "steps", "following"}]}. Objects are those of v1,
defaulted. `allocator` picks one of upstream's three implementations and means nothing here: the
answer is that of incubating and experimental. `place` says whether nodes are there already, which
changes nothing here. What pods are given is decided in `wire.pods`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.api import DeviceClass, Node, ResourceClaim, ResourceSlice, reading
from reference_allocator.api.limits import KINDS, check_limits
from reference_allocator.environment import selector_environment
from reference_allocator.extended import classes_by_resource
from reference_allocator.features import Features
from reference_allocator.gates import LATEST
from reference_allocator.index import Index
from reference_allocator.rules.derived_cost import derived_cost_problem
from reference_allocator.wire.lines import Json, answer_line, check_form
from reference_allocator.wire.pods import AskedPod, PodRow

CONTRACT: Final = "allocation/v1"
"""The version of these lines; a line that names none is of this one."""

SHARE_ID: Final = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
"""The id that stands for every share id, as they are random upstream."""

DEFAULT_TIMEOUT: Final = 10.0
"""The seconds for one node; the scheduler's own limit (DRASchedulerFilterTimeout)."""

_FIELDS: Final = """
    id contract features slices deviceClasses nodes claims pod following allocated place allocator
    repeat
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
    pods = (
        _read_pod(question, claims),
        *reading.read_items(question, "following", _read_following),
    )
    if features.derived_attributes:
        for pod in pods:
            _check_derived_cost(pod.claims, pod.sources, features, kubernetes)
    # Of one claim in both lists, what `allocated` says counts.
    own = {(claim.namespace, claim.name): claim for pod in pods for claim in pod.claims}
    for claim in allocated:
        own.pop((claim.namespace, claim.name), None)
    in_use = [claim for claim in own.values() if claim.results is not None]
    index = Index(features, slices, classes, (*allocated, *in_use), kubernetes=kubernetes)
    row = PodRow(
        Allocator(index, share_ids=lambda _: SHARE_ID),
        pods,
        classes_by_resource(question.get("deviceClasses") or ()),
    )
    sources = question.get("nodes") or ()
    answers = [
        _decide_node(row, node, source, repeat, timeout)
        for node, source in zip(nodes, sources, strict=True)
    ]
    return {"nodes": answers} if answers else {}


def _read_following(value: object) -> AskedPod:
    source = reading.expect_object(value)
    reading.refuse_unknown_keys(source, ("claims", "pod"))
    return _read_pod(source, _read_objects(source, "claims", ResourceClaim))


def _read_pod(source: Mapping[str, Any], claims: tuple[ResourceClaim, ...]) -> AskedPod:
    pod = reading.read_child(source, "pod", _read_object_of_pod)
    return AskedPod.read(claims, source.get("claims") or (), pod)


def _read_object_of_pod(value: object) -> Json:
    check_form(value, "core/v1.Pod")
    return dict(reading.expect_object(value))


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


def _decide_node(row: PodRow, node: Node, source: Json, repeat: int, timeout: float) -> Json:
    """Return the answer for a node: the outcomes, and the best time of `repeat` decisions.

    No decision is begun after `timeout`, however often it is to be repeated.
    """
    best: int | None = None
    end = time.monotonic() + timeout
    outcome = Outcome("none")
    for _ in range(repeat):
        outcome = Outcome("none")  # To let go of the last answer is no part of the next.
        deadline = time.monotonic() + timeout
        start = time.perf_counter_ns()
        outcome = row.decide(row.first, node, source, deadline)
        elapsed = time.perf_counter_ns() - start
        best = elapsed if best is None else min(best, elapsed)
        if outcome.kind == "timeout" or time.monotonic() >= end:
            break
    answer = {**_make_answer(node.name, outcome), "ns": best or 0, "steps": outcome.steps}
    following = row.decide_following(node, source, outcome, timeout)
    if following:
        answer["following"] = [_make_answer("", item) for item in following]
    return answer


def _make_answer(name: str, outcome: Outcome) -> Json:
    answer: Json = {"node": name} if name else {}
    answer["outcome"] = outcome.kind
    if outcome.allocations:
        answer["allocations"] = list(outcome.allocations)
    if outcome.error:
        answer["error"] = outcome.error
    return answer
