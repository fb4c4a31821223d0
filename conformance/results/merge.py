"""Join result files: those of the shards of one plan, or of a run and of what resumes it.

A scenario of a shard whose file is missing, or ends before it, is lost: planned, and never
reported. Files that are not of one plan are refused, because their sum would say nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from conformance.digest import set_digest, text_digest
from conformance.jsondiff import differences, json_text
from conformance.results.events.result import RunResult
from conformance.results.events.run import (
    SECOND_CLUSTER,
    Merged,
    MergedPart,
    ResumedPart,
    RunFinished,
    RunStarted,
    ShardPlan,
)
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished, count
from conformance.results.read import RecordedRun, load_results, result_file
from conformance.results.times import end_of, rounded_up, seconds_between
from conformance.results.write import (
    FILE_NAME,
    RESUMING,
    Json,
    from_line,
    header_line,
    results_digest,
    to_line,
)
from conformance.scenario.selection import Selection
from kube.base.errors import UsageError
from kube.base.redaction import redact_json

OWN_OPTIONS = ("name", "workers", SECOND_CLUSTER)
"""Options in which the shards of one plan may differ: each may have a cluster of its own."""

TELLING = ("$.suiteVersion", "$.target", "$.kubernetesVersion", "$.driver", "$.shards")
"""Differences that are reported first, because others follow from them."""


def merge(files: Sequence[RecordedRun]) -> RunResult:
    """The runs of shards as one, in whatever order. Raises UsageError: they are not of one plan."""
    by_index: dict[int, RecordedRun] = {}
    for item in files:
        shard = _shard(item)
        if other := by_index.get(shard.index):
            raise UsageError(
                f"{item.where('header')}: is of shard {shard.index}, and so is {other.path};"
                " give one file of each shard"
            )
        by_index[shard.index] = item
    parts = [item for _, item in sorted(by_index.items())]
    for item in parts[1:]:
        _check_same(parts[0], item)
    merged = Merged(_shard(parts[0]).count, tuple(map(_part, parts)))
    plan = _plan(parts, merged)
    run = merged_id(merged)
    events = [event for item in parts for event in item.finished]
    first = parts[0].run
    return RunResult(
        run=replace(
            first,
            run=run,
            planned=plan,
            scenario_set_digest=set_digest(plan),
            started_at=min(item.run.started_at for item in parts),
            shard=None,
            merged=merged,
            resumed=(),
        ),
        finished=tuple(events),
        compared=tuple(event for item in parts for event in item.compared),
        diagnostics={name: texts for item in parts for name, texts in item.diagnostics.items()},
        footer=_footer(run, parts),
    )


def merged_id(merged: Merged) -> str:
    """The id of a merged result, a digest of its parts' digests."""
    digests = "".join(f"{part.index} {part.digest}\n" for part in merged.parts)
    return f"merged-{text_digest(digests).removeprefix('sha256:')[:8]}"


def _shard(item: RecordedRun) -> ShardPlan:
    if item.run.shard is not None:
        return item.run.shard
    what = "a merged result" if item.run.merged else "a whole run's"
    raise UsageError(
        f"{item.where('header')}: is {what}; give the result files of runs with --shard"
    )


def _part(item: RecordedRun) -> MergedPart:
    run = item.run
    ids = tuple(sorted(scenario.id for scenario in run.planned))
    return MergedPart(
        _shard(item).index, run.run, results_digest(item, frozenset(ids)), ids, run.resumed
    )


def _check_same(first: RecordedRun, other: RecordedRun) -> None:
    """Check that two shards are of one plan, on targets that are alike. Raises UsageError."""
    if (found := difference(first.run, other.run)) is None:
        return
    path, one, two = found
    raise UsageError(
        f"{other.where('header')}: {path} is {two}, in {first.path} it is {one}; only shards of one"
        " plan can be merged: the same suite, scenarios, options and driver, on clusters that are"
        " alike"
    )


def difference(
    first: RunStarted, other: RunStarted, own: Collection[str] = OWN_OPTIONS
) -> tuple[str, str, str] | None:
    """The most telling difference of two headers that should be of one plan: path, both values."""
    found = list(differences(_common(first, own), _common(other, own)))
    if not found:
        return None
    path, one, two = min(found, key=lambda item: item[0] not in TELLING)
    return path, json_text(one, 100), json_text(two, 100)


