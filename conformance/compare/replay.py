"""Judge saved decisions again, without a cluster.

A bug report becomes a file: one decision, one snapshot of a pod that stayed pending, or a whole
result file. Judging it again needs nothing but the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from conformance.compare.asking import answer, changed_by
from conformance.compare.compare import compare_scenario
from conformance.compare.evidence import reading, undecided_claims
from conformance.compare.explain import (
    Seen,
    Told,
    explain_snapshot,
    read_snapshot,
)
from conformance.compare.judging import judge, judge_undecided, undecided_parts
from conformance.compare.waiting import all_waiting
from conformance.compare.whatif import configured, with_objects
from conformance.engine.events.comparison import Judgement, ScenarioCompared
from conformance.errors import UsageError
from conformance.options import given
from conformance.resultfile.read import load_results
from conformance.scenario.documents.yamlfile import as_mapping, read_documents
from conformance.strictjson import read_object
from conformance.targets.opening.conversions import gates_of, version_of
from reference_allocator.snapshot import Snapshot

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WhatIf:
    """How a snapshot is changed before it is asked."""

    kubernetes: str = given(
        "", "What if: another Kubernetes version.", metavar="VERSION", convert=version_of
    )
    gates: Mapping[str, bool] = given(
        {},
        "What if: a feature gate (repeatable).",
        flag="--feature-gate",
        metavar="NAME=true|false",
        type=tuple[str, ...],
        convert=gates_of,
    )
    nodes: tuple[Path, ...] = given(
        (),
        "What if: a Node and its ResourceSlices (YAML), as a node group adds them (repeatable).",
        flag="--add-node",
        metavar="FILE",
    )
    cordon: tuple[str, ...] = given((), "What if: a node is cordoned (repeatable).", metavar="NODE")
    end: tuple[str, ...] = given(
        (), "What if: a pod has ended (repeatable).", metavar="NAMESPACE/POD"
    )

    def of(self, snapshot: Snapshot) -> Snapshot:
        """The changed snapshot. Raises UsageError: it has not what is to be changed."""
        changed = configured(snapshot, self.kubernetes, self.gates)
        for file in self.nodes:
            objects = [as_mapping(document.data) for document in read_documents(file)]
            changed = reading(partial(with_objects, changed, objects, str(file)))
        return changed_by(changed, (), "", self.cordon, self.end)


def replay_if(path: Path, what_if: WhatIf, seen: Seen | None = None) -> list[Told]:
    """Whether what waits in a snapshot would fit if. Raises UsageError: no snapshot, no change."""
    return _asked(path, what_if, partial(explain_snapshot, suggest=False, seen=seen))


def answering(path: Path, what_if: WhatIf) -> Callable[[bytes], str]:
    """Answers a line about a snapshot (see `asking`). Raises UsageError: as `replay_if`."""
    return _asked(path, what_if, lambda snapshot: partial(answer, snapshot))


def _asked(path: Path, what_if: WhatIf, ask: Callable[[Snapshot], T]) -> T:
    document = read_object(path)
    try:
        return ask(what_if.of(read_snapshot(undecided_parts(document)[0])))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def replay(path: Path) -> tuple[Judgement, ...]:
    """Judge the one decision or snapshot in a JSON file. Raises UsageError: neither is in it.

    A decision has ``pod``, ``node``, ``claims``, ``allocations``, ``snapshot``. Nothing is told of
    a snapshot whose claims the reference leaves pending, too; of a cluster's, each pod is judged.
    """
    document = read_object(path)
    try:
        if "allocations" in document:
            return (judge(document),)
        if document.get("kind") == "Snapshot" or isinstance(document.get("snapshot"), Mapping):
            if not undecided_claims(undecided_parts(document)[0]):
                raise UsageError(
                    "has no claim without an allocation, so there is nothing to judge; give a"
                    " decision (with $.allocations), or the snapshot of a pod that stayed pending"
                )
            judged = map(judge_undecided, _each_pod(document))
            return tuple(item for item in judged if item is not None)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    raise UsageError(
        f"{path}: is neither a decision (with $.allocations and $.snapshot) nor a snapshot"
        " ($.kind: Snapshot); give a file that a run saved"
    )


def _each_pod(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The document for each pod that only devices keep waiting; as it is without pods."""
    if not document.get("pods"):
        return [document]
    snapshot = read_snapshot(document)
    waiting = reading(lambda: all_waiting(snapshot))
    return [
        {"pod": item.case.pod, "snapshot": {**document, "claims": list(item.case.claims)}}
        for item in waiting
        if item.case is not None and not item.note
    ]


def replay_results(path: Path) -> tuple[ScenarioCompared, ...]:
    """Judge every decision of a result file again; scenarios in the order of their ids.

    What the reference observed is not in the file, so that the comparison is of decisions alone.
    """
    finished = sorted(load_results(path).finished, key=lambda event: event.scenario.id)
    return tuple(compare_scenario(event) for event in finished)
