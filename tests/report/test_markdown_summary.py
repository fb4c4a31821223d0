from __future__ import annotations

from pathlib import Path

from conformance.engine.events.scenario import Outcome
from conformance.report.pages import render_markdown
from conformance.resultfile.read import load_results
from conformance.resultfile.write import ResultFile
from tests.report.builders import HOSTILE, compared, finished, planned, play, sample, stream


def test_a_summary_says_the_verdict_the_totals_and_what_did_not_pass(tmp_path: Path) -> None:
    path = tmp_path / "r"
    judged = [compared("core/passing", "identical"), compared("core/failing", differs=True)]
    play(ResultFile(path), stream(*sample(), compared=judged))
    text = render_markdown(load_results(path))
    first, *_ = text.splitlines()
    assert first == "## DRA conformance: not conformant"
    assert "allocations: 1 identical" in text
    assert "- **failed** `core/failing`" in text
    assert "core/passing" not in text
    assert text.count("| --- |") == 0
    assert "| feature | result |" in text


def test_hostile_texts_form_no_markup(tmp_path: Path) -> None:
    path = tmp_path / "r"
    hostile = HOSTILE + "`<img src=x>`\n~~~\n# heading\n| cell |"
    scenario = planned("core/hostile", feature="A|B")
    event = finished(scenario, Outcome.FAILED, hostile)
    play(ResultFile(path), stream([scenario], [event], start={"driver": "`x` | <b>"}))
    text = render_markdown(load_results(path))
    body = "".join(line + "\n" for line in text.splitlines() if not line.startswith("  "))
    assert "# heading" not in body
    assert "<img" not in body
    assert text.count("  ~~~\n") == 2
    assert "`A\u2223B`" in text
    assert "driver `'x' \u2223 <b>`" in text
