"""Allocation problems: one snapshot and its claims in, what each node gives out.

A line in: {"id", "features", "slices", "deviceClasses", "nodes", "claims", "allocated",
"allocator", "repeat"}; a line out: {"id", "nodes": [{"node", "outcome", "allocations", "error",
"ns", "steps"}]}. Objects are those of v1, defaulted. `allocator` picks one of upstream's three
implementations and means nothing here: the answer is that of incubating and experimental.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.api import Node
from reference_allocator.features import Features
from reference_allocator.fields import (
    InputError,
    child,
    describe,
    integer,
    items,
    mapping,
    only_known,
    string,
)
from reference_allocator.wire.lines import Json, answer_line
from reference_allocator.wire.objects import check_form

SHARE_ID: Final = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
"""Stands for every share id, as they are random upstream."""

DEFAULT_TIMEOUT: Final = 10.0
"""Seconds for one node; the scheduler's own limit (DRASchedulerFilterTimeout)."""

_OBJECTS: Final = {
    "slices": "ResourceSlice",
    "deviceClasses": "DeviceClass",
    "nodes": "Node",
    "claims": "ResourceClaim",
    "allocated": "ResourceClaim",
}
_ALLOCATORS: Final = ("", "stable", "incubating", "experimental")
_MAX_REPEAT: Final = 1_000_000


def answer_allocate(line: str | bytes, *, timeout: float = DEFAULT_TIMEOUT) -> str:
    """The answer to one line; never raises for what the line says.

    Args:
        line: a problem.
        timeout: seconds after which the search on a node gives up.
    """
    return answer_line(line, lambda question: _respond(question, timeout))


def _respond(question: Mapping[str, Any], timeout: float) -> Json:
    only_known(question, ("id", "features", *_OBJECTS, "allocator", "repeat"))
    objects = {key: _objects(question, key, kind) for key, kind in _OBJECTS.items()}
    features = child(question, "features", Features.from_dict) or Features()
    if string(question, "allocator") not in _ALLOCATORS:
        raise InputError("expected stable, incubating or experimental", "allocator")
    repeat = integer(question, "repeat") or 1
    if not 0 < repeat <= _MAX_REPEAT:
        raise InputError(f"expected 1 to {_MAX_REPEAT}, got {describe(repeat)}", "repeat")
    allocator = Allocator(
        features,
        objects["slices"],
        objects["deviceClasses"],
        objects["allocated"],
        share_ids=lambda _: SHARE_ID,
    )
    answers = [
        _decide(allocator, node, objects["claims"], repeat, timeout) for node in objects["nodes"]
    ]
    return {"nodes": answers} if answers else {}


def _objects(question: Mapping[str, Any], key: str, kind: str) -> tuple[Mapping[str, Any], ...]:
    def read(value: object) -> Mapping[str, Any]:
        check_form(value, kind)
        if kind == "Node":
            Node.from_dict(value)
        return mapping(value)

    return items(question, key, read)


def _decide(
    allocator: Allocator,
    node: Mapping[str, Any],
    claims: Sequence[Mapping[str, Any]],
    repeat: int,
    timeout: float,
) -> Json:
    """The answer for a node: the outcome, and the best time of `repeat` decisions."""
    best: int | None = None
    for _ in range(repeat):
        deadline = time.monotonic() + timeout
        start = time.perf_counter_ns()
        outcome = allocator.allocate(node, claims, deadline=deadline)
        elapsed = time.perf_counter_ns() - start
        best = elapsed if best is None else min(best, elapsed)
        if outcome.kind == "timeout":
            break
    return _answer(node["metadata"]["name"], outcome, best or 0)


def _answer(name: str, outcome: Outcome, nanoseconds: int) -> Json:
    answer: Json = {"node": name, "outcome": outcome.kind}
    if outcome.allocations:
        answer["allocations"] = list(outcome.allocations)
    if outcome.error:
        answer["error"] = outcome.error
    return {**answer, "ns": nanoseconds, "steps": outcome.steps}
