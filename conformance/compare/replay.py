"""Judge saved decisions again, without a cluster.

A bug report becomes a file: one decision, one snapshot of a pod that stayed pending, or a whole
result file. Judging it again needs nothing but the reference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.compare.compare import Comparison, compare_runs
from conformance.compare.judging import Judgement, Witness, judge, judge_undecided
from conformance.errors import UsageError
from conformance.resultfile.read import load_results


def replay(path: Path, witness: Witness | None = None) -> Judgement | None:
    """Judge the one decision or snapshot in a JSON file.

    Args:
        path: a decision (``pod``, ``node``, ``claims``, ``allocations``, ``snapshot``), or a
            snapshot document of a pod that stayed pending.
        witness: who judges; None is the reference that the suite ships.

    Returns:
        The judgement; None for a snapshot whose claims the reference leaves pending too.

    Raises:
        UsageError: the file is neither, with ``file: $.path`` and what is wrong.
    """
    document = _read(path)
    try:
        if "allocations" in document:
            return judge(document, witness)
        if document.get("kind") == "Snapshot" or isinstance(document.get("snapshot"), Mapping):
            return judge_undecided(document, witness)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    raise UsageError(
        f"{path}: is neither a decision (with $.allocations and $.snapshot) nor a snapshot"
        " ($.kind: Snapshot); give a file that a run saved"
    )


def replay_results(path: Path, witness: Witness | None = None) -> Comparison:
    """Judge every decision of a result file again.

    What the reference observed is not in the file, so that the comparison is of decisions alone.

    Raises:
        UsageError: the result file cannot be used.
    """
    return compare_runs(load_results(path).finished, (), witness)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}: is not JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: is not JSON in UTF-8") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: $: must be an object (a decision or a snapshot)")
    return document
