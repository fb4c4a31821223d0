"""Checks of names, and of ``metadata``, which is the same for all kinds but for the name's format.

Source: k8s.io/apimachinery/pkg/api/validation and pkg/apis/resource/validation. What is wrong with
a name by itself is in ``reference_allocator.api.names``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    invalid,
    required,
    too_long,
)
from conformance.targets.reference.resources import Kind
from conformance.targets.seam.values import Obj
from reference_allocator.api.limits import ATTRIBUTE_ID_MAX, DRIVER_NAME_MAX, POOL_NAME_MAX
from reference_allocator.api.names import (
    c_identifier_problems,
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)


def check_metadata(kind: Kind, obj: Obj) -> Iterator[FieldError]:
    """Name, labels and owner references of an object that has its name already."""
    meta = obj["metadata"]
    name = meta.get("name") or ""
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif kind.name in {"Namespace", "StatefulSet"}:
        yield from label(name, "metadata.name")
    else:
        yield from subdomain(name, "metadata.name")
    yield from labels(meta.get("labels") or {}, "metadata.labels")
    for key in meta.get("annotations") or {}:
        for problem in label_key_problems(key.lower()):
            yield invalid("metadata.annotations", key, problem)
    for index, owner in enumerate(meta.get("ownerReferences") or []):
        path = f"metadata.ownerReferences[{index}]"
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield invalid(f"{path}.{field}", "", "must not be empty")
    for index, finalizer in enumerate(meta.get("finalizers") or []):
        yield from label_key(finalizer, f"metadata.finalizers[{index}]")


def labels(values: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Keys and values of labels (also those of a pod template)."""
    for key, value in values.items():
        yield from label_key(key, path)
        yield from label_value(value, path)


def label_key(value: str, path: str) -> Iterator[FieldError]:
    """The key of a label, a taint or the like."""
    yield from (invalid(path, value, problem) for problem in label_key_problems(value))


def label_value(value: str, path: str) -> Iterator[FieldError]:
    """The value of a label, a taint or the like."""
    yield from (invalid(path, value, problem) for problem in label_value_problems(value))


def label(value: str, path: str) -> Iterator[FieldError]:
    """A DNS-1123 label."""
    yield from (invalid(path, value, problem) for problem in dns_label_problems(value))


def subdomain(value: str, path: str) -> Iterator[FieldError]:
    """A DNS-1123 subdomain."""
    yield from (invalid(path, value, problem) for problem in dns_subdomain_problems(value))


def driver(value: str, path: str) -> Iterator[FieldError]:
    """A driver's name (the rules of a CSI driver's)."""
    if not value:
        yield required(path)
        return
    if len(value) > DRIVER_NAME_MAX:
        yield too_long(path, DRIVER_NAME_MAX)
    yield from (invalid(path, value, problem) for problem in dns_subdomain_problems(value.lower()))


def pool(value: str, path: str) -> Iterator[FieldError]:
    """A pool's name: subdomains separated by slashes."""
    if not value:
        yield required(path)
        return
    if len(value) > POOL_NAME_MAX:
        yield too_long(path, POOL_NAME_MAX)
    for part in value.split("/"):
        yield from subdomain(part, path)


def qualified(value: str, path: str) -> Iterator[FieldError]:
    """The name of an attribute or capacity, with or without a domain."""
    parts = value.split("/")
    if len(parts) == 1:
        yield from _c_identifier(value, path)
    elif len(parts) == 2:
        if not parts[0]:
            yield invalid(path, "", "the domain must not be empty")
        else:
            yield from driver(parts[0], path)
        if not parts[1]:
            yield invalid(path, "", "the name must not be empty")
        else:
            yield from _c_identifier(parts[1], path)


def fully_qualified(value: str, path: str) -> Iterator[FieldError]:
    """The name of an attribute with its domain."""
    yield from qualified(value, path)
    if "/" not in value:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(path, value, detail)


def _c_identifier(value: str, path: str) -> Iterator[FieldError]:
    if len(value) > ATTRIBUTE_ID_MAX:
        yield too_long(path, ATTRIBUTE_ID_MAX)
    yield from (invalid(path, value, problem) for problem in c_identifier_problems(value))
