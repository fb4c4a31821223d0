"""The table is whole: no statement without a defect or a reason, no defect without a statement."""

from __future__ import annotations

from collections import Counter

import yaml

from conformance.scenario.registry import load_registry
from tests.mutants import DEFECTS
from tests.statements import BEHAVIOURS, behaviours, statements, wrongs


def test_every_defect_breaks_one_statement() -> None:
    assert set(wrongs()) == set(DEFECTS)
    rows = Counter(name for row in statements() for name in row.defects)
    assert [name for name, count in rows.items() if count > 1] == []


def test_every_statement_is_of_a_behaviour_and_every_behaviour_of_a_feature() -> None:
    assert {row.behaviour for row in statements()} <= behaviours().keys()
    assert {one.feature for one in behaviours().values()} <= load_registry().features.keys()


def test_every_behaviour_is_broken_or_says_why_not() -> None:
    silent = {name for name, one in behaviours().items() if not one.missing}
    assert silent - {row.behaviour for row in statements() if row.defects} == set()


def test_no_test_of_upstream_counts_for_two_behaviours() -> None:
    lines = Counter(
        (file, line)
        for one in behaviours().values()
        for file, found in one.upstream.items()
        for line in found
    )
    assert [place for place, count in lines.items() if count > 1] == []
    files = yaml.safe_load(BEHAVIOURS.read_text(encoding="utf-8"))["files"]
    assert {file for file, _ in lines} == files.keys()
