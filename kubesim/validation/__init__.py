"""The API server's checks, for the fields that DRA and its scenarios touch.

Each check yields field errors in the order in which Kubernetes reports them, with the same path,
reason and text. What no scenario writes (volumes, probes, security contexts ...) is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kube.values import Obj
from kubesim.resources import Kind
from kubesim.validation import (
    allocation,
    dra,
    names,
    node,
    pod,
    pod_group,
    pool_status,
    resource_slice,
    since_1_38,
    until_1_36,
    workloads,
)
from kubesim.validation.allocation import check_admin_status
from kubesim.validation.constraints import Expressions
from kubesim.validation.errors import FieldError, invalid_status
from kubesim.validation.pod import keep_claims

__all__ = [
    "Expressions",
    "check_admin_status",
    "check_create",
    "check_update",
    "find_create_errors",
    "keep_claims",
]

FieldErrors = Iterable[FieldError]

_CREATE_CHECKS: Final[Mapping[str, Callable[[Obj, dra.Labels, Expressions], FieldErrors]]] = {
    "Node": lambda new, *_: node.check_node(new),
    "Pod": lambda new, *_: pod.check_new(new),
    "PodGroup": lambda new, *_: pod_group.check_new(new),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
        lambda new, *_: workloads.check_selecting(new),
    ),
    "Job": lambda new, *_: workloads.check_job(new),
    "PriorityClass": lambda new, *_: workloads.check_priority_class(new),
    "ResourceClaim": dra.check_claim,
    "ResourceClaimTemplate": dra.check_template,
    "DeviceClass": lambda new, _, expressions: dra.check_class(new, None, expressions),
    "ResourceSlice": lambda new, _, server: resource_slice.check_slice(new, None, server),
    "DeviceTaintRule": lambda new, _, server: resource_slice.check_taint_rule(new, server),
    "ResourcePoolStatusRequest": lambda new, *_: pool_status.check_new(new),
}
"""Kind -> the checks of a new object beside those of its metadata."""

_UPDATE_CHECKS: Final[Mapping[str, Callable[[Obj, Obj, Expressions], FieldErrors]]] = {
    "Node": lambda new, *_: node.check_node_update(new),
    "Pod": lambda new, old, _: pod.check_update(new, old),
    "PodGroup": lambda new, old, _: pod_group.check_update(new, old),
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "StatefulSet"),
        lambda new, old, _: workloads.check_change(new, old),
    ),
    "PriorityClass": lambda new, old, _: workloads.check_priority_class_update(new, old),
    "ResourceClaim": dra.check_immutable_spec,
    "ResourceClaimTemplate": dra.check_template_update,
    "DeviceClass": dra.check_class,
    "ResourceSlice": lambda new, old, server: (
        since_1_38.check_slice_update(new, old, server)
        if server.since_1_38
        else resource_slice.check_slice(new, old, server)
    ),
    "DeviceTaintRule": lambda new, _, server: resource_slice.check_taint_rule(new, server),
    "ResourcePoolStatusRequest": lambda new, old, _: pool_status.check_update(new, old),
}
"""The same of a changed object."""

_STATUS_CHECKS: Final[Mapping[str, Callable[[Obj, Obj], FieldErrors]]] = {
    "DeviceTaintRule": lambda new, _: resource_slice.check_taint_rule_status(new),
    "Node": lambda new, _: node.check_node_status(new),
    "Pod": lambda new, _: pod.check_status(new),
    "PodGroup": pod_group.check_status,
    "ResourceClaim": allocation.check_status,
    "ResourcePoolStatusRequest": pool_status.check_status,
}
"""The same of a changed status."""


def find_create_errors(
    kind: Kind, obj: Obj, namespace_labels: Mapping[str, str], expressions: Expressions
) -> list[FieldError]:
    """Return what is wrong with a new object in its stored version, with name and defaults.

    Args:
        namespace_labels: labels of its namespace (admin access depends on one).
        expressions: what new CEL expressions may use.
    """
    errors = [*names.check_metadata(kind, obj, minor=expressions.minor)]
    if kind.name in _CREATE_CHECKS:
        errors += _CREATE_CHECKS[kind.name](obj, namespace_labels, expressions)
    if not expressions.with_declared_rules:
        errors = [*until_1_36.reword(errors, obj, expressions)]
    if expressions.since_1_38:
        errors = [
            *since_1_38.reword(errors),
            *since_1_38.check_added(kind.name, obj, None, status=False),
        ]
    return errors


def check_create(
    kind: Kind, obj: Obj, namespace_labels: Mapping[str, str], expressions: Expressions
) -> None:
    """Check a new object as `find_create_errors` does.

    Raises ApiError: 422 Invalid with a cause for each violated rule.
    """
    errors = find_create_errors(kind, obj, namespace_labels, expressions)
    if errors:
        raise invalid_status(kind, obj["metadata"].get("name") or "", errors)


def check_update(
    kind: Kind, new: Obj, old: Obj, expressions: Expressions, *, status: bool = False
) -> None:
    """Check a change of an object (or of its status), both in their stored version.

    Raises ApiError: 422 Invalid.
    """
    errors = (
        [] if status else [*names.check_metadata(kind, new, is_new=False, minor=expressions.minor)]
    )
    if status and kind.name in _STATUS_CHECKS:
        errors += _STATUS_CHECKS[kind.name](new, old)
    elif not status and kind.name in _UPDATE_CHECKS:
        errors += _UPDATE_CHECKS[kind.name](new, old, expressions)
    if not expressions.with_declared_rules:
        errors = [*until_1_36.reword(errors, new, expressions)]
    if expressions.since_1_38:
        errors = [
            *since_1_38.reword(errors),
            *since_1_38.check_added(kind.name, new, old, status=status),
        ]
    if errors:
        raise invalid_status(kind, new["metadata"]["name"], errors)
