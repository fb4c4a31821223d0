"""Checks of ``metadata``, the same for all kinds but for the format of the name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.resources import Kind
from conformance.targets.reference.apiserver.validation import names
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    invalid,
    required,
)


def check(kind: Kind, obj: Obj) -> Iterator[FieldError]:
    """Name, labels and owner references of an object that has its name already."""
    meta = obj["metadata"]
    name = meta.get("name") or ""
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif kind.name == "Namespace":
        yield from names.label(name, "metadata.name")
    else:
        yield from names.subdomain(name, "metadata.name")
    yield from labels(meta.get("labels") or {}, "metadata.labels")
    for key in meta.get("annotations") or {}:
        for problem in names.label_key_problems(key.lower()):
            yield invalid("metadata.annotations", key, problem)
    for index, owner in enumerate(meta.get("ownerReferences") or []):
        path = f"metadata.ownerReferences[{index}]"
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield invalid(f"{path}.{field}", "", "must not be empty")
    for index, finalizer in enumerate(meta.get("finalizers") or []):
        for problem in names.label_key_problems(finalizer):
            yield invalid(f"metadata.finalizers[{index}]", finalizer, problem)


def labels(values: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Keys and values of labels (also those of a pod template)."""
    for key, value in values.items():
        yield from (invalid(path, key, problem) for problem in names.label_key_problems(key))
        for problem in names.label_value_problems(value):
            yield invalid(path, value, problem)
