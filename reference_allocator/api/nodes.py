"""Nodes and node selectors (core/v1), as far as DRA asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reference_allocator.api.reading import (
    child,
    entries,
    items,
    mapping,
    required_string,
    string,
    text_item,
)


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what selectors and optional node operations look at."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    declared_features: tuple[str, ...] = ()
    """`status.declaredFeatures` (KEP-5328)."""

    @classmethod
    def from_dict(cls, value: object) -> Node:
        """Reads a v1 Node.

        Raises:
            InputError: the object has not the form of a Node.
        """
        source = mapping(value)
        metadata = child(source, "metadata", _read_metadata) or ("", {})
        features = child(
            source, "status", lambda status: items(mapping(status), "declaredFeatures", text_item)
        )
        return cls(metadata[0], metadata[1], features or ())


def _read_metadata(value: object) -> tuple[str, dict[str, str]]:
    source = mapping(value)
    return required_string(source, "name"), entries(source, "labels", text_item)


@dataclass(frozen=True, slots=True)
class Requirement:
    """v1.NodeSelectorRequirement."""

    key: str
    operator: str
    values: tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_dict(cls, value: object) -> Requirement:
        """Reads one requirement; the operator is checked when it is used, as upstream does."""
        source = mapping(value)
        return cls(
            string(source, "key"),
            string(source, "operator"),
            items(source, "values", text_item),
            source,
        )


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """v1.NodeSelectorTerm: all of its requirements have to hold."""

    match_expressions: tuple[Requirement, ...]
    match_fields: tuple[Requirement, ...]

    @classmethod
    def from_dict(cls, value: object) -> NodeSelectorTerm:
        """Reads one term."""
        source = mapping(value)
        return cls(
            items(source, "matchExpressions", Requirement.from_dict),
            items(source, "matchFields", Requirement.from_dict),
        )


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """v1.NodeSelector: one of its terms has to hold."""

    terms: tuple[NodeSelectorTerm, ...]

    @classmethod
    def from_dict(cls, value: object) -> NodeSelector:
        """Reads a node selector."""
        return cls(items(mapping(value), "nodeSelectorTerms", NodeSelectorTerm.from_dict))
