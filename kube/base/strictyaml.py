"""YAML from files that anybody may have written, bounded before anything is built of it.

A node takes a hundred times as much memory as its text, what an alias stands for takes it again
wherever somebody walks through it, and the time that PyYAML needs in Python is minutes for a
megabyte. libyaml's own composer has no limit of depth but the stack, and ends the process; so its
events are composed here, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml
from yaml.composer import Composer

MAX_NODES: Final = 200_000
"""Keys and values of a text, those of an alias wherever it stands; a node takes half a kilobyte."""

MAX_DEPTH: Final = 100
"""Lists and mappings within one another."""


MAX_NUMBER: Final = 100
"""Characters of a number; more cannot be meant, and take long to read."""

_LONGEST_PLAIN = 10_000
"""Characters without quotes that are looked at for a number or a date, which takes far more memory
than the text; what is longer is text."""

_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


class BoundsError(yaml.MarkedYAMLError):
    """A text would take too much memory or time; ``problem`` says what there is too much of."""


class BoundedLoader(Composer, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Composes libyaml's events, which is 5 times faster than PyYAML's own, and counts nodes."""

    def __init__(self, text: str | bytes, most_nodes: int = MAX_NODES) -> None:
        super(Composer, self).__init__(text)
        Composer.__init__(self)
        self._most_nodes = most_nodes
        self._nodes = 0
        self._depth = 0
        self._sizes: dict[str, int] = {}  # anchor -> nodes of what it stands for

    def compose_document(self) -> yaml.Node | None:
        self._sizes.clear()
        return super().compose_document()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if self._depth > MAX_DEPTH:
            raise _exceeded(event, f"nested too deeply, more than {MAX_DEPTH}")
        nodes_before = self._nodes
        self._nodes += 1
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._sizes:
                raise _exceeded(event, f"{event.anchor!r:.40} is used within what it stands for")
            self._nodes = nodes_before + self._sizes[event.anchor]
        elif event.anchor is not None:
            self._sizes[event.anchor] = self._nodes - nodes_before
        if self._nodes > self._most_nodes:
            raise _exceeded(event, f"more than {self._most_nodes} keys and values; split the file")
        return node

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and len(value) > _LONGEST_PLAIN:
            implicit = (False, implicit[1])
        return super().resolve(kind, value, implicit)

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if node.tag in _NUMBERS and len(node.value) > MAX_NUMBER:
            size = len(node.value)
            raise _exceeded(
                node, f"a number of {size} characters is too long; quote it if it is text"
            )
        return node


def _exceeded(place: Any, problem: str) -> BoundsError:
    return BoundsError(problem=problem, problem_mark=place.start_mark)


def load(text: str) -> Any:
    """Return the value of the one document of a text. Raises YAMLError."""
    loader = BoundedLoader(text)
    return _built(loader.get_single_data)


def find_repeated_keys(text: str) -> list[tuple[int, str]]:
    """Return line (from 1) and name of each key that its mapping has already.

    Of the first document. Raises YAMLError.
    """
    repeated: list[tuple[int, str]] = []
    loader = BoundedLoader(text)
    waiting = [loader.get_node()] if loader.check_node() else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.SequenceNode):
            waiting += reversed(node.value)
        elif isinstance(node, yaml.MappingNode):
            names = [key.value for key, _ in node.value]
            repeated += (
                (key.start_mark.line + 1, key.value)
                for index, (key, _) in enumerate(node.value)
                if isinstance(key, yaml.ScalarNode) and key.value in names[:index]
            )
            waiting += (value for _, value in reversed(node.value))
    return repeated


def load_all(text: str, most_nodes: int = MAX_NODES) -> Iterator[Any]:
    """Yield the values of the documents of a text. Raises YAMLError."""
    loader = BoundedLoader(text, most_nodes)
    while _built(loader.check_data):
        yield _built(loader.get_data)


def _built(build: Callable[[], Any]) -> Any:
    """Return what ``build`` does; PyYAML has many errors for a value that does not fit its tag."""
    try:
        return build()
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):
        raise yaml.MarkedYAMLError(problem="a value in it cannot be read") from None
