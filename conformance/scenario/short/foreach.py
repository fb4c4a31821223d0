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
    PathTuple,
    Problem,
    inside,
)
from conformance.scenario.driver.variables import substitute
from kube.base.errors import UsageError


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, list or mapping of a document; ``origin``: path of what the author wrote for it."""

    value: Any
    origin: PathTuple

    def get(self, key: str) -> Node | None:
        """The value of a key; None if this is no mapping, or has none."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def with_(self, **values: Node) -> Node:
        """This mapping with other values."""
        return Node({**self.value, **values}, self.origin)


def written(data: Any, path: PathTuple = ()) -> Node:
    """Data as the author wrote it."""
    if isinstance(data, dict):
        return Node({key: written(item, (*path, key)) for key, item in data.items()}, path)
    if isinstance(data, list):
        return Node([written(item, (*path, i)) for i, item in enumerate(data)], path)
    return Node(data, path)


def made(data: Any, origin: PathTuple) -> Node:
    """Data that nobody wrote, which is there because of what is at ``origin``."""
    if isinstance(data, dict):
        return Node({key: made(item, origin) for key, item in data.items()}, origin)
    if isinstance(data, list):
        return Node([made(item, origin) for item in data], origin)
    return Node(data, origin)


def plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def values_in(node: Node) -> int:
    """How many values a document with this one has."""
    below = node.value.values() if isinstance(node.value, dict) else node.value
    return 1 + (sum(map(values_in, below)) if isinstance(node.value, dict | list) else 0)


def merged(base: Node, change: Node) -> Node:
    """A JSON merge patch (RFC 7386): mappings by key, all else replaces.

    What null removes stays there as null, until :func:`pruned`, so that nothing fills it in again.
    """
    if not isinstance(base.value, dict) or not isinstance(change.value, dict):
        return change
    result: dict[str, Node] = {**base.value}
    for key, item in change.value.items():
        result[key] = merged(result[key], item) if key in result else item
    return Node(result, change.origin)


def pruned(node: Node) -> Node:
    """Without keys that are null."""
    if isinstance(node.value, dict):
        left = {key: item for key, item in node.value.items() if item.value is not None}
        return Node({key: pruned(item) for key, item in left.items()}, node.origin)
    if isinstance(node.value, list):
        return Node([pruned(item) for item in node.value], node.origin)
    return node


def document(node: Node, source: Document) -> Document:
    """The document that a node is, whose problems are reported at their place in its source."""
    origins = dict(_origins(node))
    lines = {path: source.line(origin) for path, origin in origins.items()}
    changed: Mapping[PathTuple, PathTuple] = {
        path: origin for path, origin in origins.items() if path != origin
    }
    return replace(source, data=plain(node), lines=lines, origins=changed)


def _origins(node: Node) -> Iterator[tuple[PathTuple, PathTuple]]:
    """Path in the document -> path in its source."""
    waiting: list[tuple[PathTuple, Node]] = [((), node)]
    while waiting:
        path, node = waiting.pop()
        yield path, node.origin
        waiting += [((*path, key), item) for key, item in inside(node.value)]


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
        """A value with its ``forEach`` carried out, within those around. Raises RepeatError."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise RepeatError(Problem(node.origin, f"is repeated to more than {MAX_VALUES} values"))
        if isinstance(node.value, dict):
            if FIELD in node.value:
                says = "repeats an element of a list; put it there"
                raise RepeatError(Problem(node.value[FIELD].origin, f"{FIELD} {says}"))
            found = {
                str(self._filled(key, item, each).value): self.repeat(item, each)
                for key, item in node.value.items()
            }
            return Node(found, node.origin)
        if isinstance(node.value, list):
            items = [one for item in node.value for one in self._elements(item, each)]
            return Node(items, node.origin)
        return self._filled(node.value, node, each)

    def _elements(self, item: Node, each: Mapping[str, Any]) -> Iterator[Node]:
        loop = item.get(FIELD)
        if loop is None:
            yield self.repeat(item, each)
            return
        name, values = _loop(self.repeat(loop, each))
        rest = Node({key: one for key, one in item.value.items() if key != FIELD}, item.origin)
        for value in values:
            yield from self._elements(rest, {**each, name: value})

    def _filled(self, text: Any, node: Node, each: Mapping[str, Any]) -> Node:
        """A scalar, or a key, with each ``${each.NAME}`` replaced; the others stay as they are."""

        def value(variable: str) -> Any:
            if not variable.startswith(_GROUP):
                return f"${{{variable}}}"
            name, *fields = variable.removeprefix(_GROUP).split(".")
            if name not in each:
                says = hint(name, each, f"none; {FIELD} beside it gives one")
                raise RepeatError(Problem(node.origin, f"unknown variable ${{{variable}}}; {says}"))
            found = each[name]
            for field in fields:
                if not isinstance(found, dict) or field not in found:
                    says = hint(field, found if isinstance(found, dict) else ())
                    raise RepeatError(
                        Problem(node.origin, f"${{{variable}}}: a value has no {field}; {says}")
                    )
                found = found[field]
            self._characters += len(str(found))  # before the text is made of them
            if self._characters > MAX_TEXT:
                text = f"is repeated to more than {MAX_TEXT} characters"
                raise RepeatError(Problem(node.origin, text))
            return found

        replaced = substitute(text, value)
        return Node(text, node.origin) if replaced is text else made(replaced, node.origin)


def _loop(node: Node) -> tuple[str, list[Any]]:
    """The name and the values of a ``forEach``."""
    shape = "must be one name with its values, like {n: 0..3} or {version: [v1beta1, v1beta2]}"
    if not isinstance(node.value, dict) or len(node.value) != 1:
        raise RepeatError(Problem(node.origin, shape))
    [(name, given)] = node.value.items()
    if not _NAME.fullmatch(name):
        text = f"{name!r} is not a valid name: use letters and digits, a small letter first"
        raise RepeatError(Problem(given.origin, text))
    values = plain(given)
    if isinstance(values, str) and (found := _RANGE.fullmatch(values)):
        first, last = int(found[1]), int(found[2])
        values = list(range(first, min(last, first + MOST) + 1))
    if not isinstance(values, list) or not values:
        raise RepeatError(Problem(given.origin, shape))
    if len(values) > MOST:
        text = f"has more than {MOST} values, the most that a scenario may repeat something for"
        raise RepeatError(Problem(given.origin, text))
    return name, values
