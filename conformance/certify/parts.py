"""Where a result file contradicts what it says of the runs that it was made of."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.certify.codes import Finding
from conformance.engine.events.result import RunResult
from conformance.engine.events.run import MergedPart, RunStarted
from conformance.engine.events.scenario import Outcome
from conformance.resultfile.merge import merged_id
from conformance.scenario.driver.variables import namespace, suffix


def parts(run: RunStarted) -> Iterator[Finding]:
    """Whether the parts of a merged result are a whole, or a shard is a part of one."""
    if run.shard is not None and not 1 <= run.shard.index <= run.shard.count:
        yield "shard-number", f"the header says shard {run.shard.index} of {run.shard.count}"
    if run.merged is None:
        return
    if run.shard is not None:
        yield "shard-and-merged", "the header describes a shard and a merged result"
    if run.run != (right := merged_id(run.merged)):
        yield "merged-run-id", f"the run's id is {run.run}, that of its parts is {right}"
    indexes = [part.index for part in run.merged.parts]
    if sorted(set(indexes)) != indexes or not set(indexes) <= {*range(1, run.merged.count + 1)}:
        yield "merged-parts", f"its parts are shards {indexes} of {run.merged.count}"
    there, planned = sum(part.scenarios for part in run.merged.parts), len(run.planned)
    if there > planned or (there < planned and not run.merged.missing):
        yield "merged-scenarios", f"its parts have {there} scenarios, {planned} were planned"


def resumed(result: RunResult) -> Iterator[Finding]:
    """Whether each result is of the run that it is said to be of, or kept of one that it resumed.

    A namespace's name is made of the run's id and the scenario's.
    """
    run = result.run
    ended = {event.scenario.id: event for event in result.finished}
    owner = {} if run.merged else dict.fromkeys(ended, run.run)
    sources: list[RunStarted | MergedPart] = [run, *(run.merged.parts if run.merged else ())]
    kept: set[str] = set()
    for part in sources:
        runs = [*(item.run for item in part.resumed), part.run]
        if len(set(runs)) < len(runs):
            yield "resumed-by-itself", f"a run is resumed by itself: {', '.join(runs)}"
        for item in part.resumed:
            for name in item.scenarios:
                if name in kept:
                    yield "kept-twice", f"{name} is kept of run {item.run}, and of another"
                if name not in ended or ended[name].outcome is Outcome.LOST:
                    yield (
                        "kept-without-result",
                        f"{name} is kept of run {item.run}, and has no result",
                    )
                kept.add(name)
            owner |= dict.fromkeys(item.scenarios, item.run)
    before = sum(item.seconds for item in run.resumed)
    if result.footer is not None and result.footer.seconds < before:
        yield (
            "resumed-time",
            f"the runs before took {before:g} s, all of them {result.footer.seconds:g} s",
        )
    for name, by in owner.items():
        event = ended.get(name)
        if event is None or not event.namespace:
            continue
        attempt = f"{name}#{len(event.attempts)}" if event.attempts else name
        if event.namespace != (right := namespace(suffix(by, attempt))):
            yield (
                "namespace-of-another-run",
                f"{name} ran in {event.namespace}; of run {by} it would be {right}",
            )
