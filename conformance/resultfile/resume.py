"""Go on after an earlier run: what has a result is kept, or only what failed is run again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from conformance.engine.events.result import RunResult
from conformance.engine.events.run import ResumedPart, RunStarted
from conformance.engine.events.scenario import Outcome, ScenarioFinished
from conformance.errors import UsageError
from conformance.redaction import redact_json
from conformance.resultfile.lines import from_line
from conformance.resultfile.merge import OWN_OPTIONS, difference, seconds_between
from conformance.resultfile.read import FILE_NAME, RESUMING, RecordedRun, load_results, result_file
from conformance.resultfile.write import header_line
from conformance.scenario.selection import Selection

OTHER_OPTIONS = (*OWN_OPTIONS, "config", "runTimeout")
"""Options that may be others after the interruption; what a file with options gave is compared."""


def to_resume(folder: Path) -> RecordedRun:
    """The run of a folder, or the one that resumed it and was killed. Raises UsageError: none."""
    file = folder / RESUMING
    run = load_results(file if file.exists() else folder / FILE_NAME, truncated_ok=True)
    if not run.interrupted and not run.outcomes[Outcome.LOST]:
        raise UsageError(
            f"--resume {folder}: nothing to resume: the run {run.run.run} ended, and each of its"
            f" {len(run.run.planned)} scenarios has a result; leave --resume out to run them again"
        )
    return run


def resumed(earlier: RecordedRun, new: RunStarted) -> RunResult:
    """What of a new run has ended before. Raises UsageError: it is of another plan; says how."""
    old = earlier.run
    recorded = from_line(json.loads(json.dumps(redact_json(header_line(new)))), {})
    assert isinstance(recorded, RunStarted)
    alone = (replace(old, shard=None), replace(recorded, shard=None))
    if (found := difference(*alone, OTHER_OPTIONS)) is not None:
        path, before, now = found
        raise UsageError(
            f"{earlier.where('header')}: {path} was {before} when the run was interrupted, and now"
            f" is {now}; give the same scenarios and options on a cluster that is alike, or leave"
            " --resume out"
        )
    if new.run in {old.run, *(part.run for part in old.resumed)}:
        raise UsageError(f"--run-id {new.run}: is an earlier run's; give another, or none")
    kept = tuple(event for event in earlier.finished if event.outcome is not Outcome.LOST)
    ids = {event.scenario.id for event in kept}
    before_that = {name for part in old.resumed for name in part.scenarios}
    part = ResumedPart(
        run=old.run,
        digest=earlier.digest,
        scenarios=tuple(sorted(ids - before_that)),
        seconds=_seconds(
            earlier, [event for event in kept if event.scenario.id not in before_that]
        ),
        left=earlier.left,
    )
    return RunResult(
        run=replace(new, resumed=(*old.resumed, part), started_at=old.started_at),
        finished=kept,
        compared=tuple(item for item in earlier.compared if item.scenario in ids),
        diagnostics={name: texts for name, texts in earlier.diagnostics.items() if name in ids},
        footer=None,
    )


def _seconds(earlier: RecordedRun, own: list[ScenarioFinished]) -> float:
    """How long the last of the earlier runs took, as far as its file shows."""
    if earlier.footer is not None:
        before = sum(part.seconds for part in earlier.run.resumed)
        return max(0.0, round(earlier.footer.seconds - before, 6))
    times = [event for event in own if event.started_at]
    if not times:
        return 0.0
    first, last = min(event.started_at for event in times), times[-1]
    return round(seconds_between(first, last.started_at) + max(0.0, last.seconds), 6)


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
