"""The pages that are made from a result file once it is complete: HTML, and a summary in Markdown.

The HTML page can be mailed, kept as a CI artefact, opened without a server: it needs no script,
style sheet or font from elsewhere, and says so to the browser with a content security policy. The
summary is for the job page of a CI system: the verdict, what did not pass, and the features.

Text from a target forms no markup. In HTML the template engine escapes it; in Markdown it stands in
code, and what would end the code is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from conformance.compare.conclude import conclude_run, uncertified
from conformance.engine.dispatch import ReportError
from conformance.files import write_whole
from conformance.redaction import redact, redact_json
from conformance.report.folder import HTML, RESULTS, SUMMARY
from conformance.report.summary import VERDICTS, by_feature
from conformance.resultfile.read import RecordedRun, load_results
from conformance.text import is_address, shorten, visible

MAX_CHARACTERS = 200_000
"""The most that the page shows of one attachment; the result file has all of it."""


def write_pages(output: Path) -> None:
    """Write the HTML page and the summary beside the result file of a folder.

    Raises:
        ReportError: one of them cannot be written.
    """
    result = load_results(output / RESULTS)
    for name, text in ((HTML, render_html(result)), (SUMMARY, render_markdown(result))):
        try:
            write_whole(output / name, text.encode())
        except OSError as error:
            raise ReportError(f"{output / name}: cannot be written: {error.strerror}") from None


def render_html(result: RecordedRun) -> str:
    """The page as text; the same result gives the same page."""
    return _render("report.html.j2", result, {"fit": _fit, "as_json": _json})


def render_markdown(result: RecordedRun) -> str:
    """The summary as text; the same result gives the same text."""
    return _render("summary.md.j2", result, {"code": _code, "block": _block})


def _render(template: str, result: RecordedRun, filters: Mapping[str, Callable[[Any], str]]) -> str:
    environment = Environment(
        loader=PackageLoader("conformance.report"),
        autoescape=select_autoescape(disabled_extensions=("md.j2",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    environment.tests["address"] = is_address
    conclusion = conclude_run(result)
    return environment.get_template(template).render(
        run=result.run,
        verdict=VERDICTS[conclusion.code][0],
        code=int(conclusion.code),
        reasons=conclusion.reasons,
        uncertified=uncertified(result),
        counts={str(outcome): len(ids) for outcome, ids in result.outcomes.items() if ids},
        judged={str(verdict): number for verdict, number in result.verdicts.items() if number},
        features={
            name: {str(outcome): number for outcome, number in counts.items()}
            for name, counts in by_feature(result).items()
        },
        known_issues=result.known_issues,
        bad=[row for row in result.scenarios if row.bad],
        good=[row for row in result.scenarios if not row.bad],
        footer=result.footer,
        digest=result.digest,
    )


def _fit(text: object) -> str:
    return shorten(visible(redact(str(text))), 5_000, MAX_CHARACTERS)


def _json(value: object) -> str:
    return json.dumps(redact_json(value), indent=1, sort_keys=True)


def _code(text: object) -> str:
    """Inline code, in a table cell too: one line without what could end it."""
    return "`" + _safe(text).replace("\n", " ").replace("|", "\u2223") + "`"


def _block(text: object) -> str:
    """A block of code, indented as in a list item."""
    lines = ["~~~", *_safe(text).split("\n"), "~~~"]
    return "\n".join(f"  {line}" for line in lines)


def _safe(text: object) -> str:
    shortened = shorten(visible(redact(str(text))), 20, 2_000)
    return shortened.replace("`", "'").replace("~~~", "---")
