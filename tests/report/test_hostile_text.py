"""Whatever a result file says, in whichever field: no report does what the text says."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from conformance.cli.reporters import open_reporters, retell
from conformance.report.folder import OutputFolder
from conformance.report.pages import write_pages
from conformance.results.events.result import retold
from conformance.results.events.scenario import Attempt, KnownFailure, Outcome
from conformance.results.read import load_results
from conformance.results.write import FILE_NAME, ResultFile
from tests.report.builders import compared, finished, planned, play, sample, step, stream

LINES = {
    "terminal": "\x1b[2J\x1b]0;title\x07\x9b31m\rover \x08\x7f",
    "direction": "\u202eevil\u2066 \u061c\u200f",
    "lines": "one\u2028::error::sep\u2029::error::par\x85::error::nel\x0b::error::vt",
    "github": "::error file=a::b\n  ::add-mask::a\n::stop-commands::x\n\t::set-output name=a::b",
    "runner": "##[error]commanded\na ##[add-mask]b\n##vso[task.setvariable variable=a]b",
    "html": "<script>alert(1)</script><img src=x onerror=a> ' onclick='a' \" onclick=\"b\" -->",
    "attribute": "javascript:alert(1)",
    "address": 'https://evil.example/"onclick="a"><script>b</script>',
    "markdown": "`</code>` [a](https://evil.example) ![b](https://evil.example/i) **c** | d |\n# e\n<https://evil.example>",
    "fences": "~~~\n```\n~~~~\n<b>out</b>\n  ~~~\n<b>out</b>",
    "xml": "]]> <!-- <![CDATA[ &amp; \ufffe\uffff\ud800\x00",
    "markup": "[red]a[/red] {{ 7*7 }} {% raw %} %s %(a)s \\N",
}
KEPT = {"record", "apiVersion", "kind", "outcome", "cleanup", "verdict", "digest", "kubernetes"}
"""Fields that a reader checks: they have no other values."""


def spoilt(value: Any, text: str) -> Any:
    """A line of a result file with a text in every other field and every key of a free mapping."""
    if isinstance(value, str):
        return f"{value}\n{text}"
    if isinstance(value, list):
        return [spoilt(item, text) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in KEPT else free(item, text) if key in FREE else spoilt(item, text)
            for key, item in value.items()
        }
    return value


FREE = {"versions", "options", "featureGates", "items"}


def free(mapping: dict[str, Any], text: str) -> dict[str, Any]:
    return {f"{key}\n{text}": spoilt(item, text) for key, item in mapping.items()}


def hostile_file(file: Path, text: str) -> None:
    """A result file of a run with every outcome, with a text in every field."""
    scenarios, events, diagnostics = sample()
    known, flaky = planned("core/known"), planned("core/flaky")
    issue = KnownFailure("issue", "https://example.com/1")
    failure = Attempt(Outcome.FAILED, "first", "file:3", 1.0)
    steps = (step("core/flaky", observed=({"a": "b"},)),)
    events += [
        finished(known, Outcome.KNOWN, "double", known_issues=(issue,)),
        finished(flaky, Outcome.FLAKY, "at last", attempts=(failure,), steps=steps),
    ]
    judged = [compared("core/passing", "missed"), compared("core/failing", differs=True)]
    header = {"feature_gates": {"DRAGate": True}, "driver_profile": {"metadata": {"name": "p"}}}
    run = stream(
        [*scenarios, known, flaky],
        events,
        diagnostics,
        start=header,
        end={"left": ("Pod p",)},
        compared=judged,
    )
    play(ResultFile(file), run)
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    content = b""
    for line in lines:
        if line["record"] == "footer":
            line["digest"] = f"sha256:{hashlib.sha256(content).hexdigest()}"
        counts = line.pop("counts", None)
        changed = spoilt(line, text)
        if counts is not None:
            changed["counts"] = counts
        content += json.dumps(changed).encode() + b"\n"
    file.write_bytes(content)


class Tags(HTMLParser):
    """What a browser would make of a page: its elements, and where it would lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags = set[str]()
        self.attributes = set[str]()
        self.links = set[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}

    handle_startendtag = handle_starttag


UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
COMMAND = re.compile(r"^\s*::[a-z]|##\[|##vso\[", re.MULTILINE)


def no_commands(text: str) -> None:
    own = re.compile(r"^::(error|notice) title=[^:]*::", re.MULTILINE)
    assert not COMMAND.search(own.sub("", text))


def no_markup(text: str) -> None:
    page = Tags(text)
    assert not page.tags & {"script", "img"}
    assert not {name for name in page.attributes if name.startswith("on")}
    assert not [link for link in page.links if link.startswith("javascript:")]


def xml(text: str) -> None:
    ET.fromstring(text)


def html(text: str) -> None:
    no_markup(text)
    assert not [one for one in Tags(text).links if "<" in one and not one.startswith("https://")]


def markdown(text: str) -> None:
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    no_markup(rendered)
    assert Tags(rendered).tags <= {
        *("h2", "h3", "p", "ul", "li", "strong", "code", "pre"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert not Tags(rendered).links


CHECKS: dict[str, Callable[[str], None]] = {
    "junit.xml": xml,
    "report.html": html,
    "summary.md": markdown,
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES.keys())
def test_no_report_does_what_a_text_says(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    given, output = tmp_path / "given.ndjson", tmp_path / "out"
    hostile_file(given, text)
    result = load_results(given)
    with OutputFolder(output) as folder:
        with open_reporters(folder, verbose=True, durations=3) as every:
            retell(retold(result), every)
        write_pages(output)
    printed = capsys.readouterr()
    no_commands(printed.out + printed.err)
    assert not UNFIT.search(printed.out + printed.err)
    files = [file for file in output.rglob("*") if file.is_file()]
    assert len([file for file in files if file.parent.name == "allure-results"]) > 10
    for file in files:
        assert not UNFIT.search(str(file.relative_to(output)))
        assert not COMMAND.search(file.name)
        if "diagnostics" in file.parts or file.name == FILE_NAME or "-attachment" in file.name:
            continue  # evidence, as it was
        written = file.read_text(encoding="utf-8")
        assert not UNFIT.search(written), file
        CHECKS.get(file.name, str)(written)
