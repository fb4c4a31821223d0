"""One HTML file from a result file: to be mailed, kept as a CI artefact, opened without a server.

It needs nothing from elsewhere: no script, no style sheet, no font, and says so to the browser with
a content security policy. Everything that came from a target is escaped by the template engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from conformance.compare.conclude import conclude_run, uncertified
from conformance.engine.events import Outcome, PlannedScenario, ScenarioFinished
from conformance.engine.verdicts import ScenarioCompared
from conformance.redaction import redact, redact_json
from conformance.report.summary import VERDICTS, by_feature
from conformance.resultfile.read import RecordedRun
from conformance.text import is_address, shorten, visible

MAX_CHARACTERS = 200_000
"""The most that is shown of one attachment; the result file has all of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario as the template shows it.

    Attributes:
        anchor: names it within the page.
        bad: whether it did not pass, or an allocation in it is against the rules.
        diagnostics: name -> text.
        links: each reference, and whether it is an address.
    """

    anchor: str
    scenario: PlannedScenario
    outcome: Outcome
    bad: bool
    finished: ScenarioFinished | None
    compared: ScenarioCompared | None
    diagnostics: Mapping[str, str]
    links: tuple[tuple[str, bool], ...]

    @property
    def attachments(self) -> Iterator[tuple[str, str]]:
        """Name and text; decisions hold snapshots, so their text is only made where it is shown."""
        yield from sorted(self.diagnostics.items())
        if self.finished is not None and self.finished.decisions:
            decisions = redact_json(list(self.finished.decisions))
            yield "decisions", json.dumps(decisions, indent=1, sort_keys=True)


def render_html(result: RecordedRun) -> str:
    """The page as text; the same result gives the same page."""
    return render("report.html.j2", result, {"fit": _fit})


def render(
    template: str, result: RecordedRun, filters: Mapping[str, Callable[[object], str]]
) -> str:
    """A template of this package, filled with what is to be said of a run.

    All text is escaped as HTML, except in Markdown: there the template puts it through its filters.
    """
    environment = Environment(
        loader=PackageLoader("conformance.report"),
        autoescape=select_autoescape(disabled_extensions=("md.j2",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(template).render(_values(result))


def _values(result: RecordedRun) -> dict[str, Any]:
    """What the page says, for a template: verdict, totals, features, scenarios."""
    rows = list(_rows(result))
    conclusion = conclude_run(result)
    return {
        "run": result.run,
        "verdict": VERDICTS[conclusion.code][0],
        "code": int(conclusion.code),
        "reasons": conclusion.reasons,
        "uncertified": uncertified(result),
        "counts": {str(outcome): len(ids) for outcome, ids in result.outcomes.items() if ids},
        "judged": {str(verdict): number for verdict, number in result.verdicts.items() if number},
        "features": {
            name: {str(outcome): number for outcome, number in counts.items()}
            for name, counts in by_feature(result).items()
        },
        "bad": [row for row in rows if row.bad],
        "good": [row for row in rows if not row.bad],
        "footer": result.footer,
        "digest": result.digest,
    }


def _rows(result: RecordedRun) -> Iterator[Row]:
    outcome_of = {name: outcome for outcome, ids in result.outcomes.items() for name in ids}
    finished = {event.scenario.id: event for event in result.finished}
    compared = {item.scenario: item for item in result.compared}
    planned = sorted(result.run.planned, key=lambda item: item.id)
    for number, scenario in enumerate(planned, start=1):
        name, outcome = scenario.id, outcome_of[scenario.id]
        event, judged = finished.get(name), compared.get(name)
        against = judged is not None and not judged.conformant
        yield Row(
            anchor=f"s{number}",
            scenario=scenario,
            outcome=outcome,
            bad=against or outcome not in (Outcome.PASSED, Outcome.SKIPPED),
            finished=event,
            compared=judged,
            diagnostics=result.diagnostics.get(name, {}),
            links=tuple((item, is_address(item)) for item in scenario.references),
        )


def _fit(text: object) -> str:
    return shorten(visible(redact(str(text))), 5_000, MAX_CHARACTERS)
