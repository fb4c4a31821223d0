"""One HTML file from a result file: to be mailed, kept as a CI artefact, opened without a server.

It needs nothing from elsewhere: no script, no style sheet, no font, and says so to the browser with
a content security policy. Everything that came from a target is escaped by the template engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.engine.events import Outcome, PlannedScenario, ScenarioFinished
from conformance.redaction import redact, redact_json
from conformance.resultfile.read import RunResult, by_outcome
from conformance.text import shorten, visible

MAX_CHARACTERS = 200_000
"""Of one attachment; the result file has it whole."""


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario as the template shows it."""

    scenario: PlannedScenario
    outcome: Outcome
    finished: ScenarioFinished | None
    verdict: str
    attachments: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, bool], ...]


def render_html(result: RunResult) -> str:
    """The page as text; the same result gives the same page."""
    environment = Environment(
        loader=PackageLoader("conformance.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["fit"] = _fit
    rows = sorted(_rows(result), key=lambda row: row.scenario.id)
    return environment.get_template("report.html.j2").render(
        run=result.run,
        rows=rows,
        counts={str(key): value for key, value in result.counts.items()},
        footer=result.footer,
        compared=result.comparison is not None,
        digest=result.digest,
    )


def _rows(result: RunResult) -> Iterator[Row]:
    outcomes = by_outcome(result.run.planned, result.finished)
    outcome_of = {name: outcome for outcome, names in outcomes.items() for name in names}
    finished = {event.scenario.id: event for event in result.finished}
    verdicts = verdicts_of(result.comparison)
    for scenario in result.run.planned:
        event = finished.get(scenario.id)
        yield Row(
            scenario=scenario,
            outcome=outcome_of[scenario.id],
            finished=event,
            verdict=verdicts.get(scenario.id, "-"),
            attachments=tuple(_attachments(event, result.diagnostics.get(scenario.id, {}))),
            links=tuple(
                (item, item.startswith(("https://", "http://"))) for item in scenario.references
            ),
        )


def verdicts_of(comparison: Mapping[str, Any] | None) -> dict[str, str]:
    """Scenario id -> worst verdict, from ``Comparison.to_json()``."""
    scenarios = comparison.get("scenarios", []) if comparison else []
    return {item["id"]: item["verdict"] for item in scenarios if item.get("verdict")}


def _attachments(
    event: ScenarioFinished | None, diagnostics: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    yield from sorted(diagnostics.items())
    if event is not None and event.decisions:
        yield "decisions", json.dumps(redact_json(list(event.decisions)), indent=1, sort_keys=True)


def _fit(text: object) -> str:
    return shorten(visible(redact(str(text))), 5_000, MAX_CHARACTERS)
