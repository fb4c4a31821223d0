from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from jsonschema import Draft202012Validator

from conformance.report.jsonsummary import MAX_CHARACTERS, render_json, summary_schema
from conformance.report.pages import render_html, render_markdown
from conformance.results.events.scenario import Outcome
from conformance.results.read import load_results
from conformance.results.write import ResultFile
from tests.report.builders import (
    HOSTILE,
    compared,
    finished,
    planned,
    play,
    recorded,
    sample,
    stream,
)

GITHUB_LIMIT = 1 << 20
"""Bytes of a step's summary (GitHub's documentation of GITHUB_STEP_SUMMARY)."""


def test_it_says_what_the_run_came_to_and_fits_its_schema(tmp_path: Path) -> None:
    result = recorded(tmp_path, *sample(), compared=[compared("core/passing", "missed")])
    document = json.loads(render_json(result))
    Draft202012Validator(summary_schema()).validate(document)
    assert document["verdict"] == "not conformant"
    assert document["exitCode"] == 1
    assert document["scenarios"] == {"passed": 1, "failed": 1, "error": 1, "skipped": 1, "lost": 1}
    assert document["allocations"] == {"missed": 1}
    assert document["features"]["ResourceClaim"]["lost"] == 1
    assert document["resultFileDigest"] == result.digest
    found = {item["scenario"]: item for item in document["notPassed"]}
    assert set(found) == {"core/broken", "core/failing", "core/lost", "core/passing"}
    assert found["core/passing"]["verdict"] == "missed"
    assert found["core/passing"]["message"] == "missed: why missed"
    assert found["core/failing"]["where"] == "core/failing.yaml:12"


def test_a_scheduler_of_another_version_is_said_wherever_the_version_is(tmp_path: Path) -> None:
    one = finished("core/one")
    start = {"versions": {"scheduler": "1.38.0"}}
    result = recorded(tmp_path, [one.scenario], [one], start=start)
    document = json.loads(render_json(result))
    assert (document["kubernetesVersion"], document["schedulerVersion"]) == ("1.37.1", "1.38.0")
    assert "Kubernetes `1.37.1`, scheduler `1.38.0`, driver" in render_markdown(result)
    same = recorded(tmp_path, [one.scenario], [one])
    assert json.loads(render_json(same))["schedulerVersion"] == "1.37.1"
    assert ", scheduler" not in render_markdown(same)


def test_claim_latency_is_said_wherever_it_was_measured(tmp_path: Path) -> None:
    """Percentiles by nearest rank: each is a time that was measured."""
    waits = tuple(number / 100 for number in range(1, 101))
    events = [
        finished("core/one", latencies=waits[50:]),
        finished("core/two", latencies=waits[:50]),
        finished("core/three"),
    ]
    result = recorded(tmp_path, [item.scenario for item in events], events)
    document = json.loads(render_json(result))
    Draft202012Validator(summary_schema()).validate(document)
    assert document["latency"] == {"claims": 100, "p50": 0.5, "p90": 0.9, "p99": 0.99}
    text = "100 claims waited for their devices: p50 0.50 s, p90 0.90 s, p99 0.99 s"
    assert text in render_markdown(result)
    assert text in render_html(result)
    nothing = replace(result, finished=tuple(events[2:]))
    assert json.loads(render_json(nothing))["latency"] is None
    assert "waited" not in render_markdown(nothing)


def test_a_run_that_was_cut_off_has_no_seconds(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with closing(ResultFile(path)) as reporter:
        play(reporter, stream(*sample(), footer=False))
    document = json.loads(render_json(load_results(path, truncated_ok=True)))
    Draft202012Validator(summary_schema()).validate(document)
    assert document["seconds"] is None


def test_summaries_of_a_run_in_which_all_failed_at_length_stay_small(tmp_path: Path) -> None:
    scenarios = [planned(f"core/s{number}") for number in range(300)]
    text = "\U0001f600" * (MAX_CHARACTERS + 1)
    result = recorded(
        tmp_path, scenarios, [finished(item, Outcome.FAILED, text) for item in scenarios]
    )
    markdown = render_markdown(result)
    assert len(markdown.encode()) < GITHUB_LIMIT
    assert "- and 200 more; the reports name them all" in markdown


def test_a_summary_says_the_verdict_the_totals_and_what_did_not_pass(tmp_path: Path) -> None:
    judged = [compared("core/passing", "identical"), compared("core/failing", differs=True)]
    result = recorded(tmp_path, *sample(), compared=judged)
    text = render_markdown(result)
    first, *_ = text.splitlines()
    assert first == "## DRA conformance: not conformant"
    assert "allocations: 1 identical" in text
    assert "- **failed** `core/failing`" in text
    assert "core/passing" not in text
    assert text.count("| --- |") == 0
    assert "| feature | result |" in text


def test_hostile_texts_form_no_markup(tmp_path: Path) -> None:
    hostile = HOSTILE + "`<img src=x>`\n~~~\n# heading\n| cell |"
    scenario = planned("core/hostile", feature="A|B")
    event = finished(scenario, Outcome.FAILED, hostile)
    result = recorded(tmp_path, [scenario], [event], start={"driver": "`x` | <b>"})
    text = render_markdown(result)
    body = "".join(line + "\n" for line in text.splitlines() if not line.startswith("  "))
    assert "# heading" not in body
    assert "<img" not in body
    assert text.count("  ~~~\n") == 2
    assert "`A\u2223B`" in text
    assert "driver `'x' \u2223 <b>`" in text
