from __future__ import annotations

from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

from conformance.engine.events import Outcome
from conformance.report.pages import render_html
from conformance.resultfile.read import load_results
from conformance.resultfile.write import ResultFile
from tests.report.builders import HOSTILE, compared, finished, planned, play, sample, step, stream
from tests.report.golden import check


class Page(HTMLParser):
    """Tags in their order, what they refer to, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_shows_the_whole_run(tmp_path: Path) -> None:
    path = tmp_path / "r"
    judged = [compared("core/passing", "identical"), compared("core/failing", differs=True)]
    play(ResultFile(path), stream(*sample(), compared=judged))
    page = render_html(load_results(path))
    check("report.html", page)
    assert render_html(load_results(path)) == page


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    path = tmp_path / "r"
    scenario = planned(
        "core/" + HOSTILE.replace("\ud800", ""),
        summary=HOSTILE,
        references=("javascript:alert(1)", HOSTILE),
    )
    event = finished(
        scenario,
        Outcome.FAILED,
        HOSTILE,
        steps=(step(scenario.id, title=HOSTILE, message=HOSTILE),),
    )
    play(
        ResultFile(path),
        stream([scenario], [event], {scenario.id: {HOSTILE: HOSTILE}}, start={"target": HOSTILE}),
    )
    page = Page(render_html(load_results(path)))
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7*7 }}" in page.text
    assert page.addresses == ["#tested", "#s1"]


def test_a_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "r"
    play(ResultFile(path), stream(*sample()))
    text = render_html(load_results(path))
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "url(" not in text
    assert "@import" not in text


def test_a_truncated_run_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with closing(ResultFile(path)) as reporter:
        play(reporter, stream(*sample(), footer=False))
    assert "the result file was cut off" in render_html(load_results(path, truncated_ok=True))


def test_the_verdict_and_what_failed_come_first_and_what_passed_is_folded(tmp_path: Path) -> None:
    path = tmp_path / "r"
    play(ResultFile(path), stream(*sample(), compared=[compared("core/passing", "missed")]))
    page = render_html(load_results(path))
    order = [
        "not conformant: 1 scenario failed; 1 scenario with an allocation against the rules",
        "Allocations judged: <span",
        "What did not pass",
        '<a href="#s2">core/failing</a>',
        '<a href="#s4">core/passing</a>',
        '<details class="scenario" id="s2" open>',
        "<h2>Features</h2>",
        '<details class="scenario">',
    ]
    assert [page.index(text) for text in order] == sorted(page.index(text) for text in order)
