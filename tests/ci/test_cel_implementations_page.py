"""The page of CEL implementations, and what counts as said otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

from ci.cel_implementations import page
from ci.cel_implementations.measure import (
    Implementation,
    find_differences,
    outcome_of,
    read_vectors,
)

ANSWER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    said = {"match": asked["id"] != "int-attribute"}
    if asked["id"] == "division-by-zero":
        said = {"error": "of another wording"}
    print(json.dumps({"id": asked["id"], **said}), flush=True)
"""


def test_an_error_is_an_error_in_whatever_words(tmp_path: Path) -> None:
    script = tmp_path / "answer.py"
    script.write_text(ANSWER, encoding="utf-8")
    asked = {"driver", "int-attribute", "division-by-zero", "guard-before"}
    vectors = [vector for vector in read_vectors() if vector.id in asked]
    program = Implementation("one", "1", script, (sys.executable, script))
    assert find_differences(program, vectors) == {"int-attribute": "false", "guard-before": "true"}


def test_a_text_that_does_not_compile_is_an_error() -> None:
    said = ({"compileError": "x"}, {"error": "x"}, {"match": True})
    assert [outcome_of(item) for item in said] == ["error", "error", "true"]


def test_the_page_has_each_expression_that_somebody_takes_otherwise() -> None:
    text = page.text()
    assert "| cel-python | 0.5.0 |" in text
    assert '| `isQuantity("80Gi") && !isQuantity("80GB")` | true |' in text
    assert '`device.driver == "dra.example.com"`' not in text
