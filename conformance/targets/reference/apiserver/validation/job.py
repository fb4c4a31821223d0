"""Checks of a Job (pkg/apis/batch/validation/validation.go), as far as scenarios reach."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.validation import metadata, pod
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    invalid,
    not_supported,
    required,
)

_POLICIES = ("OnFailure", "Never")


def check(job: Obj) -> Iterator[FieldError]:
    """A new Job, defaults applied."""
    spec = job["spec"]
    for field in ("parallelism", "completions", "backoffLimit"):
        if spec.get(field) is not None and spec[field] < 0:
            yield invalid(f"spec.{field}", spec[field], "must be greater than or equal to 0")
    template = spec["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    yield from metadata.labels(labels, "spec.template.metadata.labels")
    yield from pod.check_spec(template["spec"], "spec.template.spec")
    policy = template["spec"].get("restartPolicy") or ""
    path = "spec.template.spec.restartPolicy"
    if policy in {"", "Always"}:
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in _POLICIES:
        yield not_supported(path, policy, _POLICIES)
