"""Values of YAML from libyaml's events, in one pass, counted while they are built.

A node for each value, as PyYAML composes them, takes longer than all else that is done with a
manifest, and a hundred times the memory of its text. The lines are read in a pass of their own, for
who asks for one: most documents have nothing to report. What a reader refuses it says without the
value, which may be of a Secret.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Container, Iterator
from functools import cached_property, lru_cache
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from kube.base.strictyaml import MAX_DEPTH, MAX_NODES, MAX_NUMBER

TEXT_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "timestamp", "value", "merge")
)
"""What a scalar may be resolved to that is text for Kubernetes, which has no such types."""

_NULL: Final = "tag:yaml.org,2002:null"
_BOOL: Final = "tag:yaml.org,2002:bool"
_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_LONGEST_CACHED: Final = 64
_LONGEST_RESOLVED: Final = 6400
"""Characters of a text without quotes that is looked at for a number, which takes far more memory
than the text; what is longer is text."""

_RESOLVER: Final[Any] = yaml.resolver.Resolver()
_CONSTRUCTOR: Final[Any] = yaml.constructor.SafeConstructor()

Lines = dict[tuple[str | int, ...], int]
"""Path in a document -> line, from 1."""

_Marks = Any
"""Lines of a value: of a scalar its own; of a list its own and the marks of its elements; of a
mapping its own and, for each key, the key's line and the marks of its value."""


class RefusedValueError(yaml.MarkedYAMLError):
    """A text is YAML and has something that is not read; ``problem`` says what."""


def _refuse(event: Any, problem: str) -> RefusedValueError:
    return RefusedValueError(problem=problem, problem_mark=event.start_mark)


