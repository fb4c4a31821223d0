"""Checks of a node: its taints, how much it has, and which features it declares.

Sources: ``ValidateNode`` and ``ValidateNodeUpdate`` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kube.values import Obj
from kubesim.validation.amounts import check_amount
from kubesim.validation.errors import FieldError, duplicate, invalid
from kubesim.validation.taints import check_node_taints
from reference_allocator.api.names import DNS_SUBDOMAIN_MAX
from reference_allocator.api.quoting import go_quote

_FEATURE: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")


def check_node(node: Obj) -> Iterator[FieldError]:
    """Check a new node."""
    yield from _check_taints(node)
    yield from check_node_status(node)


def check_node_update(node: Obj) -> Iterator[FieldError]:
    """Check a changed node, which is looked at as a new one, too, before."""
    yield from check_node(node)
    yield from check_node_status(node)
    yield from _check_taints(node)


def check_node_status(node: Obj) -> Iterator[FieldError]:
    """Check how much a node has of each resource, and its features."""
    status = node.get("status") or {}
    for field in ("capacity", "allocatable"):
        for name, amount in (status.get(field) or {}).items():
            path = f"status.{field}.{name}" if name else f"status.{field}[]"
            yield from check_amount(name, amount, path)
    features = status.get("declaredFeatures") or []
    for index, feature in enumerate(features):
        path = f"status.declaredFeatures[{index}]"
        if index and feature == features[index - 1]:
            yield duplicate(path, feature)
        elif index and feature < features[index - 1]:
            yield invalid(path, feature, "list must be sorted alphabetically")
        if problem := _find_feature_problem(feature):
            yield invalid(path, feature, f"invalid feature name {go_quote(feature)}: {problem}")


def _find_feature_problem(feature: str) -> str:
    if len(feature.encode()) > DNS_SUBDOMAIN_MAX:
        return f"must be no more than {DNS_SUBDOMAIN_MAX} characters"
    if _FEATURE.fullmatch(feature):
        return ""
    return (
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
        "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and "
        "slashes"
    )


def _check_taints(node: Obj) -> Iterator[FieldError]:
    yield from check_node_taints((node.get("spec") or {}).get("taints") or [], "metadata.taints")
