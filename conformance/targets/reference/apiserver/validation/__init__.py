"""The API server's checks, for the fields that DRA and its scenarios touch.

Each check yields field errors in the order in which Kubernetes reports them, with the same path,
reason and text. What no scenario writes (volumes, probes, security contexts ...) is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.targets.reference.apiserver.validation import (
    dra,
    names,
    pod,
    pod_status,
    resource_slice,
    workloads,
)
from conformance.targets.reference.apiserver.validation.allocation import check_admin_status
from conformance.targets.reference.apiserver.validation.constraints import Expressions
from conformance.targets.reference.apiserver.validation.errors import FieldError, invalid_status
from conformance.targets.reference.apiserver.validation.pod_status import keep_claims
from conformance.targets.reference.resources import Kind
from conformance.targets.seam.values import Obj

__all__ = [
    "Expressions",
    "check_admin_status",
    "check_create",
    "check_update",
    "keep_claims",
]


def check_create(
    kind: Kind, obj: Obj, namespace_labels: Mapping[str, str], expressions: Expressions
) -> None:
    """Check a new object in its stored version, complete with name and defaults.

    Args:
        namespace_labels: labels of its namespace (admin access depends on one).
        expressions: what new CEL expressions may use.

    Raises ApiError: 422 Invalid with a cause for each violated rule.
    """
    errors = [*names.check_metadata(kind, obj), *_spec(kind, obj, namespace_labels, expressions)]
    if errors:
        raise invalid_status(kind, obj["metadata"].get("name") or "", errors)


def check_update(
    kind: Kind, new: Obj, old: Obj, expressions: Expressions, *, status: bool = False
) -> None:
    """Check a change of an object (or of its status), both in their stored version.

    Raises ApiError: 422 Invalid.
    """
    if status:
        errors = list(_status(kind, new, old))
    else:
        errors = [*names.check_metadata(kind, new), *_change(kind, new, old, expressions)]
    if errors:
        raise invalid_status(kind, new["metadata"]["name"], errors)


def _spec(
    kind: Kind, obj: Obj, namespace_labels: Mapping[str, str], expressions: Expressions
) -> Iterator[FieldError]:
    match kind.name:
        case "Pod":
            yield from pod.check_spec(obj["spec"], "spec", mirror=pod.is_mirror(obj))
        case "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet":
            yield from workloads.check_selecting(obj)
        case "Job":
            yield from workloads.check_job(obj)
        case "PriorityClass":
            yield from workloads.check_priority_class(obj)
        case "ResourceClaim":
            yield from dra.check_claim(obj, namespace_labels, expressions)
        case "ResourceClaimTemplate":
            yield from dra.check_template(obj, namespace_labels, expressions)
        case "DeviceClass":
            yield from dra.check_class(obj, None, expressions)
        case "ResourceSlice":
            yield from resource_slice.check_slice(obj)
        case "DeviceTaintRule":
            yield from resource_slice.check_taint_rule(obj)


def _status(kind: Kind, new: Obj, old: Obj) -> Iterator[FieldError]:
    match kind.name:
        case "DeviceTaintRule":
            yield from resource_slice.check_taint_rule_status(new)
        case "Pod":
            yield from pod_status.check_pod_status(new)
        case "ResourceClaim":
            yield from dra.check_status(new, old)


def _change(kind: Kind, new: Obj, old: Obj, expressions: Expressions) -> Iterator[FieldError]:
    match kind.name:
        case "Pod":
            yield from pod.check_update(new["spec"], old["spec"])
        case "Deployment" | "ReplicaSet" | "StatefulSet":
            yield from workloads.check_change(new, old)
        case "PriorityClass":
            yield from workloads.check_priority_class_update(new, old)
        case "ResourceClaim" | "ResourceClaimTemplate":
            yield from dra.check_immutable_spec(new, old)
        case "DeviceClass":
            yield from dra.check_class(new, old, expressions)
        case "ResourceSlice":
            yield from resource_slice.check_slice_update(new, old)
        case "DeviceTaintRule":
            yield from resource_slice.check_taint_rule(new)
