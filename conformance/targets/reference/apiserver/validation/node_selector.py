"""A NodeSelector (``ValidateNodeSelector`` in pkg/apis/core/validation/validation.go)."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.targets.reference.apiserver.validation import names
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    forbidden,
    invalid,
    required,
)
from conformance.targets.seam.values import Obj


def check_node_selector(selector: Obj, path: str) -> Iterator[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        inner = f"{path}.nodeSelectorTerms[{index}]"
        for number, rule in enumerate(term.get("matchExpressions") or []):
            yield from _label(rule, f"{inner}.matchExpressions[{number}]")
        for number, rule in enumerate(term.get("matchFields") or []):
            yield from _field(rule, f"{inner}.matchFields[{number}]")


def _label(rule: Obj, path: str) -> Iterator[FieldError]:
    values = rule.get("values") or []
    match rule.get("operator") or "":
        case "In" | "NotIn":
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{path}.values", detail)
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{path}.values", detail)
        case "Gt" | "Lt":
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{path}.values", detail)
        case operator:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from names.label_key(rule.get("key") or "", f"{path}.key")
    for index, value in enumerate(values):
        yield from names.label_value(value, f"{path}.values[{index}]")


def _field(rule: Obj, path: str) -> Iterator[FieldError]:
    values, key = rule.get("values") or [], rule.get("key") or ""
    if rule.get("operator") not in ("In", "NotIn"):
        detail = "not a valid selector operator"
        yield invalid(f"{path}.operator", rule.get("operator") or "", detail)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if key != "metadata.name":
        yield invalid(f"{path}.key", key, "not a valid field selector key")
    else:
        for index, value in enumerate(values):
            yield from names.subdomain(value, f"{path}.values[{index}]")
