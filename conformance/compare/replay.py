"""Judge saved decisions again, without a cluster.

A bug report becomes a file: one decision, one snapshot of a pod that stayed pending, or a whole
result file. Judging it again needs nothing but the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.compare.compare import compare_scenario
from conformance.compare.evidence import undecided_claims
from conformance.compare.judging import judge, judge_undecided, undecided_parts
from conformance.engine.events.comparison import Judgement, ScenarioCompared
from conformance.errors import UsageError
from conformance.resultfile.read import load_results
from conformance.strictjson import read_object

MAX_BYTES = 64 << 20
"""The largest decision or snapshot; a cluster with a thousand nodes gives a few megabytes."""


def replay(path: Path) -> Judgement | None:
    """Judge the one decision or snapshot in a JSON file. Raises UsageError: neither is in it.

    A decision has ``pod``, ``node``, ``claims``, ``allocations``, ``snapshot``. None for a snapshot
    whose claims the reference leaves pending, too.
    """
    document = read_object(path, MAX_BYTES)
    try:
        if "allocations" in document:
            return judge(document)
        if document.get("kind") == "Snapshot" or isinstance(document.get("snapshot"), Mapping):
            if not undecided_claims(undecided_parts(document)[0]):
                raise UsageError(
                    "has no claim without an allocation, so there is nothing to judge; give a"
                    " decision (with $.allocations), or the snapshot of a pod that stayed pending"
                )
            return judge_undecided(document)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    raise UsageError(
        f"{path}: is neither a decision (with $.allocations and $.snapshot) nor a snapshot"
        " ($.kind: Snapshot); give a file that a run saved"
    )


def replay_results(path: Path) -> tuple[ScenarioCompared, ...]:
    """Judge every decision of a result file again; scenarios in the order of their ids.

    What the reference observed is not in the file, so that the comparison is of decisions alone.
    """
    finished = sorted(load_results(path).finished, key=lambda event: event.scenario.id)
    return tuple(compare_scenario(event) for event in finished)