def _common(run: RunStarted, own_options: Collection[str]) -> Json:
    """The part of a header that all runs of a plan have in common."""
    line = to_line(replace(run, planned=(), shard=None, resumed=()))
    for own in ("run", "startedAt", "scenarioSetDigest"):
        del line[own]
    for own in own_options:
        line["options"].pop(own, None)
    line["shards"] = run.shard.count if run.shard else 1
    line["scenarios"] = {item.id: item.digest for item in run.whole_plan}
    return line


def _plan(parts: Sequence[RecordedRun], merged: Merged) -> tuple[PlannedScenario, ...]:
    """The whole plan, sorted. Raises UsageError: a scenario is in two shards, or in none."""
    owner: dict[str, RecordedRun] = {}
    for item in parts:
        for scenario in item.run.planned:
            if other := owner.get(scenario.id):
                raise UsageError(
                    f"{item.where('header')}: has {scenario.id}, and so has {other.path}; the"
                    " files are not of one plan"
                )
            owner[scenario.id] = item
    whole = sorted(parts[0].run.whole_plan, key=lambda item: item.id)
    nowhere = [item.id for item in whole if item.id not in owner]
    if nowhere and not merged.missing:
        raise UsageError(
            f"{parts[0].where('header')}: plans {nowhere[0]}, which no shard runs; the files are"
            " not of one plan"
        )
    return tuple(whole)


def _footer(run: str, parts: Sequence[RecordedRun]) -> RunFinished:
    ended = [item.footer for item in parts if item.footer is not None]
    finished_at = max(map(_finished_at, parts))
    began = min(item.run.started_at for item in parts)
    return RunFinished(
        run=run,
        counts=count([event for item in parts for event in item.finished]),
        finished_at=finished_at,
        seconds=seconds_between(began, finished_at),
        interrupted=any(item.interrupted for item in parts),
        left=tuple(name for item in ended for name in item.left),
        terminating=tuple(name for item in ended for name in item.terminating),
        memory=_most_of_any([item.memory for item in ended]),
    )


def _most_of_any(memories: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return of each name the largest number: shards may have run on one machine or on several."""
    names = sorted({name for memory in memories for name in memory})
    return {name: max(memory.get(name, 0) for memory in memories) for name in names}


def _finished_at(part: RecordedRun) -> str:
    """When a run ended; of one that was killed, when the last of its scenarios did."""
    if part.footer is not None:
        return part.footer.finished_at
    began = [event for event in part.finished if event.started_at]
    try:
        ends = [rounded_up(end_of(event.started_at, event.seconds)) for event in began]
    except ValueError:  # `verify` says which
        ends = []
    return max([part.run.started_at, *ends])


OTHER_OPTIONS = (*OWN_OPTIONS, "config", "runTimeout")
"""Options that may be others after the interruption; what a file with options gave is compared."""


def to_resume(folder: Path) -> RecordedRun:
    """The run of a folder, or the one that resumed it and was killed. Raises UsageError: none."""
    file = next((folder / name for name in (RESUMING, FILE_NAME) if (folder / name).exists()), None)
    if file is None or not file.stat().st_size:
        raise UsageError(
            f"--resume {folder}: nothing to resume: no run has written a result there; check"
            " the folder, or leave --resume out"
        )
    run = load_results(file, truncated_ok=True)
    if not run.interrupted and not run.outcomes[Outcome.LOST]:
        raise UsageError(
            f"--resume {folder}: nothing to resume: the run {run.run.run} ended, and each of its"
            f" {len(run.run.planned)} scenarios has a result; leave --resume out to run them again,"
            f" or make missing reports with `dra-conformance render {folder} -o OTHER_FOLDER`"
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
    options, elsewhere = dict(new.options), old.options.get(SECOND_CLUSTER)
    if isinstance(elsewhere, list):  # a file's: it may be anything
        options[SECOND_CLUSTER] = [name for name in sorted(ids) if name in elsewhere]
    return RunResult(
        run=replace(new, resumed=(*old.resumed, part), started_at=old.started_at, options=options),
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
