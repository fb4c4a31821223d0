"""Compares our answer to a problem with upstream's, and says what came of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from conformance.allocators.judging import snapshot_of
from reference_allocator.checks import check
from reference_allocator.gates import LATEST, MINORS
from reference_allocator.snapshot import Snapshot
from reference_allocator.wire import answer_allocate
from tests.oracle.known_differences import KnownDifference, explanations
from tests.oracle.upstream import Upstream, ask, comparable

Json = dict[str, Any]

OUR_TIMEOUT = 10.0
"""Seconds per node; ours has to answer within them, upstream may not."""


_PANIC = "panic: "
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
_LATER_FIELDS = 20
"""The most fields of a problem that a minor may not have."""
_MANY_STEPS = 20_000
"""A search that fails this often has to cut."""
_LONG_NS = 2_000_000_000


@dataclass(frozen=True)
class Comparison:
    """What came of one problem.

    Attributes:
        kind: "same"; "upstream-timeout" (it gave up on a node where ours answers);
            "upstream-panic"; "known: <name>"; "different", "unchecked" (the checker refuses an
            allocation that was made) or "slow" (ours takes much longer, or tries everything
            though it should cut): these three fail.
        detail: what differs, for people.
        outcomes: our and upstream's outcome on the first node that differs.
        accepted: how many answers of nodes the checker has accepted.
    """

    kind: str
    detail: str = ""
    outcomes: tuple[str, str] = ("", "")
    accepted: int = 0

    @property
    def failed(self) -> bool:
        """Whether nothing explains the difference."""
        return self.kind in ("different", "unchecked", "slow")


def compare(
    problem: Json, upstream: Upstream, *, checked: bool = True, kubernetes: str = LATEST
) -> Comparison:
    """Asks both sides.

    Args:
        problem: a line for `allocate`; it loses the fields that an older minor does not have.
        upstream: the running oracle.
        checked: also ask the checker about every allocation. Ours is asked about; where nothing
            differs, it is upstream's, too.
        kubernetes: the minor of the oracle, whose rules ours follows.
    """
    their_answer = ask(upstream, problem)
    for _ in range(_LATER_FIELDS):
        unknown = _UNKNOWN.search(their_answer.get("invalid", ""))
        if kubernetes == LATEST or unknown is None:
            break
        inside = "features." if their_answer["invalid"].startswith("features: ") else ""
        _remove_field(problem, re.sub(r"\[\d+\]", "", inside + unknown[1]))
        their_answer = ask(upstream, problem)
    line = json.dumps(problem)
    our_answer = json.loads(answer_allocate(line, timeout=OUR_TIMEOUT, kubernetes=kubernetes))
    ours, theirs = comparable(our_answer), comparable(their_answer)
    for answer in (ours, theirs):
        _drop_texts(answer, kubernetes)
    found = _answers(ours, theirs)
    if not found.failed:
        slow = _slow(our_answer, their_answer)
        if slow:
            return Comparison("slow", slow)
    if found.failed:
        if "invalid" in found.outcomes:
            return found
        for known in explanations(problem, kubernetes):
            if _holds(known, problem, ours, upstream, kubernetes):
                found = Comparison(f"known: {known.name}")
                break
        else:
            return found
    if not checked or "invalid" in ours:
        return found
    broken = complaint(problem, ours, kubernetes)
    if broken:
        return Comparison("unchecked", broken)
    return replace(found, accepted=sum("allocations" in node for node in ours["nodes"]))


def _drop_texts(answer: Json, kubernetes: str) -> None:
    """Drop the words of errors for minors whose words ours does not have, those before 1.37.

    Without them an error of one node is a node that is out.
    """
    if MINORS.index(kubernetes) < MINORS.index(LATEST):
        for node in answer.get("nodes", ()):
            if not node.get("error", "").startswith(_PANIC):
                node.pop("error", None)
            if node["outcome"] == "nodeError":
                node["outcome"] = "none"


def _remove_field(value: Any, path: str) -> None:
    """Remove a field from all objects at a path, whose lists have no indices.

    Keys of maps, such as names of attributes, may have dots; of all keys in one place the field is
    removed.
    """
    if isinstance(value, list):
        for item in value:
            _remove_field(item, path)
    elif isinstance(value, dict):
        value.pop(path, None)
        for key in value:
            if path.startswith(f"{key}."):
                _remove_field(value[key], path.removeprefix(f"{key}."))


def _holds(
    known: KnownDifference, problem: Json, ours: Json, upstream: Upstream, kubernetes: str
) -> bool:
    """Whether upstream, asked as `known` says, gives our answer for every node."""
    left = list(range(len(ours["nodes"])))
    for _ in range(known.times):
        answers = [ask(upstream, item) for item in known.instead(problem)]
        theirs = comparable({"id": "", "nodes": [n for a in answers for n in a.get("nodes", ())]})
        _drop_texts(theirs, kubernetes)
        if len(theirs["nodes"]) != len(ours["nodes"]):
            return False
        left = [
            index
            for index in left
            if _answers(*({"nodes": [side["nodes"][index]]} for side in (ours, theirs))).failed
        ]
        if not left:
            return True
    return False


def _answers(ours: Json, theirs: Json) -> Comparison:
    if "invalid" in ours or "invalid" in theirs:
        mine, upstream_says = ("invalid" if "invalid" in item else "" for item in (ours, theirs))
        return (
            Comparison("same") if ours == theirs else _different(ours, theirs, mine, upstream_says)
        )
    gave_up = panicked = False
    for mine, upstream in zip(ours["nodes"], theirs["nodes"], strict=True):
        if upstream["outcome"] == "timeout" and mine["outcome"] != "timeout":
            gave_up = True
        elif upstream.get("error", "").startswith(_PANIC):
            panicked = True
        elif mine != upstream:
            return _different(mine, upstream, mine["outcome"], upstream["outcome"])
    return Comparison("upstream-timeout" if gave_up else "upstream-panic" if panicked else "same")


def _slow(ours: Json, theirs: Json) -> str:
    """Where ours tries as much as upstream, or takes much longer for it; empty if nowhere."""
    for mine, upstream in zip(ours.get("nodes", ()), theirs.get("nodes", ()), strict=False):
        if upstream["outcome"] == "timeout":
            continue
        steps, times = (mine["steps"], upstream["steps"]), (mine["ns"], upstream["ns"])
        numbers = (
            f"{steps[0]} steps in {times[0] / 1e9:.1f} s, not {steps[1]} in {times[1] / 1e9:.1f}"
        )
        if steps[0] > _MANY_STEPS and 2 * steps[0] > steps[1]:
            return numbers
        if times[0] > _LONG_NS and times[0] > 5 * times[1]:
            return numbers
    return ""


def _different(ours: Json, theirs: Json, our_outcome: str, their_outcome: str) -> Comparison:
    texts = (json.dumps(answer, sort_keys=True) for answer in (ours, theirs))
    detail = "ours     {}\nupstream {}".format(*texts)
    return Comparison("different", detail, (our_outcome, their_outcome))


def complaint(problem: Json, answer: Json, kubernetes: str = LATEST) -> str:
    """What the checker has against the allocations of an answer; empty if nothing."""
    if "invalid" in answer:
        return ""
    snapshot: Snapshot | None = None
    for node, result in zip(problem.get("nodes", ()), answer["nodes"], strict=True):
        if "allocations" not in result:
            continue
        snapshot = snapshot or snapshot_of(problem, kubernetes)
        violations = check(snapshot, node, problem.get("claims", ()), result["allocations"])
        if violations:
            return f"{result['node']}: {violations[0]}\n{json.dumps(result, sort_keys=True)}"
    return ""
