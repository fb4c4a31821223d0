"""Nodes and node selectors (core/v1), as far as DRA asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from reference_allocator.api.reading import expect_object, required_string
from reference_allocator.api.records import At, Record


def _read_name(metadata: object) -> str:
    return required_string(expect_object(metadata), "name")


@dataclass(frozen=True, slots=True)
class Node(Record):
    """v1.Node, as far as selectors and optional node operations look at it.

    Without any metadata it stands for no node in particular, and its name is empty.
    """

    name: Annotated[str, At("metadata", parse=_read_name)]
    labels: Annotated[Mapping[str, str], At("metadata.labels")] = field(default_factory=dict)
    declared_features: Annotated[tuple[str, ...], At("status.declaredFeatures")] = ()
    """`status.declaredFeatures` (KEP-5328)."""


@dataclass(frozen=True, slots=True)
class Requirement(Record):
    """v1.NodeSelectorRequirement; the operator is checked when it is used, as upstream does."""

    key: str
    operator: str
    values: tuple[str, ...]
    raw: Annotated[Mapping[str, Any], At(".")] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm(Record):
    """v1.NodeSelectorTerm: all of its requirements have to hold."""

    match_expressions: tuple[Requirement, ...]
    match_fields: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class NodeSelector(Record):
    """v1.NodeSelector: one of its terms has to hold."""

    terms: Annotated[tuple[NodeSelectorTerm, ...], At("nodeSelectorTerms")]
