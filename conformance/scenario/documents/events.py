"""Read usual YAML from libyaml's events in one pass, values and lines at once.

A node object for each value, as PyYAML composes them, takes longer than all else that is done with
a manifest. What is unusual (many aliases, tags, a key that is given twice, too much of something,
an error of syntax) is left to `conformance.scenario.documents.yamlfile`, which reads it again and
says what it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import yaml
from yaml import events

Marks = Any
"""The lines of a value: of a scalar its own, of a list its own and the marks of its elements, of a
mapping its own and, for each key, the key's line and the marks of its value."""

_CPARSER: Final = getattr(yaml, "CSafeLoader", None)
_RESOLVERS: Final = yaml.resolver.Resolver.yaml_implicit_resolvers
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_LONGEST_PLAIN: Final = 100
"""Characters of a text without quotes that is read here: no number is longer."""
_MOST_REPEATED: Final = 1 << 20
"""Characters that aliases may stand for at most, if each stands for the whole text."""


class UnusualError(Exception):
    """The text has something that is not read here."""


class LineIndex(Mapping[tuple[str | int, ...], int]):
    """The line (from 1) of every path of a document, put together when the first is asked for."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._lines: dict[tuple[str | int, ...], int] = {}

    def __getitem__(self, path: tuple[str | int, ...]) -> int:
        return self._by_path[path]

    def __iter__(self) -> Iterator[tuple[str | int, ...]]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)

    @property
    def _by_path(self) -> dict[tuple[str | int, ...], int]:
        if not self._lines:
            self._lines[()] = self._marks if isinstance(self._marks, int) else self._marks[0]
            self._add((), self._marks)
        return self._lines

    def _add(self, path: tuple[str | int, ...], marks: Marks) -> None:
        if isinstance(marks, int):
            return
        _, inner = marks
        if isinstance(inner, dict):
            for key, (line, value_marks) in inner.items():
                self._lines[(*path, key)] = line
                self._add((*path, key), value_marks)
        else:
            for index, element in enumerate(inner):
                place = (*path, index)
                self._lines[place] = element if isinstance(element, int) else element[0]
                self._add(place, element)


def read_events(text: str, most_values: int, most_depth: int) -> list[tuple[Any, LineIndex]]:
    """Return the documents of a text that are not null, each with its lines.

    Raises UnusualError.
    """
    if _CPARSER is None:
        raise UnusualError
    documents = []
    try:
        parser = _CPARSER(text)
        most_repeats = _MOST_REPEATED // (len(text) + 1)
        reader = _Reader(parser.get_event, most_values, most_depth, most_repeats)
        while not isinstance(event := parser.get_event(), events.StreamEndEvent):
            if isinstance(event, events.DocumentStartEvent):
                data, marks = reader.read_document(parser.get_event())
                if data is not None:
                    documents.append((data, LineIndex(marks)))
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError):
        raise UnusualError from None
    return documents


class _Reader:
    """Turns events into values; ``values`` are those of the text so far."""

    def __init__(
        self, next_event: Callable[[], Any], most_values: int, most_depth: int, most_repeats: int
    ) -> None:
        self.values = 0
        self._repeats = most_repeats
        self._anchors: dict[str, tuple[Any, Marks, int]] = {}
        self._next = next_event
        self._most_values = most_values
        self._most_depth = most_depth

    def read_document(self, event: Any) -> tuple[Any, Marks]:
        """Return the value of the document whose first event it is, and its marks."""
        self._anchors.clear()
        return self.read(event, 0)

    def read(self, event: Any, depth: int) -> tuple[Any, Marks]:
        """Return the value that begins with an event, and its marks."""
        kind = type(event)
        self.values += 1
        if self.values > self._most_values or depth > self._most_depth:
            raise UnusualError
        if kind is events.AliasEvent:
            return self._repeat(event.anchor, depth)
        if event.anchor is None:
            return self._read_value(event, kind, depth)
        if event.anchor in self._anchors:
            raise UnusualError
        values_before = self.values
        value, marks = self._read_value(event, kind, depth)
        self._anchors[event.anchor] = value, marks, self.values - values_before + 1
        return value, marks

    def _repeat(self, anchor: str, depth: int) -> tuple[Any, Marks]:
        """Return a copy of what an alias stands for, with the lines where that was written."""
        if anchor not in self._anchors:
            raise UnusualError
        value, marks, values = self._anchors[anchor]
        self.values += values - 1
        self._repeats -= 1
        if self.values > self._most_values or self._repeats < 0:
            raise UnusualError
        return self._copy(value, depth), marks

    def _copy(self, value: Any, depth: int) -> Any:
        if depth > self._most_depth:
            raise UnusualError
        if isinstance(value, dict):
            return {key: self._copy(item, depth + 1) for key, item in value.items()}
        return [self._copy(item, depth + 1) for item in value] if isinstance(value, list) else value

    def _read_value(self, event: Any, kind: type[Any], depth: int) -> tuple[Any, Marks]:
        if kind is events.ScalarEvent:
            return _read_scalar(event), event.start_mark.line + 1
        if event.tag is not None:
            raise UnusualError
        inner: Any
        if kind is events.MappingStartEvent:
            mapping: dict[str, Any] = {}
            inner = {}
            while type(key_event := self._next()) is not events.MappingEndEvent:
                if type(key_event) is not events.ScalarEvent or key_event.tag is not None:
                    raise UnusualError
                key = key_event.value
                if key in mapping:
                    raise UnusualError
                _check_text(key)
                mapping[key], marks = self.read(self._next(), depth + 1)
                key_mark: Any = key_event.start_mark
                inner[key] = key_mark.line + 1, marks
            return mapping, (event.start_mark.line + 1, inner)
        elements, inner = [], []
        while type(element_event := self._next()) is not events.SequenceEndEvent:
            element, marks = self.read(element_event, depth + 1)
            elements.append(element)
            inner.append(marks)
        return elements, (event.start_mark.line + 1, inner)


def _read_scalar(event: Any) -> Any:
    text: str = event.value
    if event.tag is not None:
        raise UnusualError
    if event.implicit[0]:
        return _resolve_plain(text)
    _check_text(text)
    return text


def _check_text(text: str) -> None:
    """Refuse half of a surrogate pair, which no JSON has (a ValueError of the encoding)."""
    if not text.isascii():
        text.encode()


@lru_cache(maxsize=8192)
def _resolve_plain(text: str) -> Any:
    """Return what a text without quotes stands for, as PyYAML's SafeLoader has it."""
    _check_text(text)
    for tag, pattern in (*_RESOLVERS.get(text[:1], ()), *_RESOLVERS.get(None, ())):
        if pattern.match(text):
            if tag == _TIMESTAMP:  # Kubernetes has no such type
                return text
            if len(text) > _LONGEST_PLAIN:
                raise UnusualError
            value = yaml.constructor.SafeConstructor().construct_object(yaml.ScalarNode(tag, text))
            if isinstance(value, float) and not math.isfinite(value):
                raise UnusualError
            if isinstance(value, int) and not -(2**63) <= value < 2**64:
                raise UnusualError
            return value
    return text
