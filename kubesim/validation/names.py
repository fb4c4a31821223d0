"""Checks of names, and of ``metadata``, which is the same for all kinds but for the name's format.

Source: k8s.io/apimachinery/pkg/api/validation and pkg/apis/resource/validation. What is wrong with
a name by itself is in ``reference_allocator.api.names``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from kube.values import Obj
from kubesim.resources import Kind
from kubesim.validation.errors import Check, FieldError, invalid, require, required, too_long
from reference_allocator.api.limits import ATTRIBUTE_ID_MAX, DRIVER_NAME_MAX, POOL_NAME_MAX
from reference_allocator.api.names import (
    DNS_SUBDOMAIN_MAX,
    c_identifier_problems,
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)

_LONGEST_KEPT: Final = 253

_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
"""Of an OwnerReference, in the order in which Go writes them."""


def _by(problems: Callable[[str], Sequence[str]]) -> Check:
    """Return a check that has an error for each problem of a text."""
    # The devices of a cluster have few names.
    kept = lru_cache(maxsize=4096)(problems)

    def check(value: str, path: str) -> Iterator[FieldError]:
        found = kept(value) if len(value) <= _LONGEST_KEPT else problems(value)
        return iter([invalid(path, value, problem) for problem in found] if found else ())

    return check


check_label_key = _by(label_key_problems)  # Of a label, a taint or the like.
check_label_value = _by(label_value_problems)
check_label = _by(dns_label_problems)
check_subdomain = _by(dns_subdomain_problems)
_check_identifier = _by(c_identifier_problems)


STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


_CLASS_PREFIX_UNTIL: Final = 34


def _check_generate_name(
    kind: Kind, prefix: str, *, is_new: bool, minor: int
) -> Iterator[FieldError]:
    """Check what a name begins with, although it is there already (``ValidateObjectMeta``)."""
    path = "metadata.generateName"
    if not is_new or kind.name == "DeviceClass":
        yield from (invalid(path, prefix, f"may not contain '{c}'") for c in "/%" if c in prefix)
    is_checked_again = kind.name in {"Node", "Pod", "ResourceClaim", "ResourceClaimTemplate"}
    is_class = kind.name == "DeviceClass"
    if is_checked_again or (minor <= _CLASS_PREFIX_UNTIL if is_class else is_new):
        is_masked = len(prefix) > 1 and prefix.endswith("-")
        check = _find_name_check(kind)
        for error in check(f"{prefix[:-2]}a" if is_masked else prefix, path):
            yield invalid(path, prefix, error.body.partition('": ')[2])


def _find_name_check(kind: Kind) -> Check:
    return check_label if kind.name in {"Namespace", "StatefulSet"} else check_subdomain


def check_metadata(
    kind: Kind, obj: Obj, *, is_new: bool = True, minor: int = 37
) -> Iterator[FieldError]:
    """Check name, labels and owner references of an object that has its name already.

    ``minor``: of the API server; until 1.34 what a class's name begins with is looked at.
    """
    meta = obj["metadata"]
    name = meta.get("name") or ""
    if meta.get("generateName"):
        yield from _check_generate_name(kind, meta["generateName"], is_new=is_new, minor=minor)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from _find_name_check(kind)(name, "metadata.name")
    if (generation := meta.get("generation") or 0) < 0:
        detail = "must be greater than or equal to 0"
        yield invalid("metadata.generation", generation, detail)
    yield from check_labels(meta.get("labels") or {}, "metadata.labels")
    yield from check_annotation_keys(meta.get("annotations") or {}, "metadata.annotations")
    yield from _check_owner_references(meta.get("ownerReferences") or [])
    for index, finalizer in enumerate(meta.get("finalizers") or []):
        path = f"metadata.finalizers[{index}]"
        if finalizer not in meta["finalizers"][:index]:  # equal errors are told once
            yield from check_label_key(finalizer, "metadata.finalizers")
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(path, finalizer, detail)


def _check_owner_references(owners: Sequence[Obj]) -> Iterator[FieldError]:
    """Check the owners of an object, of which one is its controller (ValidateOwnerReferences)."""
    controller = ""
    for index, owner in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                path = f"metadata.ownerReferences[{index}].{field}"
                yield required(path, "must not be empty")
            elif field == "apiVersion" and owner[field].count("/") > 1:
                detail = "must be <group>/<version> or <version>"
                yield invalid(f"metadata.ownerReferences[{index}].{field}", owner[field], detail)
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references'
                    f" for {controller} and {name}"
                )
                shown = [{f: one[f] for f in _OWNER_FIELDS if f in one} for one in owners]
                yield invalid("metadata.ownerReferences", shown, detail)
            else:
                controller = name


def check_annotation_keys(values: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Check keys of annotations (also those of a template of claims); values have any form."""
    for key in values:
        yield from (invalid(path, key, problem) for problem in label_key_problems(key.lower()))


def check_labels(values: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Check keys and values of labels (also those of a pod template)."""
    for key, value in values.items():
        yield from check_label_key(key, path)
        yield from check_label_value(value, path)


def check_caseless_subdomain(value: str, path: str) -> Iterator[FieldError]:
    """Check a subdomain that may have capitals (``IsDNS1123SubdomainCaseless``)."""
    for problem in dns_subdomain_problems(value.lower()):
        text = problem.replace(f"{DNS_SUBDOMAIN_MAX} characters", f"{DNS_SUBDOMAIN_MAX} bytes")
        yield invalid(path, value, allow_capitals(text))


_LOWER_CASE: Final = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric"
_ANY_CASE: Final = "an RFC 1123 subdomain must consist of alphanumeric"


def allow_capitals(problem: str) -> str:
    """Return what is said of a subdomain where it may have capitals."""
    problem = problem.replace(_LOWER_CASE, _ANY_CASE)
    return problem.replace("'example.com'", "'Example.com'")


@require
def check_driver_name(value: str, path: str) -> Iterator[FieldError]:
    """Check a driver's name (the rules of a CSI driver's)."""
    if len(value) > DRIVER_NAME_MAX:
        yield too_long(path, DRIVER_NAME_MAX)
    yield from (invalid(path, value, problem) for problem in dns_subdomain_problems(value.lower()))


@require
def check_pool_name(value: str, path: str) -> Iterator[FieldError]:
    """Check a pool's name: subdomains separated by slashes."""
    if len(value) > POOL_NAME_MAX:
        yield too_long(path, POOL_NAME_MAX)
    for subdomain_text in value.split("/"):
        yield from check_subdomain(subdomain_text, path)


DEVICE: Mapping[str, Check] = {
    "driver": check_driver_name,
    "pool": check_pool_name,
    "device": check_label,
}
"""The fields that name a device."""


def check_qualified_name(value: str, path: str) -> Iterator[FieldError]:
    """Check the name of an attribute or capacity, with or without a domain."""
    *domain, name = value.split("/")
    if len(domain) > 1:
        return
    for domain_part in domain:
        yield from (
            check_driver_name(domain_part, path)
            if domain_part
            else [invalid(path, "", "the domain must not be empty")]
        )
    if domain and not name:
        yield invalid(path, "", "the name must not be empty")
        return
    if len(name) > ATTRIBUTE_ID_MAX:
        yield too_long(path, ATTRIBUTE_ID_MAX)
    yield from _check_identifier(name, path)


def check_fully_qualified_name(value: str, path: str) -> Iterator[FieldError]:
    """Check the name of an attribute with its domain."""
    yield from check_qualified_name(value, path)
    if "/" not in value:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid(path, value, detail)
