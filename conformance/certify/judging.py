"""The comparison of a result file, read strictly and judged again from its decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from conformance.compare.compare import Comparison, compare_scenario
from conformance.compare.judging import Verdict, Witness
from conformance.engine.events import Outcome, ScenarioFinished


class _Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class ComparedScenario(_Strict):
    """``ScenarioComparison.to_json``."""

    id: str
    level: str
    verdict: Verdict | None
    counts: dict[Verdict, int]
    outcome: Outcome
    reference_outcome: Outcome | None
    judgements: tuple[dict[str, Any], ...]
    differences: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]


class ComparedRun(_Strict):
    """``Comparison.to_json``."""

    conformant: bool
    counts: dict[Verdict, int]
    differences: int
    scenarios: tuple[ComparedScenario, ...]


def read_comparison(document: Mapping[str, Any]) -> ComparedRun:
    """The comparison as values.

    Raises:
        ValueError: it has not the form that a run writes; says where.
    """
    try:
        return ComparedRun.model_validate(document)
    except ValidationError as error:
        item = error.errors(include_url=False, include_input=False)[0]
        path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in item["loc"])
        raise ValueError(f"the comparison is malformed: ${path}: {item['msg']}") from None


def rejudged(
    document: Mapping[str, Any],
    finished: Sequence[ScenarioFinished],
    witness: Witness | None = None,
) -> Iterator[str]:
    """Where a comparison is not what judging the decisions again gives, each in words.

    What the reference observed is not in a result file, so that differences and what the reference
    itself did not reach are believed.
    """
    try:
        claimed = read_comparison(document)
    except ValueError as error:
        yield str(error)
        return
    by_id = {item.id: item for item in claimed.scenarios}
    if len(by_id) != len(claimed.scenarios):
        yield "a scenario was compared twice"
    ended = {event.scenario.id for event in finished}
    for name in sorted(set(by_id) - ended):
        yield f"{name}: was compared, and has no result"
    again = []
    for event in sorted(finished, key=lambda event: event.scenario.id):
        name = event.scenario.id
        compared = compare_scenario(event, None, witness)
        again.append(compared)
        if name not in by_id:
            yield f"{name}: was not compared, though others were"
            continue
        for field, said, found in (
            ("outcome", by_id[name].outcome, event.outcome),
            ("level", by_id[name].level, event.scenario.level),
            ("counts", by_id[name].counts, compared.counts),
            ("verdict", by_id[name].verdict, compared.verdict),
        ):
            if said != found:
                yield (
                    f"{name}: the comparison's {field} are {_short(said)}, judged again"
                    f" {_short(found)}"
                )
        for problem in compared.problems:
            if problem not in by_id[name].problems:
                yield f"{name}: cannot be judged again: {problem}"
    yield from _totals(claimed, Comparison(tuple(again)))


def _totals(claimed: ComparedRun, again: Comparison) -> Iterator[str]:
    """Whether the sums are those of the scenarios."""
    differences = sum(len(item.differences) for item in claimed.scenarios)
    for field, said, found in (
        ("conformant", claimed.conformant, again.conformant),
        ("counts", claimed.counts, again.counts),
        ("differences", claimed.differences, differences),
    ):
        if said != found:
            yield f"the comparison's {field} of the run are {_short(said)}, not {_short(found)}"


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:197]}..."
