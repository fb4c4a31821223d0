"""Compares our answer to a problem with upstream's, and says what became of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from reference_allocator.checks import check
from reference_allocator.snapshot import API_VERSION, KIND, Snapshot
from reference_allocator.wire import answer_allocate
from tests.oracle.known_differences import explanations
from tests.oracle.upstream import Upstream, comparable

Json = dict[str, Any]

OUR_TIMEOUT = 10.0
"""Seconds per node; ours has to answer within them, upstream may not."""


@dataclass(frozen=True)
class Verdict:
    """What came of one problem.

    Attributes:
        kind: "same"; "upstream-timeout" (it gave up on a node where ours answers);
            "known: <name>"; "different" or "unchecked" (the checker refuses an allocation that was
            made): these two fail.
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
        return self.kind in ("different", "unchecked")


def judge(problem: Json, upstream: Upstream, *, checked: bool = True) -> Verdict:
    """Asks both sides.

    Args:
        problem: a line for `allocate`.
        upstream: the running oracle.
        checked: also ask the checker about every allocation. Ours is asked about; where nothing
            differs, it is upstream's, too.
    """
    line = json.dumps(problem)
    ours = comparable(json.loads(answer_allocate(line, timeout=OUR_TIMEOUT)))
    theirs = comparable(upstream.ask(line))
    verdict = _compare(ours, theirs)
    if verdict.failed:
        if "invalid" in verdict.outcomes:
            return verdict
        for known in explanations(problem):
            answers = [upstream.ask(json.dumps(item)) for item in known.instead(problem)]
            nodes = [node for answer in answers for node in answer.get("nodes", ())]
            if not _compare(ours, comparable({"id": ours["id"], "nodes": nodes})).failed:
                verdict = Verdict(f"known: {known.name}")
                break
        else:
            return verdict
    if not checked or "invalid" in ours:
        return verdict
    broken = complaint(problem, ours)
    if broken:
        return Verdict("unchecked", broken)
    return replace(verdict, accepted=sum("allocations" in node for node in ours["nodes"]))


def _compare(ours: Json, theirs: Json) -> Verdict:
    if "invalid" in ours or "invalid" in theirs:
        mine, upstream_says = ("invalid" if "invalid" in item else "" for item in (ours, theirs))
        return Verdict("same") if ours == theirs else _different(ours, theirs, mine, upstream_says)
    gave_up = False
    for mine, upstream in zip(ours["nodes"], theirs["nodes"], strict=True):
        if upstream["outcome"] == "timeout" and mine["outcome"] != "timeout":
            gave_up = True
        elif mine != upstream:
            return _different(mine, upstream, mine["outcome"], upstream["outcome"])
    return Verdict("upstream-timeout" if gave_up else "same")


def _different(ours: Json, theirs: Json, our_outcome: str, their_outcome: str) -> Verdict:
    texts = (json.dumps(answer, sort_keys=True) for answer in (ours, theirs))
    detail = "ours     {}\nupstream {}".format(*texts)
    return Verdict("different", detail, (our_outcome, their_outcome))


def complaint(problem: Json, answer: Json) -> str:
    """What the checker has against the allocations of an answer; empty if nothing."""
    if "invalid" in answer:
        return ""
    snapshot: Snapshot | None = None
    for node, result in zip(problem.get("nodes", ()), answer["nodes"], strict=True):
        if "allocations" not in result:
            continue
        if snapshot is None:
            parts = {key: problem.get(key, []) for key in _PARTS}
            snapshot = Snapshot.from_dict(
                {"apiVersion": API_VERSION, "kind": KIND, "kubernetes": "1.37.1", **parts}
                | {"features": problem.get("features", {})}
            )
        violations = check(snapshot, node, problem.get("claims", ()), result["allocations"])
        if violations:
            return f"{result['node']}: {violations[0]}\n{json.dumps(result, sort_keys=True)}"
    return ""


_PARTS = ("slices", "deviceClasses", "nodes", "claims", "allocated")
