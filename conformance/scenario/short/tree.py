"""Plain data whose every value knows where its author wrote it, however it is moved and copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conformance.scenario.documents.yamlfile import Document, PathTuple, inside


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
    """The document that a node is, whose problems are told where they are in its source."""
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
