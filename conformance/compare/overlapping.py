"""A verdict that says what an overlap says already is joined with it: it counts once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.compare.evidence import key_of
from conformance.engine.verdicts import Judgement, Verdict
from conformance.targets.overlaps import Overlap, exclusive_devices

_RULE = "in-use:"


def joined(
    judgement: Judgement, decision: Mapping[str, Any], overlaps: Sequence[Overlap]
) -> Judgement:
    """``overlapping`` where all that is wrong is that a device went to these claims as well.

    Args:
        judgement: of the decision.
        decision: ``targets.base.Decision`` as JSON, found to be well formed when it was judged.
        overlaps: what the watch of claims found.
    """
    if judgement.verdict.conformant or not judgement.violations:
        return judgement
    if not all(text.startswith(_RULE) for text in judgement.violations):
        return judgement
    links = {
        (item.claim, item.driver, item.pool, item.device): overlap
        for overlap in overlaps
        for item in overlap.chain
    }
    found = [
        links[key]
        for claim, allocation in zip(decision["claims"], decision["allocations"], strict=True)
        for device in sorted(exclusive_devices({"status": {"allocation": allocation}}))
        if (key := ("/".join(key_of(claim)), *device)) in links
    ]
    if len(found) < len(judgement.violations):
        return judgement
    return replace(judgement, verdict=Verdict.OVERLAPPING, reason=str(found[0]))
