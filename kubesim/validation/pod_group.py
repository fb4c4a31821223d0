"""Checks of a PodGroup (KEP-4671, KEP-5729): how its pods are placed, and which claims they share.

All but those of metadata, conditions and the names in the status are declared as tags of the type
in k8s.io/api/scheduling/v1beta1; the others are in pkg/apis/scheduling/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from kube.values import Obj
from kubesim.goforms import encode_value, load_forms, order_fields
from kubesim.validation import names
from kubesim.validation.conditions import check_conditions
from kubesim.validation.errors import (
    Check,
    FieldError,
    check_one_of,
    duplicate,
    invalid,
    require,
    too_many,
)

_CLAIMS_MAX: Final = 4
_HIGHEST: Final = 1_000_000_000
_IMMUTABLE: Final = "field is immutable"
_TYPES: Final = "scheduling/v1beta1"


def _in_bytes(check: Check) -> Check:
    """Return a check of a name that counts bytes, as declared rules do."""

    def checked(value: Any, path: str) -> Iterator[FieldError]:
        for error in check(value, path):
            yield replace(
                error, body=re.sub(r"(no more than \d+) characters", r"\1 bytes", error.body)
            )

    return checked


_check_long_name: Final = _in_bytes(names.check_subdomain)
_check_short_name: Final = _in_bytes(names.check_label)


def check_new(group: Obj) -> Iterator[FieldError]:
    """Check a new group, defaults applied."""
    spec = group["spec"]
    reference = spec.get("workloadRef")
    if reference is not None:
        yield from _check_reference(reference, "spec.workloadRef")
    yield from _check_policy(spec.get("schedulingPolicy") or {}, "spec.schedulingPolicy")
    claims = spec.get("resourceClaims") or []
    yield from _check_named(claims, "PodGroupResourceClaim", _check_claim, "spec.resourceClaims")
    yield from check_one_of(spec["disruptionMode"], ("single", "all"), "spec.disruptionMode")
    if spec.get("priorityClassName"):
        yield from _check_long_name(spec["priorityClassName"], "spec.priorityClassName")
    if (spec.get("priority") or 0) > _HIGHEST:
        detail = f"must be less than or equal to {_HIGHEST}"
        yield invalid("spec.priority", spec["priority"], detail)


def check_update(new_group: Obj, old_group: Obj) -> Iterator[FieldError]:
    """Check a changed group, of whose spec only ``minCount`` may change."""
    new, old = new_group["spec"], old_group["spec"]

    def check_kept(field: str) -> Iterator[FieldError]:
        if new.get(field) != old.get(field):
            yield invalid(f"spec.{field}", None, _IMMUTABLE)

    yield from check_kept("workloadRef")
    policy, old_policy = new.get("schedulingPolicy") or {}, old["schedulingPolicy"]
    if policy != old_policy:
        yield from _check_changed_policy(policy, old_policy, "spec.schedulingPolicy")
    for field in ("resourceClaims", "disruptionMode", "priorityClassName", "priority"):
        yield from check_kept(field)


def check_status(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Check a changed status: each claim in it is one of the spec's."""
    status, path = new["status"], "status.resourceClaimStatuses"
    conditions = status.get("conditions") or []
    yield from check_conditions(conditions, "status.conditions", most=len(conditions))
    claim_statuses = status.get("resourceClaimStatuses") or []
    entries = {claim["name"] for claim in new["spec"].get("resourceClaims") or []}
    for index, claim_status in enumerate(claim_statuses):
        name = claim_status.get("name") or ""
        if name not in entries:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{path}[{index}].name", name, detail)
    if claim_statuses != (old["status"].get("resourceClaimStatuses") or []):
        type_name = "PodGroupResourceClaimStatus"
        yield from _check_named(claim_statuses, type_name, _check_claim_status, path)


def _check_reference(reference: Obj, path: str) -> Iterator[FieldError]:
    checks: tuple[tuple[str, Check], ...] = (
        ("workloadName", _check_long_name),
        ("templateName", _check_short_name),
    )
    for field, check in checks:
        yield from require(check)(reference.get(field) or "", f"{path}.{field}")


def _check_policy(policy: Obj, path: str) -> Iterator[FieldError]:
    yield from check_one_of(policy, ("basic", "gang"), path)
    yield from _check_gang(policy.get("gang"), f"{path}.gang")


def _check_changed_policy(new: Obj, old: Obj, path: str) -> Iterator[FieldError]:
    yield from check_one_of(new, ("basic", "gang"), path)
    if ("basic" in new) != ("basic" in old):
        yield invalid(f"{path}.basic", None, _IMMUTABLE)
    if "gang" in new and "gang" not in old:
        yield invalid(f"{path}.gang", None, "field cannot be set once created")
    elif "gang" in old and "gang" not in new:
        yield invalid(f"{path}.gang", None, "field cannot be cleared once set")
    else:
        yield from _check_gang(new.get("gang"), f"{path}.gang")


def _check_gang(gang: Obj | None, path: str) -> Iterator[FieldError]:
    if gang is not None:
        yield from require(_check_count)(gang.get("minCount") or 0, f"{path}.minCount")


def _check_count(count: int, path: str) -> Iterator[FieldError]:
    if count < 1:
        yield invalid(path, count, "must be greater than or equal to 1")


def _check_named(
    items: Sequence[Obj], type_name: str, check: Callable[[Obj, str], Any], path: str
) -> Iterator[FieldError]:
    """Check a list of what has names of its own; of one that is too long nothing else is said."""
    if len(items) > _CLAIMS_MAX:
        yield too_many(path, len(items), _CLAIMS_MAX)
        return
    shape, seen = f"{_TYPES}.{type_name}", set[str]()
    for index, item in enumerate(items):
        name = item.get("name") or ""
        if name in seen:
            written = encode_value(shape, item, load_forms(), "none")
            yield duplicate(f"{path}[{index}]", order_fields(shape, written))
        seen.add(name)
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")


def _check_claim(claim: Obj, path: str) -> Iterator[FieldError]:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    given = [field for field in sources if claim.get(field) is not None]
    yield from check_one_of(given, sources, path)
    yield from require(_check_short_name)(claim.get("name") or "", f"{path}.name")
    for field in given:
        yield from _check_long_name(claim[field], f"{path}.{field}")


def _check_claim_status(claim_status: Obj, path: str) -> Iterator[FieldError]:
    name = claim_status.get("resourceClaimName")
    if name is not None:
        yield from _check_long_name(name, f"{path}.resourceClaimName")
