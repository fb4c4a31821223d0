"""A text that is decoded part by part reads as the whole does, wherever the parts end."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from kube.base.jsonstream import JsonStream, JsonTextError
from kube.base.strictjson import BoundsError
from tests.kube.base.test_strictjson import drawn


def reader(data: bytes, source: random.Random) -> Callable[[], bytes]:
    position = 0

    def read() -> bytes:
        nonlocal position
        begin, position = position, position + source.randrange(1, 9)
        return data[begin:position]

    return read


def read_document(stream: JsonStream) -> Any:
    match stream.peek():
        case "{":
            return {key: read_document(stream) for key in stream.read_members()}
        case "[":
            return [read_document(stream) for _ in stream.read_elements()]
    return stream.read_value()


def read_to_end(stream: JsonStream) -> None:
    read_document(stream)
    if stream.peek():
        raise JsonTextError(stream.line, "Extra data")


def find_error(text: str) -> json.JSONDecodeError | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error
    return None


def test_members_and_elements_are_those_of_the_document() -> None:
    source = random.Random(2)
    for _ in range(1000):
        document = [drawn(source, 4), 12, "→😀"]
        text = json.dumps(document, indent=source.choice([None, 1]), ensure_ascii=False)
        stream = JsonStream(reader(text.encode(), source))
        assert read_document(stream) == document
        assert stream.peek() == ""
        assert stream.line == text.count("\n") + 1


def test_an_error_has_the_line_and_the_words_of_the_whole_text() -> None:
    source = random.Random(3)
    told = set()
    for _ in range(1000):
        text = json.dumps({"a": [drawn(source, 3)], "b": {"c": 1}}, indent=1)
        place = source.randrange(len(text))
        broken = text[:place] + source.choice(["", "]", "}", ",", ":", "x"]) + text[place + 1 :]
        error = find_error(broken)
        stream = JsonStream(reader(broken.encode(), source))
        if error is None:
            assert read_document(stream) == json.loads(broken)
            continue
        with pytest.raises(JsonTextError) as raised:
            read_to_end(stream)
        if error.msg in ("Expecting ',' delimiter", "Expecting ':' delimiter"):
            told.add(error.msg)
            assert (raised.value.line, str(raised.value)) == (error.lineno, error.msg)
    assert len(told) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,\n"b": 2,\n"a": 3}', "the key 'a' occurs twice"),
        ('{"c": 1, "b":\n\n[{"a": 2, "a": 3}]}', "the key 'a' occurs twice"),
        ('{"a":\n1, "b":\nNaN}', "NaN is not a JSON value"),
    ],
)
def test_what_readers_would_read_differently_is_refused_with_its_line(
    text: str, problem: str
) -> None:
    with pytest.raises(JsonTextError, match=problem) as raised:
        read_document(JsonStream(reader(text.encode(), random.Random(1))))
    assert raised.value.line == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 200, "nested deeper than 128"),
        ("[" + "[]," * 1_300_000, "more than 2500000 values"),
    ],
)
def test_what_no_reader_should_take_is_refused_before_it_is_built(text: str, problem: str) -> None:
    data = iter([text.encode()[begin : begin + 4096] for begin in range(0, len(text), 4096)])
    with pytest.raises(BoundsError, match=problem):
        JsonStream(lambda: next(data, b"")).read_value()
