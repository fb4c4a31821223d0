"""Conditions of a status, as ``ValidateConditions`` of k8s.io/apimachinery's meta/v1 has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from conformance.targets.reference.apiserver.validation import names
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from conformance.targets.seam.values import Obj

CONDITIONS_MAX: Final = 8
"""Of a device in a claim's status, and of a DeviceTaintRule."""

_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_PROBLEM: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
    f"used for validation is '{_REASON.pattern}')"
)
_REASON_MAX: Final = 1024
_MESSAGE_MAX: Final = 32 * 1024
_STATUSES: Final = ("False", "True", "Unknown")


def check_conditions(conditions: Sequence[Obj], path: str) -> Iterator[FieldError]:
    """Conditions of unique types, at most `CONDITIONS_MAX` of them."""
    if len(conditions) > CONDITIONS_MAX:
        yield too_many(path, len(conditions), CONDITIONS_MAX)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        inner = f"{path}[{index}]"
        kind = condition.get("type") or ""
        if kind in seen:
            yield duplicate(inner, kind)
        seen.add(kind)
        yield from _condition(condition, kind, inner)


def _condition(condition: Obj, kind: str, path: str) -> Iterator[FieldError]:
    if kind:
        yield from names.label_key(kind, f"{path}.type")
    else:
        yield required(f"{path}.type", "is required")
    status = condition.get("status") or ""
    if not status:
        yield required(f"{path}.status")
    elif status not in _STATUSES:
        yield not_supported(f"{path}.status", status, _STATUSES)
    observed = condition.get("observedGeneration") or 0
    if observed < 0:
        detail = "must be greater than or equal to zero"
        yield invalid(f"{path}.observedGeneration", observed, detail)
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    reason = condition.get("reason") or ""
    if not reason:
        yield required(f"{path}.reason")
    elif not _REASON.fullmatch(reason):
        yield invalid(f"{path}.reason", reason, _REASON_PROBLEM)
    if len(reason.encode()) > _REASON_MAX:
        yield too_long(f"{path}.reason", _REASON_MAX)
    if len((condition.get("message") or "").encode()) > _MESSAGE_MAX:
        yield too_long(f"{path}.message", _MESSAGE_MAX)
