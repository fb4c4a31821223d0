"""Join the result files of the shards of one plan, and find what was lost.

A scenario of a shard whose file is missing, or ends before it, is lost: planned, and never
reported. Files that are not of one plan are refused, because their sum would say nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from conformance.digest import set_digest, text_digest
from conformance.engine.events.result import RunResult
from conformance.engine.events.run import Merged, MergedPart, RunFinished, RunStarted, ShardPlan
from conformance.engine.events.scenario import PlannedScenario, count
from conformance.errors import UsageError
from conformance.jsondiff import differences, json_text
from conformance.resultfile.lines import Json, to_line
from conformance.resultfile.read import RecordedRun

OWN_OPTIONS = ("name", "workers")
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
    return MergedPart(_shard(item).index, run.run, item.digest, len(run.planned), run.resumed)


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
    finished_at = max([item.finished_at for item in ended] or [parts[0].run.started_at])
    began = min(item.run.started_at for item in parts)
    return RunFinished(
        run=run,
        counts=count([event for item in parts for event in item.finished]),
        finished_at=finished_at,
        seconds=seconds_between(began, finished_at),
        interrupted=any(item.interrupted for item in parts),
        left=tuple(name for item in ended for name in item.left),
        terminating=tuple(name for item in ended for name in item.terminating),
    )


def seconds_between(began: str, ended: str) -> float:
    """Seconds between two times of result files; 0 where one of them is no time."""
    try:
        passed = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
        return max(0.0, passed.total_seconds())
    except (ValueError, TypeError):
        return 0.0
