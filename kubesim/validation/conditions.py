"""Conditions of a status, as ``ValidateConditions`` of k8s.io/apimachinery's meta/v1 has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kube.values import Obj
from kubesim.validation import names
from kubesim.validation.errors import (
    FieldError,
    accept_any,
    check_fields,
    duplicate,
    invalid,
    one_of,
    require,
    required,
    too_long,
    too_many,
)

CONDITION_STATUSES: Final = ("False", "True", "Unknown")
CONDITIONS_MAX: Final = 8
"""Limit of conditions: of a device in a claim's status, and of a DeviceTaintRule."""

_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_PROBLEM: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
    f"used for validation is '{_REASON.pattern}')"
)
_LONGEST: Final = {"reason": 1024, "message": 32 * 1024}


def check_conditions(
    conditions: Sequence[Obj], path: str, most: int = CONDITIONS_MAX
) -> Iterator[FieldError]:
    """Check conditions of unique types, and that there are not more than ``most``."""
    if len(conditions) > most:
        yield too_many(path, len(conditions), most)
    types: set[str] = set()
    for index, condition in enumerate(conditions):
        inner = f"{path}[{index}]"
        kind = condition.get("type") or ""
        if kind in types:
            yield duplicate(inner, kind)
        types.add(kind)
        yield from _check_condition(condition, kind, inner)


def _check_condition(condition: Obj, kind: str, path: str) -> Iterator[FieldError]:
    if kind:
        yield from names.check_label_key(kind, f"{path}.type")
    else:
        yield required(f"{path}.type", "is required")
    yield from check_fields(condition, path, {"status": one_of(*CONDITION_STATUSES)})
    observed = condition.get("observedGeneration") or 0
    if observed < 0:
        detail = "must be greater than or equal to zero"
        yield invalid(f"{path}.observedGeneration", observed, detail)
    checks = {"lastTransitionTime": require(accept_any), "reason": require(_check_reason)}
    yield from check_fields(condition, path, checks)
    for field, limit in _LONGEST.items():
        if len((condition.get(field) or "").encode()) > limit:
            yield too_long(f"{path}.{field}", limit)


def _check_reason(reason: str, path: str) -> Iterator[FieldError]:
    if not _REASON.fullmatch(reason):
        yield invalid(path, reason, _REASON_PROBLEM)
