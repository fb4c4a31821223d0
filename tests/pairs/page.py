"""The page pairs.md: each pair of features with its scenarios, or with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field

from conformance.scenario.loader import LoadedScenario
from tests.pairs.uses import FEATURES, meetings

REASONS: Final = Path(__file__).with_name("reasons.yaml")

Pair = tuple[str, str]
"""Two features in the order of `FEATURES`."""

PAIRS: Final[Sequence[Pair]] = tuple(combinations(FEATURES, 2))


class Reason(BaseModel):
    """Why a feature and each of some others have no scenario together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    feature: str
    beside: tuple[str, ...] = Field(min_length=1)
    says: Annotated[str, Field(min_length=20)]
    open: bool = False
    """They do meet, and a scenario is missing."""

    @property
    def pairs(self) -> Iterable[Pair]:
        """Raises ValueError: a feature is not known."""
        for other in self.beside:
            first, second = sorted((self.feature, other), key=FEATURES.index)
            yield first, second


def read_reasons() -> dict[Pair, Reason]:
    """Raises ValueError: a pair has two reasons, or a feature is not known."""
    found: dict[Pair, Reason] = {}
    for row in yaml.safe_load(REASONS.read_text(encoding="utf-8")):
        reason = Reason.model_validate(row)
        for pair in reason.pairs:
            if pair in found:
                raise ValueError(f"{REASONS.name}: two reasons for {' and '.join(pair)}")
            found[pair] = reason
    return found


def scenarios_of_pairs(scenarios: Iterable[LoadedScenario]) -> dict[Pair, list[str]]:
    """Pair -> ids of the scenarios that have a pod in which both features meet."""
    found: dict[Pair, set[str]] = {}
    for loaded in scenarios:
        for features in meetings(loaded):
            for pair in combinations(sorted(features, key=FEATURES.index), 2):
                found.setdefault(pair, set()).add(loaded.id)
    return {pair: sorted(names) for pair, names in found.items()}


_HEAD: Final = """\
# Pairs of features

Field defects sit where features meet. Of {pairs} pairs of the features that are on in Kubernetes
1.37, or have rules of their own in the core, {met} meet in a scenario. {apart} cannot meet, or
nothing of their own happens where they do; {open} have no scenario yet.

Generated from what scenarios do: their manifests, patches and expectations,
pod by pod. Two features meet in a pod if its claims, extended resources, devices, classes or taint
rules use both ([uses.py](../tests/pairs/uses.py)). That a scenario notices when the meeting breaks
is shown by the [kill matrix](kill-matrix.md), with the defects of `tests/mutants/pairs/`.

A number is that of scenarios, a dot means a reason below, `?` that a scenario is missing.
"""


def page(found: Mapping[Pair, Sequence[str]], reasons: Mapping[Pair, Reason]) -> str:
    """The page, in Markdown."""
    missing = sum(reasons[pair].open for pair in PAIRS if pair in reasons)
    met = sum(pair in found for pair in PAIRS)
    apart = len(PAIRS) - met - missing
    head = _HEAD.format(pairs=len(PAIRS), met=met, apart=apart, open=missing)
    lines = [head, *_matrix(found, reasons), "\n## Scenarios of a pair\n\n"]
    for pair in PAIRS:
        if pair in found:
            links = ", ".join(f"[{_short(name)}](../scenarios/{name}.yaml)" for name in found[pair])
            lines.append(f"- {' x '.join(pair)}: {links}\n")
    lines.append("\n## Pairs without a scenario\n\n")
    for reason in dict.fromkeys(reasons[pair] for pair in PAIRS if pair in reasons):
        note = "**missing**: " if reason.open else ""
        lines.append(f"- {reason.feature} x {', '.join(reason.beside)}: {note}{reason.says}\n")
    return "".join(lines)


def _matrix(found: Mapping[Pair, Sequence[str]], reasons: Mapping[Pair, Reason]) -> Iterable[str]:
    numbers = range(1, len(FEATURES) + 1)
    yield f"\n| | {' | '.join(map(str, numbers))} |\n"
    yield f"|---|{'---|' * len(FEATURES)}\n"
    for number, row in zip(numbers, FEATURES, strict=True):
        cells = [_cell(row, column, found, reasons) for column in FEATURES]
        yield f"| {number} {row} | {' | '.join(cells)} |\n"


def _cell(
    row: str, column: str, found: Mapping[Pair, Sequence[str]], reasons: Mapping[Pair, Reason]
) -> str:
    if row == column:
        return ""
    first, second = sorted((row, column), key=FEATURES.index)
    names = found.get((first, second))
    if names:
        return str(len(names))
    reason = reasons.get((first, second))
    return "?" if reason is None or reason.open else "·"


def _short(name: str) -> str:
    return name.rpartition("/")[2]
