"""Checks of priority classes (pkg/apis/scheduling/validation/validation.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    forbidden,
    invalid,
    not_supported,
)

_HIGHEST: Final = 1_000_000_000
_POLICIES: Final = ("Never", "PreemptLowerPriority")


def check(new: Obj) -> Iterator[FieldError]:
    """A new class, defaults applied."""
    if new["metadata"]["name"].startswith("system-"):
        text = "priority class names with 'system-' prefix are reserved for system use only"
        yield forbidden("metadata.name", text)
    elif new["value"] > _HIGHEST:
        text = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        yield forbidden("value", text)
    if new["preemptionPolicy"] not in _POLICIES:
        yield not_supported("preemptionPolicy", new["preemptionPolicy"], _POLICIES)


def check_update(new: Obj, old: Obj) -> Iterator[FieldError]:
    """A change: neither the value nor the policy can be changed."""
    if new.get("value") != old["value"]:
        yield forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old["preemptionPolicy"]:
        shown = new.get("preemptionPolicy")
        yield invalid("preemptionPolicy", shown, "field is immutable")
