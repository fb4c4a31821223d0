"""Checks of a node's taints, and of what a pod tolerates of them.

Sources: ``validateNodeTaints``, ``ValidateTolerations`` and ``validateOnlyAddedTolerations`` in
pkg/apis/core/validation/validation.go. What compares numbers needs a gate that is off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from kube.values import Obj
from kubesim.validation import names
from kubesim.validation.errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from reference_allocator.api.names import label_value_problems

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NUMBERED: Final = ("Lt", "Gt")


def check_node_taints(taints: Sequence[Obj], path: str) -> Iterator[FieldError]:
    """Check the taints of a node, which errors place in its metadata."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        inner, key, effect = f"{path}[{index}]", taint.get("key") or "", taint.get("effect") or ""
        yield from names.check_label_key(key, f"{inner}.key")
        value = taint.get("value") or ""
        if problems := label_value_problems(value):
            yield invalid(f"{inner}.value", value, ";".join(problems))
        yield from (
            _check_effect(effect, f"{inner}.effect") if effect else [required(f"{inner}.effect")]
        )
        if (key, effect) in seen:
            internal_form = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": None}
            error = duplicate(inner, internal_form | _show_time(taint))
            detail = "taints must be unique by key and effect pair"
            yield replace(error, body=f"{error.body}: {detail}")
        seen.add((key, effect))


def _show_time(taint: Obj) -> Obj:
    return {"TimeAdded": taint["timeAdded"]} if "timeAdded" in taint else {}


def check_tolerations(tolerations: Sequence[Obj], path: str) -> Iterator[FieldError]:
    """Check what a pod tolerates."""
    for index, toleration in enumerate(tolerations):
        inner, key = f"{path}[{index}]", toleration.get("key") or ""
        operator, value = toleration.get("operator") or "", toleration.get("value") or ""
        effect = toleration.get("effect") or ""
        if key:
            yield from names.check_label_key(key, f"{inner}.key")
        elif operator != "Exists":
            detail = (
                "operator must be Exists when `key` is empty, which means "
                '"match all values and all keys"'
            )
            yield invalid(f"{inner}.operator", operator, detail)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{inner}.effect", effect, detail)
        if operator in ("", "Equal"):
            if problems := label_value_problems(value):
                yield invalid(f"{inner}.operator", value, ";".join(problems))
        elif operator == "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                yield invalid(f"{inner}.operator", value, detail)
        else:
            supported = ("Equal", "Exists", *(_NUMBERED if operator in _NUMBERED else ()))
            yield not_supported(f"{inner}.operator", operator, supported)
        if effect:
            yield from _check_effect(effect, f"{inner}.effect")


def check_added(new: Sequence[Obj], old: Sequence[Obj], path: str) -> Iterator[FieldError]:
    """Check that a pod still tolerates what it did, for a longer or shorter time perhaps."""
    kept = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(toleration) not in kept for toleration in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden(path, detail)
        return
    yield from check_tolerations(new, path)


def _without_seconds(toleration: Obj) -> Obj:
    return {field: item for field, item in toleration.items() if field != "tolerationSeconds"}


def _check_effect(effect: str, path: str) -> Iterator[FieldError]:
    if effect not in _EFFECTS:
        yield not_supported(path, effect, _EFFECTS)
