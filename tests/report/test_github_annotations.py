from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from conformance.report.ci import MAX_ANNOTATIONS, GithubAnnotations, in_github, workflow_commands
from conformance.results.events.result import RunCollector
from conformance.results.events.scenario import KnownFailure, Outcome
from tests.report.builders import HOSTILE, compared, finished, planned, play, sample, stream

WORKSPACE = Path("/home/somebody/checkout")


def test_what_did_not_pass_is_annotated_where_it_was_decided() -> None:
    scenarios, events, diagnostics = sample()
    known = planned("core/known")
    issue = KnownFailure("some-issue", "https://example.com/1")
    events.append(finished(known, Outcome.KNOWN, "double", known_issues=(issue,)))
    collector = RunCollector()
    judged = [compared("core/passing", "missed")]
    play(collector, stream([*scenarios, known], events, diagnostics, compared=judged))
    lines = list(workflow_commands(collector.result(), WORKSPACE))
    assert lines == [
        (
            "::error title=error%3A core/broken,file=scenarios/core/broken.yaml,line=12"
            "::connection refused"
        ),
        (
            "::error title=failed%3A core/failing,file=scenarios/core/failing.yaml,line=12"
            "::pod pod0 is Pending after 60 s%0Aexpected Running"
        ),
        (
            "::error title=lost%3A core/lost,file=scenarios/core/lost.yaml,line=3"
            "::planned, and never reported"
        ),
        (
            "::error title=passed%3A core/passing,file=scenarios/core/passing.yaml,line=3"
            "::missed: why missed"
        ),
        (
            "::notice title=known%3A core/known,file=scenarios/core/known.yaml,line=3"
            "::known issue some-issue (https://example.com/1)%0Adouble"
        ),
    ]


def test_a_file_outside_the_workspace_is_not_named(tmp_path: Path) -> None:
    collector = RunCollector()
    play(collector, stream([planned()], [finished(outcome=Outcome.FAILED, message="m")]))
    assert list(workflow_commands(collector.result(), tmp_path)) == [
        "::error title=failed%3A core/one::m"
    ]


def test_hostile_texts_form_no_command() -> None:
    scenario = planned("core/a")
    text = f"100% ::error::x\n::stop-commands::y {HOSTILE} Bearer abcdef0123456789"
    stdout = io.StringIO()
    console = Console(file=stdout, width=80)
    play(GithubAnnotations(console), stream([scenario], [finished(scenario, Outcome.FAILED, text)]))
    [line] = stdout.getvalue().splitlines()
    assert line.startswith("::error title=failed%3A core/a::100%25 ::error::x%0A\\x3a:stop")
    assert "abcdef" not in line
    assert "\x1b" not in line


def test_github_shows_ten_so_the_tenth_counts_the_others() -> None:
    scenarios = [planned(f"core/s{number:02}") for number in range(12)]
    events = [finished(item, Outcome.FAILED, "m") for item in scenarios]
    collector = RunCollector()
    play(collector, stream(scenarios, events))
    lines = list(workflow_commands(collector.result(), WORKSPACE))
    assert len(lines) == MAX_ANNOTATIONS
    assert lines[-1] == "::error title=dra-conformance::3 more; the reports name them all"


def test_only_where_github_says_so() -> None:
    assert in_github({"GITHUB_ACTIONS": "true"})
    assert not in_github({"GITHUB_ACTIONS": "false", "CI": "true"})
