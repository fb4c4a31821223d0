"""Judge saved decisions again, without a cluster.

A bug report becomes a file: one decision, one snapshot of a pod that stayed pending, or a whole
result file. Judging it again needs nothing but the reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from conformance.compare.asking import answer_question, change_snapshot
from conformance.compare.case import Case, find_fitting_node
from conformance.compare.compare_scenarios import compare_scenario
from conformance.compare.dumps import read_dump
from conformance.compare.evidence import (
    Obj,
    ask_reference,
    full_name,
    key_of,
    name_of,
    undecided_claims,
)
from conformance.compare.explain import (
    ExplanationTrace,
    PendingExplanation,
    condition_of,
    explain_snapshot,
    find_known_faults,
    judge_nodes,
    read_snapshot,
)
from conformance.compare.following import FollowedSnapshot
from conformance.compare.judging import judge, judge_undecided, undecided_parts
from conformance.compare.waiting import all_waiting
from conformance.compare.whatif import add_objects, configure_snapshot
from conformance.compare.witness import SEARCH_SECONDS
from conformance.results.events.comparison import Judgement, ScenarioCompared, Verdict
from conformance.results.events.scenario import KnownFailure
from conformance.results.read import load_results
from conformance.scenario.documents.yamlfile import as_mapping, read_documents
from conformance.scenario.registry import load_known_issues
from conformance.targets.opening.conversions import gates_of, version_of
from kube.base.errors import UsageError
from kube.base.options import option_field
from kube.base.text import join_some
from reference_allocator.snapshot import Snapshot

T = TypeVar("T")
Read = Callable[[Path], Obj]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """How a snapshot is changed before it is asked."""

    kubernetes: str = option_field(
        "", "What if: another Kubernetes version.", metavar="VERSION", convert=version_of
    )
    gates: Mapping[str, bool] = option_field(
        {},
        "What if: a feature gate (repeatable).",
        flag="--feature-gate",
        metavar="NAME=true|false",
        given_as=tuple[str, ...],
        convert=gates_of,
    )
    nodes: tuple[Path, ...] = option_field(
        (),
        "What if: a Node and its ResourceSlices (YAML), as a node group adds them (repeatable).",
        flag="--add-node",
        metavar="FILE",
    )
    cordon: tuple[str, ...] = option_field(
        (), "What if: a node is cordoned (repeatable).", metavar="NODE"
    )
    end: tuple[str, ...] = option_field(
        (), "What if: a pod has ended (repeatable).", metavar="NAMESPACE/POD"
    )

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """Return the changed snapshot. Raises UsageError: it has not what is to be changed."""
        changed = configure_snapshot(snapshot, self.kubernetes, self.gates)
        for file in self.nodes:
            objects = [as_mapping(document.data) for document in read_documents(file)]
            changed = ask_reference(partial(add_objects, changed, objects, str(file)))
        return change_snapshot(changed, (), "", self.cordon, self.end)


def replay_if(
    path: Path, what_if: WhatIf, seen: ExplanationTrace | None = None, read: Read = read_dump
) -> list[PendingExplanation]:
    """Explain whether what waits in a snapshot would fit if. Raises UsageError: it cannot be."""
    return _ask_changed(
        read(path), path, what_if, partial(explain_snapshot, suggest=False, seen=seen)
    )


def make_answerer(path: Path, what_if: WhatIf, read: Read = read_dump) -> Callable[[bytes], str]:
    """Return what answers lines about a snapshot (`asking`). Raises UsageError: as `replay_if`."""
    return _ask_changed(
        read(path),
        path,
        what_if,
        lambda snapshot: partial(answer_question, FollowedSnapshot(snapshot)),
    )


def _ask_changed(document: Obj, path: Path, what_if: WhatIf, ask: Callable[[Snapshot], T]) -> T:
    try:
        return ask(what_if.apply(read_snapshot(undecided_parts(document)[0])))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def replay(document: Obj, path: Path) -> tuple[Judgement, ...]:
    """Judge one decision, or a snapshot, of a file. Raises UsageError: it is neither.

    A decision has ``pod``, ``node``, ``claims``, ``allocations``, ``snapshot``. Nothing is told of
    a snapshot whose claims the reference leaves pending, too; of a cluster's, each pod is judged.
    """
    try:
        if "allocations" in document:
            return (judge(document),)
        if document.get("kind") == "Snapshot" or isinstance(document.get("snapshot"), Mapping):
            undecided = list(_list_undecided(document))
            if not undecided:
                raise UsageError(_explain_nothing(document))
            judged = map(_judge_waiting, undecided)
            return tuple(item for item in judged if item is not None)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    raise UsageError(
        f"{path}: is neither a decision (with $.allocations and $.snapshot) nor a snapshot"
        " ($.kind: Snapshot); give a file that a run saved"
    )


def _explain_nothing(document: Mapping[str, Any]) -> str:
    """Return why nothing of a snapshot is judged."""
    waiting = []
    if document.get("pods"):
        snapshot = read_snapshot(document)
        waiting = ask_reference(lambda: all_waiting(snapshot))
    if waiting:
        names = join_some([item.name for item in waiting])
        return f"not by devices alone wait {names}; `dra-conformance explain` says why"
    return (
        "has no claim without an allocation, so there is nothing to judge; give a decision (with"
        " $.allocations), or the snapshot of a pod that stayed pending"
    )


def _list_undecided(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any] | Case]:
    """Yield the document for each pod that only devices keep waiting; as it is without pods.

    A pod whose claims have their devices already, or depend on the node, is a case.
    """
    if not document.get("pods"):
        if undecided_claims(undecided_parts(document)[0]):
            yield document
        return
    snapshot = read_snapshot(document)
    for item in ask_reference(lambda: all_waiting(snapshot)):
        case = item.case
        if case is not None and not item.note:
            plain = bool(case.claims) and not case.requested
            of_pod = {"pod": case.pod, "snapshot": {**document, "claims": list(case.claims)}}
            yield of_pod if plain else case


def _judge_waiting(waiting: Mapping[str, Any] | Case) -> Judgement | None:
    """Return ``missed`` if the reference has a node for what waits; None if it has none, too."""
    if not isinstance(waiting, Case):
        return judge_undecided(waiting)
    case = waiting
    node = ask_reference(lambda: find_fitting_node(case, time.monotonic() + SEARCH_SECONDS))
    pod = case.pod or {}
    conditions = condition_of(case.snapshot, full_name(pod))
    if node is None or any("Insufficient" in said for said in conditions):
        return None
    name = name_of(pod)
    reason = f"{name} stayed pending; by its devices it can run on node {node}"
    return Judgement(Verdict.MISSED, reason, (), None, name, node)


def find_faults_met(document: Obj, judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield the known faults of Kubernetes that a decision shows, or that keep pods waiting.

    Args:
        document: a decision or a snapshot.
        judgements: what `replay` says of it.

    Raises UsageError: as `replay`.
    """
    version = str((document.get("snapshot") or document).get("kubernetes"))
    if any(judgement.only_in_use for judgement in judgements):
        for issue in load_known_issues().issues.values():
            if issue.overlaps and issue.affects_version(version):
                yield f"{issue.summary} {issue.link}"
    if "allocations" in document:
        return
    faults: dict[str, None] = {}
    for waiting in _list_undecided(document):
        case = waiting if isinstance(waiting, Case) else _make_case(waiting)
        judged = ask_reference(partial(judge_nodes, case, SEARCH_SECONDS))
        faults |= dict.fromkeys(find_known_faults(version, judged))
    yield from faults


def _make_case(document: Mapping[str, Any]) -> Case:
    state, pod = undecided_parts(document)
    keys = frozenset(map(key_of, undecided_claims(state)))
    return Case(read_snapshot(state), keys, pod)


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """What the decisions of a run come to; scenarios in the order of their ids.

    Attributes:
        compared: of each scenario; of its decisions alone, since what the reference observed is not
            in a result file.
        known: scenario -> the known issues that its failure was.
    """

    compared: tuple[ScenarioCompared, ...]
    known: Mapping[str, tuple[KnownFailure, ...]]


def replay_results(path: Path) -> ReplayedRun:
    """Judge every decision of a result file again. Raises UsageError: it cannot be read."""
    finished = sorted(load_results(path).finished, key=lambda event: event.scenario.id)
    return ReplayedRun(
        tuple(compare_scenario(event) for event in finished),
        {event.scenario.id: event.known_issues for event in finished if event.known_issues},
    )
