"""Whether a result file that joins several runs fits the runs that it names.

The runs of shards (``merge``) and a run with those that it resumed are each one file. What ties a
result to its run is its namespace, whose name is made of the ids of run and scenario
(:func:`conformance.scenario.driver.variables.suffix`); what ties a shard is a digest of all that is
recorded of its scenarios, and the run id of a merged result is made of these digests. The digest
of a run that was resumed is of a file that is gone, so that nothing here can check it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.certify.codes import Finding
from conformance.certify.values import find_repeated
from conformance.results.events.run import Merged, RunStarted
from conformance.results.merge import merged_id
from conformance.results.read import RecordedRun
from conformance.results.write import results_digest
from conformance.scenario.driver.variables import make_suffix, name_namespace


def joined_contradictions(result: RecordedRun) -> Iterator[Finding]:
    """Yield where the header's shards and resumed runs do not fit each other or the results."""
    run = result.run
    if twice := find_repeated(run.joined_runs):
        yield "joined-runs", f"run {twice[0]} is joined twice"
    for kept_by, kept_scenarios in _resumptions(run):
        if twice := find_repeated(kept_scenarios):
            yield "joined-runs", f"{twice[0]} was kept of two runs that {kept_by} resumed"
    if run.merged is not None:
        yield from _check_shards(result, run.merged)
    yield from _check_namespaces(result)


def _check_shards(result: RecordedRun, merged: Merged) -> Iterator[Finding]:
    run, shards = result.run, merged.parts
    indexes = [shard.index for shard in shards]
    if indexes != sorted(set(indexes)) or not indexes or indexes[-1] > merged.count:
        numbers = ", ".join(map(str, indexes)) or "none"
        yield "joined-runs", f"its shards are {numbers}, of {merged.count}, each to be there once"
    if run.run != (right := merged_id(merged)):
        yield "joined-runs", f"is run {run.run}, of its shards' digests it would be {right}"
    dealt = [name for shard in shards for name in shard.scenarios]
    if twice := find_repeated(dealt):
        yield "joined-runs", f"{twice[0]} is a scenario of two shards"
    plan = {item.id for item in run.planned}
    if foreign := set(dealt) - plan:
        yield "joined-runs", f"shards have {_join_some(foreign)}, which the run did not plan"
    nobodys = plan - set(dealt)
    if not merged.missing and nobodys:
        yield "joined-runs", f"no shard has {_join_some(nobodys)}"
    if reported := nobodys & {event.scenario.id for event in result.finished}:
        yield "joined-runs", f"there are results of {_join_some(reported)}, which no shard has"
    for shard in shards:
        if strange := {name for resumption in shard.resumed for name in resumption.scenarios} - {
            *shard.scenarios
        }:
            text = f"shard {shard.index} kept {_join_some(strange)}, which it has not"
            yield "joined-runs", text
        digest = results_digest(result, frozenset(shard.scenarios))
        if digest != shard.digest:
            text = f"the digest of shard {shard.index} is {shard.digest}, that of its results is"
            yield "joined-runs", f"{text} {digest}"


def _check_namespaces(result: RecordedRun) -> Iterator[Finding]:
    """Check that each result is of the run that it is said to be of, or was kept of one before."""
    run_of = _run_of_each(result.run)
    for event in result.finished:
        name = event.scenario.id
        if not event.namespace or name not in run_of:
            continue
        attempt = f"{name}#{len(event.attempts)}" if event.attempts else name
        if event.namespace != (right := name_namespace(make_suffix(run_of[name], attempt))):
            text = f"{name} ran in {event.namespace}; of run {run_of[name]} it would be {right}"
            yield "namespace-of-another-run", text


def _run_of_each(run: RunStarted) -> dict[str, str]:
    """Return scenario id -> id of the run that ended it; none for one that no shard has."""
    if run.merged is None:
        run_of = {item.id: run.run for item in run.planned}
    else:
        run_of = {name: dealt.run for dealt in run.merged.parts for name in dealt.scenarios}
    resumed = [*run.resumed]
    for shard in run.merged.parts if run.merged else ():
        resumed += shard.resumed
    for resumption in resumed:
        run_of |= dict.fromkeys(resumption.scenarios, resumption.run)
    return run_of


def _resumptions(run: RunStarted) -> Iterator[tuple[str, list[str]]]:
    """Yield each run that resumed others, in words, and what it kept of each of them."""
    yield "the run", [name for resumption in run.resumed for name in resumption.scenarios]
    for shard in run.merged.parts if run.merged else ():
        kept_scenarios = [name for resumption in shard.resumed for name in resumption.scenarios]
        yield f"shard {shard.index}", kept_scenarios


def _join_some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (", ..." if ordered[3:] else "")
