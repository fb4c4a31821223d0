"""Scenarios beside a page, too much for every run, keep the rules that the shipped ones keep."""

from __future__ import annotations

from pathlib import Path

from conformance.scenario.loader import load_scenarios

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_what_the_page_of_known_issues_says_to_run_can_be_run() -> None:
    found = load_scenarios([DOCS / "known-issues"])
    page = (DOCS / "known-issues.md").read_text(encoding="utf-8")
    assert found
    assert [loaded.id for loaded in found if f"known-issues/{loaded.id}.yaml" not in page] == []
