"""The event of a comparison with the reference; ``conformance.compare`` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field, with_config
from pydantic.alias_generators import to_camel

recorded = with_config(
    ConfigDict(extra="forbid", alias_generator=to_camel, validate_by_name=True, allow_inf_nan=False)
)
"""Marks a value of the result file: in camelCase, without other fields."""

Seconds = Annotated[float, Field(ge=0)]
"""A duration in a result file."""

MAX_NOTES = 5
"""Differences of one scenario that are shown; the result file has all."""


class Verdict(StrEnum):
    """What the comparison says of one decision, from best to worst."""

    IDENTICAL = "identical"
    """The reference picks the same devices on that node."""

    ADMISSIBLE = "admissible"
    """Other devices than the reference would pick, and every rule holds."""

    OVERLAPPING = "overlapping"
    """Another claim has the device, and no other rule is broken: reported once, as the overlap."""

    MISSED = "missed"
    """Left pending, though the reference finds an allocation."""

    INADMISSIBLE = "inadmissible"
    """A rule is broken."""

    IMPOSSIBLE = "impossible"
    """Allocated, though the reference proves that there is no allocation on that node."""

    @property
    def conformant(self) -> bool:
        """Whether a conformant target may get this verdict; overlaps are counted by themselves."""
        return self in (Verdict.IDENTICAL, Verdict.ADMISSIBLE, Verdict.OVERLAPPING)

    @property
    def rank(self) -> int:
        """0 for the best, 5 for the worst."""
        return list(Verdict).index(self)


@recorded
@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its reasons.

    Attributes:
        reason: one sentence; names the first broken rule, if any.
        violations: every broken rule, in words.
        reference_allocation: the reference's ``status.allocation`` of each claim; None where it
            finds none, or the same.
        pod: empty for one that stayed pending.
        node: for ``missed`` the one the reference would choose.
    """

    verdict: Verdict
    reason: str
    violations: tuple[str, ...] = ()
    reference_allocation: tuple[Mapping[str, Any], ...] | None = None
    pod: str = ""
    node: str = ""

    @property
    def only_in_use(self) -> bool:
        """Whether all that is wrong is that another claim has a device."""
        return bool(self.violations) and all(map(_is_in_use, self.violations))


def _is_in_use(violation: str) -> bool:
    return violation.startswith("in-use:")


@recorded
@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between what was observed on target and reference.

    Attributes:
        step: index of the step from 0; None for the outcome of the whole scenario.
        title: the step's title, or ``outcome``.
        path: in the step's observations, for example ``$[0].relation``.
        target, reference: what was observed, as JSON text; ``<nothing>`` where nothing was.
    """

    step: int | None
    title: str
    path: str
    target: str
    reference: str

    def __str__(self) -> str:
        return f"{self.title}: {self.path} is {self.target}, on the reference {self.reference}"


@recorded
@dataclass(frozen=True, slots=True)
class ScenarioCompared:
    """The comparison of a scenario; comes just before its ScenarioFinished.

    Attributes:
        scenario: its id.
        judgements: of the target's decisions in order, then of what it wrongly left pending.
        problems: what could not be judged, and why; each makes the run inconclusive.
        explained: rule of `conformance.compare.accounts` -> how many lines of the accounts of both
            differ for its reason.
    """

    scenario: str
    judgements: tuple[Judgement, ...] = ()
    differences: tuple[Difference, ...] = ()
    problems: tuple[str, ...] = ()
    explained: Mapping[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict, None if nothing was allocated."""
        return max((item.verdict for item in self.judgements), key=lambda v: v.rank, default=None)

    @property
    def conformant(self) -> bool:
        return all(item.verdict.conformant for item in self.judgements)

    @property
    def in_short(self) -> str:
        """The verdict in a line, with a hint at differences and problems."""
        hints = ["differs"] * bool(self.differences) + ["not judged in full"] * bool(self.problems)
        if self.verdict is None:
            return ", ".join(hints)
        return ", ".join([f"allocations {self.verdict}" if hints else str(self.verdict), *hints])

    @property
    def notes(self) -> tuple[str, ...]:
        """Verdicts against a rule, what was not judged, and differences, in words."""
        lines = [
            f"{item.verdict}: {f'pod {item.pod}: ' if item.pod else ''}{item.reason}"
            for item in self.judgements
            if not item.verdict.conformant
        ]
        lines += [f"not judged: {problem}" for problem in self.problems]
        lines += [f"differs: {item}" for item in self.differences[:MAX_NOTES]]
        if self.differences[MAX_NOTES:]:
            lines.append(f"and {len(self.differences) - MAX_NOTES} more differences")
        return tuple(lines)
