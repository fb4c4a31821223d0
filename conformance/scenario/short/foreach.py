"""``forEach``, and data whose every value knows where its author wrote it.

``{forEach: {n: 0..3}, name: "gpu-${each.n}"}`` in any list of a scenario is four elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from conformance.scenario.documents.validate import hint
from conformance.scenario.documents.yamlfile import (
    MAX_TEXT,
    MAX_VALUES,
    Document,
    LazyLines,
    PathTuple,
    Problem,
    list_items,
)
from conformance.scenario.driver.variables import substitute
from kube.base.errors import UsageError


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, list or mapping of a document; ``origin``: path of what the author wrote for it."""

    value: Any
    origin: PathTuple

    def get(self, key: str) -> Node | None:
        """Return the value of a key; None if this is no mapping, or has none."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def with_(self, **values: Node) -> Node:
        """Return this mapping with other values."""
        return Node({**self.value, **values}, self.origin)


def wrap_written(data: Any, path: PathTuple = ()) -> Node:
    """Wrap data as its author wrote it: the origin of each value is its own path."""
    if isinstance(data, dict):
        return Node({key: wrap_written(item, (*path, key)) for key, item in data.items()}, path)
    if isinstance(data, list):
        return Node([wrap_written(item, (*path, i)) for i, item in enumerate(data)], path)
    return Node(data, path)


def wrap_added(data: Any, origin: PathTuple) -> Node:
    """Wrap data that nobody wrote, which is there because of what is at ``origin``."""
    if isinstance(data, dict):
        return Node({key: wrap_added(item, origin) for key, item in data.items()}, origin)
    if isinstance(data, list):
        return Node([wrap_added(item, origin) for item in data], origin)
    return Node(data, origin)


def unwrap_node(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: unwrap_node(item) for key, item in node.value.items()}
    if isinstance(node.value, list):
        return [unwrap_node(item) for item in node.value]
    return node.value


def count_values(node: Node) -> int:
    """Return how many values a document with this one has."""
    below = node.value.values() if isinstance(node.value, dict) else node.value
    return 1 + (sum(map(count_values, below)) if isinstance(node.value, dict | list) else 0)


def merge_nodes(base: Node, change: Node) -> Node:
    """Merge as a JSON merge patch does (RFC 7386): mappings by key, all else replaces.

    What null removes stays there as null, until :func:`pruned`, so that nothing fills it in again.
    """
    if not isinstance(base.value, dict) or not isinstance(change.value, dict):
        return change
    result: dict[str, Node] = {**base.value}
    for key, item in change.value.items():
        result[key] = merge_nodes(result[key], item) if key in result else item
    return Node(result, change.origin)


def prune_nulls(node: Node) -> Node:
    """Return a node without keys that are null."""
    if isinstance(node.value, dict):
        kept_items = {key: item for key, item in node.value.items() if item.value is not None}
        return Node({key: prune_nulls(item) for key, item in kept_items.items()}, node.origin)
    if isinstance(node.value, list):
        return Node([prune_nulls(item) for item in node.value], node.origin)
    return node


def make_document(node: Node, source: Document) -> Document:
    """Return the document of a node, whose problems are reported where they are in its source."""
    origins = dict(_list_origins(node))
    lines = LazyLines(lambda: {path: source.line(origin) for path, origin in origins.items()})
    changed: Mapping[PathTuple, PathTuple] = {
        path: origin for path, origin in origins.items() if path != origin
    }
    return replace(source, data=unwrap_node(node), lines=lines, origins=changed)


def _list_origins(node: Node) -> Iterator[tuple[PathTuple, PathTuple]]:
    """Yield (path in the document, path in its source) of a node and all that is in it."""
    waiting: list[tuple[PathTuple, Node]] = [((), node)]
    while waiting:
        path, node = waiting.pop()
        yield path, node.origin
        waiting += [((*path, key), item) for key, item in list_items(node.value)]


FIELD: Final = "forEach"
MOST: Final = 300  # Values of one ``forEach``: claims have up to 256 consumers.

_GROUP: Final = "each."
_NAME: Final = re.compile(r"[a-z][A-Za-z0-9]*")
_RANGE: Final = re.compile(r"(\d{1,9})\.\.(\d{1,9})")


class RepeatError(UsageError):
    """Something is wrong with a ``forEach``, or with what it repeats."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Repeater:
    """Repeats what a document says to; counts, so that no document becomes endless."""

    def __init__(self) -> None:
        self._values = 0
        self._characters = 0

    def repeat(self, node: Node, each: Mapping[str, Any]) -> Node:
        """Carry out ``forEach`` in a value, within those around it. Raises RepeatError."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise RepeatError(Problem(node.origin, f"is repeated to more than {MAX_VALUES} values"))
        if isinstance(node.value, dict):
            if FIELD in node.value:
                says = "repeats an element of a list; put it there"
                raise RepeatError(Problem(node.value[FIELD].origin, f"{FIELD} {says}"))
            fields = {
                str(self._fill_text(key, item, each).value): self.repeat(item, each)
                for key, item in node.value.items()
            }
            return Node(fields, node.origin)
        if isinstance(node.value, list):
            items = [element for item in node.value for element in self._repeat_element(item, each)]
            return Node(items, node.origin)
        return self._fill_text(node.value, node, each)

    def _repeat_element(self, item: Node, each: Mapping[str, Any]) -> Iterator[Node]:
        loop = item.get(FIELD)
        if loop is None:
            yield self.repeat(item, each)
            return
        name, values = _read_loop(self.repeat(loop, each))
        element = Node(
            {key: field_value for key, field_value in item.value.items() if key != FIELD},
            item.origin,
        )
        for value in values:
            yield from self._repeat_element(element, {**each, name: value})

    def _fill_text(self, text: Any, node: Node, each: Mapping[str, Any]) -> Node:
        """Replace each ``${each.NAME}`` in a scalar or key; other variables stay as they are."""

        def value(variable: str) -> Any:
            if not variable.startswith(_GROUP):
                return f"${{{variable}}}"
            name, *fields = variable.removeprefix(_GROUP).split(".")
            if name not in each:
                says = hint(name, each, f"none; {FIELD} beside it gives one")
                raise RepeatError(Problem(node.origin, f"unknown variable ${{{variable}}}; {says}"))
            field_value = each[name]
            for field in fields:
                if not isinstance(field_value, dict) or field not in field_value:
                    says = hint(field, field_value if isinstance(field_value, dict) else ())
                    raise RepeatError(
                        Problem(node.origin, f"${{{variable}}}: a value has no {field}; {says}")
                    )
                field_value = field_value[field]
            self._characters += len(str(field_value))  # before the text is made of them
            if self._characters > MAX_TEXT:
                text = f"is repeated to more than {MAX_TEXT} characters"
                raise RepeatError(Problem(node.origin, text))
            return field_value

        replaced = substitute(text, value)
        return Node(text, node.origin) if replaced is text else wrap_added(replaced, node.origin)


def _read_loop(node: Node) -> tuple[str, list[Any]]:
    """Return the name and the values of a ``forEach``."""
    shape = "must be one name with its values, like {n: 0..3} or {version: [v1beta1, v1beta2]}"
    if not isinstance(node.value, dict) or len(node.value) != 1:
        raise RepeatError(Problem(node.origin, shape))
    [(name, values_node)] = node.value.items()
    if not _NAME.fullmatch(name):
        text = f"{name!r} is not a valid name: use letters and digits, a small letter first"
        raise RepeatError(Problem(values_node.origin, text))
    values = unwrap_node(values_node)
    if isinstance(values, str) and (range_match := _RANGE.fullmatch(values)):
        first, last = int(range_match[1]), int(range_match[2])
        values = list(range(first, min(last, first + MOST) + 1))
    if not isinstance(values, list) or not values:
        raise RepeatError(Problem(values_node.origin, shape))
    if len(values) > MOST:
        text = f"has more than {MOST} values, the most that a scenario may repeat something for"
        raise RepeatError(Problem(values_node.origin, text))
    return name, values
