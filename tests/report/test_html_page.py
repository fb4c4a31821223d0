from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conformance.report.files import DiagnosticsFolder
from conformance.report.folder import DIAGNOSTICS, HTML, RESULTS
from conformance.report.pages import MAX_EVIDENCE, _when, render_html, write_pages
from conformance.results.events.scenario import KnownFailure, Outcome
from conformance.results.write import ResultFile
from tests.report.builders import (
    HOSTILE,
    compared,
    finished,
    planned,
    play,
    recorded,
    sample,
    step,
    stream,
)
from tests.report.test_drawing import event, held, result, snapshot


class Page(HTMLParser):
    """Tags in their order, what they refer to, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.parts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.parts)


def test_a_page_shows_the_whole_run(tmp_path: Path) -> None:
    judged = [compared("core/passing", "identical"), compared("core/failing", differs=True)]
    result = recorded(tmp_path, *sample(), compared=judged)
    page = render_html(result)
    assert render_html(result) == page
    text = " | ".join(part.strip() for part in Page(page).parts if part.strip())
    for said in (
        "not conformant | 1 scenario failed. | 5 scenarios",
        "1 passed | 1 failed | 1 error | 1 skipped | 1 lost | Allocations judged: | 1 identical",
        "core/broken.yaml:12 | connection refused | left behind: Pod pod0 | Steps | passed | step",
        "core/failing | differs | 0.50 s | What core/failing shows. | core, ResourceClaim, alloc",
        "pod pod0 is Pending after 60 s\nexpected Running | Compared with the reference | differs:",
        "Diagnostics: 2 files | claims.yaml | [] | events | FailedScheduling",
        "lost | core/lost | What core/lost shows. | core, ResourceClaim, allocation | planned, and",
        "passed | core/passing | identical | 0.50 s | What core/passing shows.",
        "extended, ResourceClaim, allocation | needs gate DRAAdminAccess",
        "Kubernetes | 1.37.1 | driver | gpu.nvidia.com | image | none | simulated | NVML | suite",
        "options | binaries=<path>/bin, cluster=local | memory at most | suite 310 MiB, cluster",
        f"cluster 1900 MiB | result file | {result.digest}",
    ):
        assert said in text


@pytest.mark.parametrize("text", ["some day", "2026-11-22T14:53:00", "9999-12-31T23:59:59-12:00"])
def test_what_is_no_time_of_a_zone_stands_as_it_is(text: str) -> None:
    assert _when(text) == text


def test_a_time_is_reported_to_the_minute() -> None:
    assert _when("2026-11-22T15:53:07+01:00") == "2026-11-22 14:53 UTC"


def test_hostile_texts_are_text(tmp_path: Path) -> None:
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
    result = recorded(
        tmp_path, [scenario], [event], {scenario.id: {HOSTILE: HOSTILE}}, start={"target": HOSTILE}
    )
    page = Page(render_html(result))
    assert "script" not in page.tags
    assert page.tags.count("b") == 1  # the verdict
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7*7 }}" in page.text
    assert page.addresses == ["#tested", "#s1", "#s1"]


def test_a_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    result = recorded(tmp_path, *sample())
    text = render_html(result)
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "url(" not in text
    assert "@import" not in text


def test_the_verdict_and_what_failed_come_first_and_what_passed_is_folded(tmp_path: Path) -> None:
    result = recorded(tmp_path, *sample(), compared=[compared("core/passing", "missed")])
    page = render_html(result)
    order = [
        "<b>not conformant</b><span>1 scenario failed; 1 scenario with an allocation against the",
        "Allocations judged: <span",
        "What did not pass",
        '<a href="#s2">core/failing</a>',
        '<a href="#s4">core/passing</a>',
        '<details class="scenario card is-failed" id="s2" open>',
        "<h2>Features</h2>",
        '<details class="feature">',
        '<details class="scenario is-skipped">',
    ]
    assert [page.index(text) for text in order] == sorted(page.index(text) for text in order)


def test_a_known_issue_stands_below_what_failed_and_is_folded(tmp_path: Path) -> None:
    known, failing = planned("core/known"), planned("core/failing")
    issue = KnownFailure("some-issue", "https://example.com/1")
    events = [
        finished(known, Outcome.KNOWN, "m", known_issues=(issue,)),
        finished(failing, Outcome.FAILED, "m"),
    ]
    result = recorded(tmp_path, [known, failing], events)
    page = render_html(result)
    failed = page.index('<details class="scenario card is-failed" id="s1" open>')
    assert failed < page.index("Known issues of Kubernetes 1.37.1")
    assert failed < page.index('<details class="scenario card known is-known" id="s2">')


def test_a_failed_allocation_is_drawn(tmp_path: Path) -> None:
    scenario = planned()
    document = json.dumps(snapshot(allocated=[held(HOSTILE, result("gpu-0"))]))
    kept = {scenario.id: {"snapshot.json": document, "events.json": json.dumps([event(HOSTILE)])}}
    read = recorded(tmp_path, [scenario], [finished(scenario, Outcome.FAILED, "m")], kept)
    page = Page(render_html(read))
    assert page.tags.count("svg") == 3
    assert page.tags.count("g") == 5
    assert "script" not in page.tags
    assert "Failed, Pod p (kubelet): [red]markup" in page.text


def test_evidence_has_its_limit_and_is_linked_beside_the_page(tmp_path: Path) -> None:
    failed, passed = planned("core/failed"), planned("core/passed")
    events = [finished(failed, Outcome.FAILED, "m"), finished(passed, decisions=({"pod": "p9"},))]
    kept = {failed.id: {"a.txt": "first of it", "b.txt": '"' * (MAX_EVIDENCE // 5)}}
    play(ResultFile(tmp_path / RESULTS), stream([failed, passed], events, kept))
    play(DiagnosticsFolder(tmp_path / DIAGNOSTICS), stream([failed, passed], events, kept))
    write_pages(tmp_path)
    text = (tmp_path / HTML).read_text()
    page = Page(text)
    assert len(text) < MAX_EVIDENCE
    assert "first of it" in page.text
    links = [one for one in page.addresses if one.startswith(DIAGNOSTICS)]
    assert [(tmp_path / link).is_file() for link in links] == [True, True]
    assert "p9" not in page.text
    assert "1 decision of the scheduler: in the result file" in page.text
