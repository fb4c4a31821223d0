"""Makes the page of CEL implementations from what is recorded in ``results.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ci.cel_implementations.measure import RESULTS, outcome_of, read_vectors
from tests.vectors.selectors import LANGUAGE

_HEAD: Final = """\
# Selectors in other implementations of CEL

Generated from `ci/cel_implementations/results.json`, which `python -m
ci.cel_implementations.measure` writes: each implementation is asked the [vectors of
selectors](allocators.md#selectors), with a device as its users bind one (versions and quantities
as strings), and without functions of its users' own. Said *otherwise* is what is true, false or
an error and something else in Kubernetes; an expression that does not compile is an error. In
Rust a device comes from JSON, where a positive integer is unsigned. common-expression-language is
that crate for Python, cel-expr-python is cel-cpp with its strings and optional types; an error that
it returns as a value is one. Not asked is org.projectnessie.cel:cel-tools (Java). Where a selector
is about to be tried with one of these, the last table says what it cannot tell.
"""


def text() -> str:
    """The page."""
    kept: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return "\n".join((_HEAD, *_counts(kept), "", *_each(kept), ""))


def _counts(kept: dict[str, Any]) -> Iterator[str]:
    """Yield how many are said otherwise, and how many of the language alone."""
    language = {vector.id for vector in read_vectors() if vector.source == LANGUAGE}
    yield "| implementation | version | otherwise | of the language alone | date |"
    yield "|---|---|---|---|---|"
    for name, item in kept.items():
        own = len(language & item["otherwise"].keys())
        counts = f"{len(item['otherwise'])} of {item['asked']} | {own} of {len(language)}"
        yield f"| {name} | {item['version']} | {counts} | {item['date']} |"


def _each(kept: dict[str, Any]) -> Iterator[str]:
    yield f"| expression | Kubernetes | {' | '.join(kept)} |"
    yield "|---" * (len(kept) + 2) + "|"
    for vector in read_vectors():
        said = [item["otherwise"].get(vector.id, "") for item in kept.values()]
        if any(said):
            expression = vector.question["expression"].replace("|", "\\|")
            right = outcome_of(vector.expected[next(iter(kept.values()))["kubernetes"]])
            yield f"| `{expression}` | {right} | {' | '.join(said)} |"
