"""A known issue is shown everywhere, with name and link, and fails no CI."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from conformance.report.ci import junit_xml
from conformance.report.pages import render_html, render_markdown
from conformance.report.terminal import TerminalReporter
from conformance.results.events.dispatch import Event
from conformance.results.events.scenario import KnownFailure, Outcome
from conformance.results.read import load_results
from conformance.results.write import ResultFile
from tests.report.builders import ended, finished, play, started

LINK = "https://github.com/kubernetes/kubernetes/pull/136269"
ISSUE = KnownFailure("allocates-twice", LINK)
KNOWN = finished("core/known", Outcome.KNOWN, "gpu-0 went to two claims", known_issues=(ISSUE,))
PASSED = finished("core/one")
EVENTS: list[Event] = [
    started([KNOWN.scenario, PASSED.scenario]),
    KNOWN,
    PASSED,
    ended([KNOWN, PASSED]),
]
SENTENCE = f"known issue allocates-twice ({LINK}) of Kubernetes 1.37.1, not counted: 1 scenario"


def test_in_the_terminal() -> None:
    text = StringIO()
    play(TerminalReporter(Console(file=text, width=200), live=False), EVENTS)
    assert SENTENCE in text.getvalue()
    assert "1 passed, 1 known" in text.getvalue()
    assert "conformant (exit code 0)" in text.getvalue()


def test_in_the_result_file_and_the_pages(tmp_path: Path) -> None:
    play(ResultFile(tmp_path / "results.ndjson"), EVENTS)
    result = load_results(tmp_path / "results.ndjson")
    assert result.known_issues == {ISSUE: ("core/known",)}
    html, markdown = render_html(result), render_markdown(result)
    assert f'<a rel="noreferrer" href="{LINK}">' in html
    assert '<span class="known">known</span>' in html
    assert f"known issue allocates-twice ({LINK})" in markdown


def test_in_junit_as_what_is_expected_to_fail(tmp_path: Path) -> None:
    play(ResultFile(tmp_path / "results.ndjson"), EVENTS)
    root = junit_xml(load_results(tmp_path / "results.ndjson"))
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    [skipped] = root.iter("skipped")
    assert skipped.get("type") == "known"
    assert str(ISSUE) in (skipped.text or "")
