"""What a JSON text comes to is counted outside its strings, however these are written."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from kube.base import strictjson
from kube.base.strictjson import BoundsError, check_bounds, loads

TEXTS = ["", '"', "\\", '\\"', "[{,", '],"', "\\\\", 'a"[', "\n", "é"]


def drawn(source: random.Random, depth: int) -> Any:
    """A document with strings that look like structure."""
    kind = source.randrange(4 if depth else 2)
    if kind == 0:
        return source.choice([None, True, -1.5e3, 12])
    if kind == 1:
        return "".join(source.choices(TEXTS, k=3))
    if kind == 2:
        return [drawn(source, depth - 1) for _ in range(source.randrange(4))]
    return {
        f"{number}{source.choice(TEXTS)}": drawn(source, depth - 1)
        for number in range(source.randrange(4))
    }


def size(document: Any) -> int:
    if not isinstance(document, dict | list):
        return 1
    parts = document.values() if isinstance(document, dict) else document
    return 1 + (sum(map(size, parts)) if document else 1)


def nesting(document: Any) -> int:
    if not isinstance(document, dict | list):
        return 0
    parts = document.values() if isinstance(document, dict) else document
    return 1 + max(map(nesting, parts), default=0)


def test_values_and_depth_are_those_of_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(1)
    for _ in range(1000):
        document = drawn(source, 5)
        text = json.dumps(document).encode()
        monkeypatch.setattr(strictjson, "_CHUNK", source.randrange(1, 9))
        values, depth = size(document), nesting(document)
        check_bounds(text, values, most_depth=depth)
        for bounds in ((values - 1, depth), (values, depth - 1)):
            with pytest.raises(BoundsError):
                check_bounds(text, bounds[0], most_depth=bounds[1])
            if depth == 0:
                break


@pytest.mark.parametrize(
    ("text", "width"),
    [
        (b'"a"', 1),
        ('"é"'.encode(), 1),
        (b'"\\u00e9"', 1),
        ('"→"'.encode(), 2),
        (b'"\\u2192"', 2),
        ('"😀"'.encode(), 4),
        (b'"\\ud83d\\ude00"', 4),
        (b'"\\uD83D\\uDE00"', 4),
    ],
)
def test_text_counts_as_it_takes_memory(text: bytes, width: int) -> None:
    most = len(text) * width
    assert loads(text, most_text=most) == json.loads(text)
    with pytest.raises(BoundsError, match="its text takes more"):
        loads(text, most_text=most - 1)


@pytest.mark.parametrize("text", [b"[[[[1", b"]]]][[[[", b'{"a":{"b":[[[', b"[[[[]]]]"])
def test_a_text_that_is_cut_off_is_as_deep_as_it_gets(text: bytes) -> None:
    with pytest.raises(BoundsError, match="nested deeper than 3"):
        check_bounds(text, most_depth=3)
    check_bounds(text, most_depth=5)
