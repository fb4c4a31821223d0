"""Which scenarios to run again: those that failed in an earlier run."""

from __future__ import annotations

from dataclasses import replace

from conformance.errors import UsageError
from conformance.resultfile.read import load_results, result_file
from conformance.scenario.selection import Selection


def only_failed(selection: Selection) -> Selection:
    """The selection, restricted to what failed in the run that it names, if it names one.

    Failed is also what broke, was lost, or got an allocation against the rules; a known issue of
    Kubernetes is not. A damaged result file, or one in which nothing failed, is a UsageError.
    """
    if selection.failed_in is None:
        return selection
    file = result_file(selection.failed_in)
    rows = load_results(file, truncated_ok=True).scenarios
    ids = tuple(row.scenario.id for row in rows if row.failed)
    if not ids:
        raise UsageError(f"{file}: nothing failed in that run; there is nothing to run again")
    return replace(selection, ids=ids)
