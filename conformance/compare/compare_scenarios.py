"""Compare a scenario with the same on the reference.

Two questions, kept apart. Does every allocation of the target keep the rules? That decides on
conformance. And did the scenario see the same on both targets? Admissible freedom may show in what
a scenario sees, so a difference is only reported, and only an outcome that the reference itself
does not reach makes the comparison inconclusive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.compare.accounts import compare_accounts
from conformance.compare.demands import list_unrecorded
from conformance.compare.evidence import full_name
from conformance.compare.judging import judge, judge_undecided
from conformance.compare.witness import REFERENCE, Witness
from conformance.jsondiff import differences, json_text
from conformance.results.events.comparison import Difference, Judgement, ScenarioCompared, Verdict
from conformance.results.events.scenario import Outcome, ScenarioFinished, StepFinished
from conformance.seam.overlaps import Overlap, exclusive_devices
from kube.base.errors import ConformanceError
from kube.base.text import cut

MAX_DIFFERENCES = 100  # The most that are kept of one scenario.


def compare_with(
    reference: Sequence[ScenarioFinished], witness: Witness = REFERENCE
) -> Callable[[ScenarioFinished], ScenarioCompared]:
    """Return what judges each scenario of a target as it ends (``engine.setup.Setup.compare``)."""
    by_id = {event.scenario.id: event for event in reference}
    return lambda ended: compare_scenario(ended, by_id.get(ended.scenario.id), witness)


def compare_scenario(
    target: ScenarioFinished,
    reference: ScenarioFinished | None = None,
    witness: Witness = REFERENCE,
) -> ScenarioCompared:
    """Judge every decision of a scenario, and compare what it saw with the reference, if known."""
    judgements: list[Judgement] = []
    problems: list[str] = []
    for number, decision in enumerate(target.decisions):
        try:
            judgements.append(_with_overlaps(judge(decision, witness), decision, target.overlaps))
        except ConformanceError as error:
            problems.append(f"decision {number}: {error}")
    for number, snapshot in enumerate(target.undecided):
        try:
            missed = judge_undecided(snapshot, witness)
        except ConformanceError as error:
            problems.append(f"undecided {number}: {error}")
        else:
            if missed is not None:
                judgements.append(missed)
    try:
        problems.extend(list_unrecorded(target))  # what was not recorded is not judged
    except ConformanceError as error:
        problems.append(f"what it must have recorded is not known: {error}")
    differing: tuple[Difference, ...] = ()
    explained: Mapping[str, int] = {}
    if reference is not None:
        differing = compare_observations(target, reference)
        if _have_the_same_outcome(target, reference):
            said, explained = compare_accounts(target.account, reference.account)
            differing = (*differing, *said)[:MAX_DIFFERENCES]
        if _was_observed(target) and reference.outcome in (Outcome.FAILED, Outcome.ERROR):
            problems.append(f"the reference itself {_describe_ending(reference)}")
    return ScenarioCompared(
        scenario=target.scenario.id,
        judgements=tuple(judgements),
        differences=differing,
        problems=tuple(problems),
        explained=explained,
    )


def _have_the_same_outcome(target: ScenarioFinished, reference: ScenarioFinished) -> bool:
    """Return whether both went the same way; else all that was said after the fork may differ."""
    return _was_observed(target) and target.outcome is reference.outcome


def _describe_ending(event: ScenarioFinished) -> str:
    verb = "fails" if event.outcome is Outcome.FAILED else "breaks"
    return f"{verb} ({cut(event.message.partition(chr(10))[0], 200)})" if event.message else verb


def compare_observations(
    target: ScenarioFinished, reference: ScenarioFinished
) -> tuple[Difference, ...]:
    """Return where a scenario's outcome or observations differ, in the order of its steps.

    A scenario that was skipped or lost on either side was not observed there, and is not compared.
    Steps that one side did not reach follow from the outcome and are not listed one by one.
    """
    if not _was_observed(target) or not _was_observed(reference):
        return ()
    differing: list[Difference] = []
    if target.outcome is not reference.outcome:
        differing.append(
            Difference(None, "outcome", "$", str(target.outcome), str(reference.outcome))
        )
    for target_step, reference_step in zip(target.steps, reference.steps, strict=False):
        differing.extend(_compare_step(target_step, reference_step))
        if len(differing) >= MAX_DIFFERENCES:
            break
    return tuple(differing[:MAX_DIFFERENCES])


def _was_observed(finished: ScenarioFinished) -> bool:
    return finished.outcome not in (Outcome.SKIPPED, Outcome.LOST)


def _compare_step(target: StepFinished, reference: StepFinished) -> Iterator[Difference]:
    title = reference.title
    if target.title != title:
        yield Difference(target.index, title, "title", json_text(target.title), json_text(title))
    pairs = differences([*target.observed], [*reference.observed])
    for path, target_value, reference_value in pairs:
        yield Difference(
            target.index, title, path, json_text(target_value), json_text(reference_value)
        )


def _with_overlaps(
    judgement: Judgement, decision: Mapping[str, Any], overlaps: Sequence[Overlap]
) -> Judgement:
    """Return the judgement, `OVERLAPPING` where all that is wrong is that a device is in use.

    The overlap reports that already, so that it counts once.
    """
    if judgement.verdict.conformant or not judgement.only_in_use:
        return judgement
    links = {
        (item.claim, item.driver, item.pool, item.device): overlap
        for overlap in overlaps
        for item in overlap.chain
    }
    found_overlaps = [
        links[key]
        for claim, allocation in zip(decision["claims"], decision["allocations"], strict=True)
        for device in sorted(exclusive_devices({"status": {"allocation": allocation}}))
        if (key := (full_name(claim), *device)) in links
    ]
    if len(found_overlaps) < len(judgement.violations):
        return judgement
    return replace(judgement, verdict=Verdict.OVERLAPPING, reason=str(found_overlaps[0]))
