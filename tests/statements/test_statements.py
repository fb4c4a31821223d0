"""The table is whole: no statement without a defect or a reason, no defect without a statement."""

from __future__ import annotations

from collections import Counter

from conformance.scenario.registry import load_behaviours
from tests.mutants import DEFECTS
from tests.statements import statements, wrongs


def test_every_defect_breaks_one_statement() -> None:
    assert set(wrongs()) == set(DEFECTS)
    rows = Counter(name for row in statements() for name in row.defects)
    assert [name for name, count in rows.items() if count > 1] == []


def test_every_statement_belongs_to_a_behaviour() -> None:
    known = load_behaviours().behaviours
    assert sorted({row.behaviour for row in statements()} - set(known)) == []
