"""The reports made from a complete result file: HTML, and summaries in Markdown and JSON.

The HTML page can be mailed, kept as a CI artefact, opened without a server: it needs no script,
style sheet or font from elsewhere, and says so to the browser with a content security policy. The
summary is for the job page of a CI system: the verdict, what did not pass, and the features.

Text from a target forms no markup. In HTML the template engine escapes it; in Markdown it stands in
code, and what would end the code is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import escape

from conformance.compare.conclude import conclude_run, explain_uncertified
from conformance.report.drawing import Drawing, drawings_of
from conformance.report.files import diagnostics_folder, file_names
from conformance.report.folder import DIAGNOSTICS, HTML, RESULTS, SUMMARY, SUMMARY_JSON
from conformance.report.jsonsummary import render_json
from conformance.report.summary import VERDICTS, by_feature
from conformance.report.templating import build_environment, fit
from conformance.results.events.dispatch import ReportError
from conformance.results.events.result import ScenarioResult, count_verdicts
from conformance.results.read import RecordedRun, load_results
from kube.base.files import write_whole
from kube.base.redaction import redact, redacted_text
from kube.base.strictjson import loads
from kube.base.text import inline_code, is_address, shorten, visible

MAX_EVIDENCE = 1_500_000
"""Characters of evidence in the page: that of what did not pass, as far as it goes. All of it is in
files beside the page."""

_DRAWN_DEVICE = 400  # characters

PAGES = {"html": HTML, "markdown": SUMMARY, "json": SUMMARY_JSON}


def write_pages(
    output: Path, result: RecordedRun | None = None, formats: Collection[str] = tuple(PAGES)
) -> None:
    """Write the pages of a run, or of the folder's result file. Raises ReportError."""
    result = result or load_results(output / RESULTS)
    renderers = {"markdown": render_markdown, "json": render_json}
    for page in (name for name in PAGES if name in formats):
        name = PAGES[page]
        text = render_html(result, output) if page == "html" else renderers[page](result)
        try:
            write_whole(output / name, text.encode())
        except OSError as error:
            raise ReportError(
                f"{output / name}: cannot be written: {error.strerror}; the result file has all:"
                f" `dra-conformance render {output} -o OTHER_FOLDER`"
            ) from None


def render_html(result: RecordedRun, folder: Path | None = None) -> str:
    """Return the page; in a ``folder`` it links to the evidence that lies there."""
    room = _Room(MAX_EVIDENCE)
    filters: dict[str, Callable[..., Any]] = {
        "inline": room.of,
        "links": partial(_links, folder),
        "ending": _ending,
        "when": _when,
        "warnings": warnings_of,
        "drawings": room.drawings,
    }
    return _render("report.html.j2", result, filters)


class _Room:
    """What is left of the page for evidence."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def of(self, value: object) -> str:
        """Return the evidence as it is shown; "" where there is no room for it."""
        text = fit(value if isinstance(value, str) else redacted_text(value, 1))
        return text if self._takes(len(escape(text))) else ""

    def drawings(self, row: ScenarioResult) -> list[Drawing]:
        return [
            item
            for item in drawings_of(row)
            if self._takes(_DRAWN_DEVICE * sum(len(node.devices) + 1 for node in item.nodes))
        ]

    def _takes(self, characters: int) -> bool:
        takes = characters <= self._left
        self._left -= characters if takes else 0
        return takes


def _links(folder: Path | None, row: ScenarioResult) -> dict[str, str]:
    """Return a scenario's diagnostics -> their files beside the page, "" where not there."""
    names = file_names(row.diagnostics)
    folder_name = Path(DIAGNOSTICS) / diagnostics_folder(row.scenario.id)
    exists = folder is not None and (folder / folder_name).is_dir()
    return {name: str(folder_name / file) if exists else "" for name, file in names.items()}


def render_markdown(result: RecordedRun) -> str:
    return _render("summary.md.j2", result, {"code": _code, "block": _block})


