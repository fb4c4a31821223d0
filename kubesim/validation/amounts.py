"""Checks of amounts of resources: what a container asks for, and what a node has.

Sources: ``validateResourceRequirements``, ``ValidateContainerResourceName`` and
``ValidateResourceQuantityValue`` in pkg/apis/core/validation/validation.go, and the names of
pkg/apis/core/helper. Sizes of huge pages are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kube.values import Obj
from kubesim.validation import names
from kubesim.validation.errors import FieldError, invalid, required
from reference_allocator.api.names import label_key_problems
from reference_allocator.api.quantity import parse_quantity

_OF_CONTAINERS: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED: Final = (
    *("pods", "services", "replicationcontrollers", "secrets", "configmaps", "resourcequotas"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)
_OF_QUOTAS: Final = (
    *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _OF_CONTAINERS),
    *("storage", "requests.storage"),
)
_HUGE_PAGES: Final = "hugepages-"
_NANOS: Final = 10**9


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended one (``IsExtendedResourceName``)."""
    if _is_native(name) or name.startswith("requests."):
        return False
    return not any(label_key_problems(f"requests.{name}"))


def check_amount(name: str, amount: str, path: str) -> Iterator[FieldError]:
    """Check how much there is of a resource."""
    quantity = parse_quantity(amount)
    if quantity.sign() < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    if (name in _COUNTED or is_extended(name)) and quantity.nanos % _NANOS:
        yield invalid(path, amount, "must be an integer")


def check_requirements(resources: Obj, path: str) -> Iterator[FieldError]:
    """Check limits and requests of a container."""
    limits: Mapping[str, str] = resources.get("limits") or {}
    for name, amount in limits.items():
        yield from _check_name(name, f"{path}.limits[{name}]")
        yield from check_amount(name, amount, f"{path}.limits[{name}]")
    for name, amount in (resources.get("requests") or {}).items():
        yield from _check_name(name, f"{path}.requests[{name}]")
        yield from check_amount(name, amount, f"{path}.requests[{name}]")
        may_overcommit = _is_native(name) and not name.startswith(_HUGE_PAGES)
        if name not in limits:
            if not may_overcommit:
                yield required(
                    f"{path}.limits", "Limit must be set for non overcommitable resources"
                )
            continue
        order = parse_quantity(amount).compare(parse_quantity(limits[name]))
        if order and not may_overcommit:
            yield invalid(
                f"{path}.requests", amount, f"must be equal to {name} limit of {limits[name]}"
            )
        elif order > 0:
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", amount, detail)


def _check_name(name: str, path: str) -> Iterator[FieldError]:
    problems = [*names.check_label_key(name, path)]
    yield from problems
    is_standard = name in (*_OF_CONTAINERS, *_COUNTED, *_OF_QUOTAS)
    of_containers = name in _OF_CONTAINERS or name.startswith(_HUGE_PAGES)
    if "/" not in name:
        if not problems and not is_standard and not of_containers:
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        if not of_containers:
            yield invalid(path, name, "must be a standard resource for containers")
    elif not _is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name
