"""The conclusion of a run: one exit code, and why.

A failure counts whatever else happened. Without one, anything unknown (lost, broken, interrupted,
not judged) makes the run inconclusive; a skipped core scenario makes it partial, so that skipping
is no way to pass. "Nothing failed" alone is not a success: something must have passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.engine.requirements import is_in
from conformance.results.events.result import RunResult
from conformance.results.events.run import RunStarted
from conformance.results.events.scenario import Outcome
from kube.base.errors import ExitCode
from kube.base.text import counted


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion of a run, or of a part of it: the exit code, and why it is not conformant."""

    code: ExitCode
    reasons: tuple[str, ...] = ()


def conclude_run(result: RunResult) -> Conclusion:
    """Conclude a whole run; only core scenarios of its Kubernetes count as skipped."""
    version = result.run.kubernetes_version
    core = {
        item.id
        for item in result.run.planned
        if item.level == "core" and is_in(version, item.kubernetes)
    }
    skipped = sorted(
        core.intersection(result.outcomes[Outcome.SKIPPED]) - excused_scenarios(result).keys()
    )
    return conclude(result, skipped=skipped, noun="core scenario")


def excused_scenarios(result: RunResult) -> dict[str, str]:
    """Return skipped scenarios whose rule cannot exist for the driver -> why, by its profile.

    Id -> ``severalDevicesOnOneNode: a node has one network card``, in the order of the plan.
    """
    cannot = list_inabilities(result.run)
    skipped = set(result.outcomes[Outcome.SKIPPED])
    missing_abilities = {
        item.id: [name for name in item.needs if name in cannot] for item in result.run.planned
    }
    return {
        key: "; ".join(f"{name}: {cannot[name]}" for name in names)
        for key, names in missing_abilities.items()
        if names and key in skipped
    }


def list_inabilities(run: RunStarted) -> Mapping[str, str]:
    """Return what the driver cannot, by its profile -> why; empty if that has another form."""
    spec = (run.driver_profile or {}).get("spec")
    cannot = spec.get("cannot") if isinstance(spec, Mapping) else None
    return cannot if isinstance(cannot, Mapping) else {}


def conclude(
    result: RunResult,
    *,
    skipped: Sequence[str] = (),
    not_selected: Sequence[str] = (),
    noun: str = "scenario",
) -> Conclusion:
    """Conclude a run or a conformance report, by the one rule for both.

    ``skipped`` are ids of scenarios that must not be skipped and were, ``not_selected`` of those
    that count and were not planned; ``noun`` is what they are.
    """
    outcomes = result.outcomes
    against = [row.scenario.id for row in result.scenarios if row.against_rules]
    if outcomes[Outcome.FAILED] or against:
        return Conclusion(
            ExitCode.NOT_CONFORMANT,
            _reasons(
                (outcomes[Outcome.FAILED], "failed"),
                (against, "with an allocation against the rules"),
            ),
        )
    unknown = _reasons(
        (outcomes[Outcome.ERROR], "broke off with an error"),
        (outcomes[Outcome.LOST], "lost: planned, and never reported"),
        (outcomes[Outcome.FLAKY], "flaky: passed only when tried again"),
        ([item.scenario for item in result.compared if item.problems], "not judged"),
    )
    if result.interrupted:
        unknown += ("the run was interrupted",)
    if result.run.merged is not None and (missing := result.run.merged.missing):
        unknown += (f"{counted(len(missing), 'shard')} missing: {', '.join(map(str, missing))}",)
    if result.left:
        unknown += ("something was left behind",)
    if unknown:
        return Conclusion(ExitCode.INCONCLUSIVE, unknown)
    partial = _reasons((skipped, "skipped"), (not_selected, "not selected"), noun=noun)
    if partial:
        return Conclusion(ExitCode.PARTIAL, partial)
    if not outcomes[Outcome.PASSED]:
        return Conclusion(ExitCode.INCONCLUSIVE, ("nothing ran and passed",))
    return Conclusion(ExitCode.CONFORMANT)


def _reasons(*lists: tuple[Sequence[str], str], noun: str = "scenario") -> tuple[str, ...]:
    """Return ``2 scenarios skipped`` for each list of ids that is not empty."""
    return tuple(f"{counted(len(ids), noun)} {outcome_text}" for ids, outcome_text in lists if ids)


def explain_uncertified(result: RunResult) -> tuple[str, ...]:
    """Return why a run certifies nothing, however well it went; empty where that is not so.

    A certificate is about a driver on a real cluster, and about every allocation there. What was
    seen of hardware is said apart from it.
    """
    run = result.run
    reasons = []
    if run.shard is not None:
        other_scenarios = counted(len(run.shard.others), "scenario")
        reasons.append(
            f"the run is shard {run.shard.index} of {run.shard.count}, and {other_scenarios} are in"
            " others; `dra-conformance merge` joins them"
        )
    if run.target == "reference":
        reasons.append("the run was on the suite's own reference, not on a cluster")
    if run.time_factor != 1:
        reasons.append(f"time limits were multiplied by {run.time_factor:g}")
    if not run.compared:
        reasons.append("no allocation was judged: the run was not compared with the reference")
    return tuple(reasons)