def _render(template: str, result: RecordedRun, filters: Mapping[str, Callable[..., Any]]) -> str:
    templates = build_environment()
    templates.filters.update(filters)
    templates.tests["address"] = is_address
    conclusion = conclude_run(result)
    known_rows = [row for row in result.scenarios if row.known]
    bad = [row for row in result.scenarios if row.bad and not row.known]
    anchors = {
        row.scenario.id: f"s{number}" for number, row in enumerate([*bad, *known_rows], start=1)
    }
    return templates.get_template(template).render(
        run=result.run,
        verdict=VERDICTS[conclusion.code][0],
        code=int(conclusion.code),
        reasons=conclusion.reasons,
        uncertified=explain_uncertified(result),
        counts={str(outcome): len(ids) for outcome, ids in result.outcomes.items() if ids},
        judged={str(verdict): number for verdict, number in result.verdicts.items() if number},
        latency=result.latency,
        features=list(_features(result)),
        known_issues=result.known_issues,
        bad=bad,
        known=known_rows,
        anchors=anchors,
        footer=result.footer,
        digest=result.digest,
    )


def _features(result: RecordedRun) -> Iterator[Mapping[str, Any]]:
    """Yield each feature: what its scenarios and allocations came to, and its good ones."""
    for name, counts in by_feature(result).items():
        rows = [row for row in result.scenarios if row.scenario.feature == name]
        judged = count_verdicts([row.compared for row in rows if row.compared is not None])
        yield {
            "name": name,
            "counts": {str(outcome): number for outcome, number in counts.items()},
            "judged": {str(verdict): number for verdict, number in judged.items() if number},
            "rows": rows,
        }


def _ending(text: str, longest: int) -> str:
    """Return the end of a name, by which the devices of a pool differ."""
    return text if len(text) <= longest else f"\u2026{text[1 - longest :]}"


def _when(text: str) -> str:
    """Return a time of the result file to the minute; unchanged where it is no time with a zone."""
    try:
        time = datetime.fromisoformat(text)
        return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if time.tzinfo else fit(text)
    except (ValueError, OverflowError):
        return fit(text)


def _code(text: object) -> str:
    return inline_code(_safe(text))


def _block(text: object) -> str:
    lines = ["~~~", *_safe(text).split("\n"), "~~~"]
    return "\n".join(f"  {line}" for line in lines)


def _safe(text: object) -> str:
    shortened = shorten(visible(redact(str(text))), 20, 2_000)
    return shortened.replace("`", "'").replace("~~~", "---")


MAX_EVENTS = 3  # The latest that are shown; the diagnostics have all.


def warnings_of(row: ScenarioResult) -> list[str]:
    """Return the last warnings of the scenario's namespace, the latest first.

    Each as ``FailedScheduling, Pod pod0 (default-scheduler): message``; what the scenario's own
    message quotes is left out, and so is what only repeats.
    """
    try:
        events = loads(row.diagnostics.get("events.json", "[]").encode())
    except (ValueError, RecursionError):
        return []
    warnings = list(dict.fromkeys(_warnings(events, row.message)))
    return warnings[: -MAX_EVENTS - 1 : -1]


def _warnings(events: Any, known: str) -> Iterator[str]:
    listed = events if isinstance(events, list) else []
    warnings = [item for item in listed if isinstance(item, dict) and item.get("type") == "Warning"]
    for item in sorted(warnings, key=_last_seen):
        message = str(item.get("message") or "")
        if message.strip() and message.strip() not in known:
            about = item.get("involvedObject") or item.get("regarding")
            named = f"{about.get('kind')} {about.get('name')}" if isinstance(about, dict) else "?"
            source = item.get("reportingComponent") or "?"
            yield f"{item.get('reason')}, {named} ({source}): {message}"


def _last_seen(event: dict[str, Any]) -> str:
    """Return when it was last seen; RFC 3339 in UTC sorts as text, to the second."""
    series = event.get("series")
    latest = series.get("lastObservedTime") if isinstance(series, dict) else None
    return str(latest or event.get("lastTimestamp") or event.get("eventTime") or "")
