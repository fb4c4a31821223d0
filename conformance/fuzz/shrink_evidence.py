"""A snapshot or a decision made small, the verdict staying what it is. Needs no cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.compare.case import explain_case
from conformance.compare.dumps import read_dump
from conformance.compare.evidence import ask_reference
from conformance.compare.explain import read_snapshot
from conformance.compare.judging import judge, judge_undecided
from conformance.compare.waiting import all_waiting, waiting_of
from conformance.fuzz.shrink_json import Json, shrink
from conformance.results.read import load_results
from kube.base.errors import ConformanceError, UsageError
from reference_allocator.snapshot import Snapshot

Verdict = tuple[str, ...]
_SECONDS = 10.0
_NUMBER = re.compile(r" ?#?\d+")


def shrink_file(
    path: Path, subject: str = "", read: Callable[[Path], Json] = read_dump
) -> tuple[Verdict, Json]:
    """Return the verdict on what a file has, and the smallest document with the same verdict.

    Args:
        path: a snapshot, a dump, a decision, or a result file, of which the first difference is
            taken.
        subject: of a snapshot, the pod or claim ``namespace/name``; of a result file, a scenario.

    Raises UsageError: it is none of them, nothing in it waits or differs, or the reference finds
    devices for what waits.
    """
    if path.suffix == ".ndjson":
        document, subject = _first_difference(path, subject), ""
    else:
        document = read(path)
    try:
        if document.get("pods") and not subject:
            subject = _only_waiting(document)
        verdict = verdict_of(document, subject)
        if verdict in (("missed",), ("fits",)):
            raise UsageError(
                "the reference finds devices for it; only the scheduler that lets it wait can say"
                " whether less of it would still wait"
            )
        if verdict in (("identical",), ("admissible",)):
            raise UsageError("no rule is broken")
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None

    def keeps_verdict(candidate: Json) -> bool:
        try:
            return verdict_of(candidate, subject) == verdict
        except (ConformanceError, KeyError, TypeError, AttributeError, ValueError):
            return False  # what was taken away is needed to judge it

    for smaller in _drop_claims(document, keeps_verdict):
        document = smaller
    return verdict, shrink(document, keeps_verdict)


def verdict_of(document: Mapping[str, Any], subject: str = "") -> Verdict:
    """Return what must stay: the verdict with broken rules, or the rules that keep a pod waiting.

    Raises UsageError: it is no evidence, or nothing waits.
    """
    if "allocations" in document:
        judgement = judge(document)
        rules = {text.partition(":")[0] for text in judgement.violations}
        return (str(judgement.verdict), *sorted(rules))
    if isinstance(document.get("snapshot"), Mapping):
        if judge_undecided(document) is not None:
            return ("missed",)
        pods = [document["pod"]] if document.get("pod") else []
        document = {**document["snapshot"], "pods": pods}
    snapshot = read_snapshot(document)
    return ask_reference(lambda: _explain_waiting(snapshot, subject))


def _only_waiting(document: Mapping[str, Any]) -> str:
    """Return the pod of a snapshot that waits. Raises UsageError: none, or several."""
    names = [item.name for item in ask_reference(lambda: all_waiting(read_snapshot(document)))]
    if len(names) != 1:
        few = ", ".join(names[:4]) or "nothing"
        raise UsageError(f"{few} waits in it; name one pod or claim as NAMESPACE/NAME")
    return names[0]


def _explain_waiting(snapshot: Snapshot, subject: str) -> Verdict:
    several = [waiting_of(snapshot, subject)] if subject else all_waiting(snapshot)
    waiting = next(iter(several), None)
    if waiting is None or waiting.case is None:
        raise UsageError(f"{waiting.name}: {waiting.note}" if waiting else "nothing waits in it")
    case = waiting.case
    explanation, obstacles = explain_case(case, _SECONDS)
    reasons: set[str] = set()
    for report in explanation.nodes:
        problem = obstacles.get(report.node)
        if problem is None and report.kind == "allocated":
            return ("fits",)
        if problem is not None:
            reasons.add(problem)
            continue
        reasons.add(report.kind)
        reasons |= {"pool"} if report.pools else set()
        reasons |= {"conflict"} if report.conflict else set()
        for request in report.requests:
            reasons |= {_NUMBER.sub("", item.rule) for item in request.removals}
            reasons |= {request.obstacle} if request.obstacle else set()
    if not reasons:
        raise UsageError(f"{waiting.name}: there is no node")
    return ("waits", *sorted(reasons))


def _drop_claims(document: Json, keeps_verdict: Callable[[Json], bool]) -> Iterator[Json]:
    """Yield decisions with fewer and fewer claims: each goes with its allocation."""
    for index in reversed(range(len(document.get("allocations", ())))):
        smaller = {
            **document,
            **{
                name: [item for at, item in enumerate(document[name]) if at != index]
                for name in ("claims", "allocations")
            },
        }
        if keeps_verdict(smaller):
            document = smaller
            yield smaller


def _first_difference(path: Path, scenario: str) -> Json:
    """Return a result file's first decision or pending pod that differs from the reference."""
    finished = load_results(path).finished
    for event in sorted(finished, key=lambda item: item.scenario.id):
        if scenario and event.scenario.id != scenario:
            continue
        for decision in event.decisions:
            if not judge(decision).verdict.conformant:
                return dict(decision)
        for snapshot in event.undecided:
            if scenario or judge_undecided(snapshot) is not None:
                return dict(snapshot)
    raise UsageError(f"{path}: has no decision that breaks a rule; name a scenario that waits")