class ValueReader:
    """Builds values of the events of a parser, one after the other.

    Args:
        next_event: returns the next event.
        share: makes an object of keys and values; objects that it makes are not changed, so that
            an alias is the very value that it stands for. Without it each is a copy.
        most_values: keys and values at most, those of an alias wherever it stands.
        most_depth: lists and mappings within one another at most.
        most_aliases: how many aliases there may be.
    """

    def __init__(
        self,
        next_event: Callable[[], Any],
        share: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None,
        most_values: int = MAX_NODES,
        most_depth: int = MAX_DEPTH,
        most_aliases: int = sys.maxsize,
    ) -> None:
        self._next_event = next_event
        self._share = share
        self._most_values = most_values
        self._most_depth = most_depth
        self._most_aliases = most_aliases
        self._values = self._aliases = 0
        self._anchors: dict[str, tuple[Any, int]] = {}  # -> value, and how many it comes to

    def start_document(self) -> None:
        """Forget the anchors of the document before."""
        self._anchors.clear()

    def start_object(self) -> None:
        """Count from here on anew."""
        self._values = 0

    def read_key(self, event: Any, known: Container[str]) -> str:
        """Return the key that an event is. Raises RefusedValueError: it is none, or known."""
        self._count(event)
        if type(event) is not ScalarEvent:
            raise _refuse(event, "a key must be plain text")
        key: str = event.value
        if key in known:
            raise _refuse(event, f"the key {key[:60]!r} occurs twice")
        return key

    def read(self, event: Any, depth: int = 0) -> Any:
        """Return the value that begins with an event. Raises YAMLError."""
        kind = type(event)
        self._count(event)
        if kind is AliasEvent:
            return self._repeat(event)
        values_before = self._values
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)
        value: Any
        if kind is ScalarEvent:
            value = _read_scalar(event)
        elif depth >= self._most_depth:
            raise _refuse(event, f"nested too deeply, more than {self._most_depth}")
        elif kind is MappingStartEvent:
            value = self._read_mapping(depth + 1)
        else:
            value, next_event = [], self._next_event
            while type(element := next_event()) is not SequenceEndEvent:
                value.append(self.read(element, depth + 1))
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._values - values_before
        return value

    def _read_mapping(self, depth: int) -> dict[str, Any]:
        next_event, most_values, mapping = self._next_event, self._most_values, dict[str, Any]()
        while (kind := type(event := next_event())) is not MappingEndEvent:
            if kind is not ScalarEvent or event.value in mapping or self._values >= most_values:
                self.read_key(event, mapping)  # says what is wrong
            key, event = event.value, next_event()
            if type(event) is ScalarEvent and event.anchor is None:  # most values are such
                self._values += 2
                mapping[key] = _read_scalar(event)
            else:
                self._values += 1
                mapping[key] = self.read(event, depth)
        return mapping if self._share is None else self._share(list(mapping.items()))

    def _count(self, event: Any, values: int = 1) -> None:
        self._values += values
        if self._values > self._most_values:
            raise _refuse(event, f"an object of more than {self._most_values} keys and values")

    def _repeat(self, event: Any) -> Any:
        value, size = self._anchors.get(event.anchor, (None, -1))
        if size < 0:
            raise _refuse(event, f"{event.anchor!r:.40} is not defined before")
        self._count(event, size)
        self._aliases += 1
        if self._aliases > self._most_aliases:
            raise _refuse(event, f"more than {self._most_aliases} aliases")
        return value if self._share is not None else _copy(value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [*map(_copy, value)] if isinstance(value, list) else value


def _read_scalar(event: Any) -> Any:
    text, tag = event.value, event.tag
    if tag is None and not event.implicit[0]:
        return text
    try:
        if tag is None and len(text) <= _LONGEST_CACHED:
            return _read_short(text)
        return _read_plain(text, tag)
    except (ValueError, ArithmeticError, LookupError, yaml.YAMLError):
        raise _refuse(event, "a value cannot be read; quote it if it is text") from None


def _read_plain(text: str, tag: str | None = None) -> Any:
    """Return the value of a scalar without quotes, or with a tag. Raises ValueError."""
    if len(text) > _LONGEST_RESOLVED:
        return text
    tag = tag or _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
    if tag in TEXT_TAGS:
        return text
    if tag == _NULL:
        return None
    if tag == _BOOL:
        return _CONSTRUCTOR.bool_values[text.lower()]
    if tag not in (_INT, _FLOAT) or len(text) > MAX_NUMBER:
        raise ValueError(tag)
    node = yaml.ScalarNode(tag, text)
    construct = (
        _CONSTRUCTOR.construct_yaml_int if tag == _INT else _CONSTRUCTOR.construct_yaml_float
    )
    value = construct(node)
    if not math.isfinite(value) or not -(2**63) <= value < 2**64:
        raise ValueError(text)
    return value


_read_short = lru_cache(maxsize=8192)(_read_plain)


class TextLines:
    """The lines of a text's documents, read when the first is asked for.

    ``text``: one of which the values could be read (`read_values`).
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def list_lines(self, index: int) -> Lines:
        """Return the lines of a document; empty ones count, too."""
        return self._lines[index]

    @cached_property
    def _lines(self) -> list[Lines]:
        next_event = yaml.CSafeLoader(self._text).get_event
        reader = _MarkReader(next_event)
        return [_list_lines(reader.read(event)) for event in _list_starts(next_event)]


def read_values(text: str, most_values: int, most_depth: int, most_aliases: int) -> list[Any]:
    """Return the values of a text's documents, null for empty ones.

    Raises YAMLError: it is no YAML, has something that is not read, or libyaml is not there.
    """
    if not yaml.__with_libyaml__:
        raise yaml.YAMLError("libyaml is not there")
    next_event = yaml.CSafeLoader(text).get_event
    reader = ValueReader(
        next_event, most_values=most_values, most_depth=most_depth, most_aliases=most_aliases
    )
    values = []
    for event in _list_starts(next_event):
        reader.start_document()
        values.append(reader.read(event))
    return values


def _list_starts(next_event: Callable[[], Any]) -> Iterator[Any]:
    """Yield the first event of each document; who takes it reads up to the document's end."""
    while type(event := next_event()) is not StreamEndEvent:
        if type(event) is DocumentStartEvent:
            yield next_event()


class _MarkReader:
    """Reads where values are, in a text of which the values could be read."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next_event = next_event
        self._anchors: dict[str, _Marks] = {}

    def read(self, event: Any) -> _Marks:
        kind, next_event = type(event), self._next_event
        if kind is AliasEvent:
            return self._anchors[event.anchor]
        marks: _Marks = event.start_mark.line + 1
        if kind is MappingStartEvent:
            fields: dict[str, _Marks] = {}
            while type(key := next_event()) is not MappingEndEvent:
                fields[key.value] = key.start_mark.line + 1, self.read(next_event())
            marks = marks, fields
        elif kind is not ScalarEvent:
            elements: list[_Marks] = []
            while type(element := next_event()) is not SequenceEndEvent:
                elements.append(self.read(element))
            marks = marks, elements
        if event.anchor is not None:
            self._anchors[event.anchor] = marks
        return marks


def _list_lines(marks: _Marks) -> Lines:
    lines: Lines = {(): marks if isinstance(marks, int) else marks[0]}

    def add(path: tuple[str | int, ...], marks: _Marks) -> None:
        if isinstance(marks, int):
            return
        _, inner = marks
        if isinstance(inner, dict):
            for key, (line, value_marks) in inner.items():
                lines[(*path, key)] = line
                add((*path, key), value_marks)
        else:
            for index, element in enumerate(inner):
                place = (*path, index)
                lines[place] = element if isinstance(element, int) else element[0]
                add(place, element)

    add((), marks)
    return lines
