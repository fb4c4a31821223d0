"""Checks of a ResourcePoolStatusRequest (KEP-5677): what it asks for, and what it was answered.

All but those of metadata and conditions are declared as tags of the type in k8s.io/api/resource/
v1alpha3; the others are in pkg/apis/resource/validation/validation_resourcepoolstatusrequest.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kube.values import Obj
from kubesim.goforms import order_fields, show_internal
from kubesim.validation import names
from kubesim.validation.conditions import check_conditions
from kubesim.validation.errors import (
    FieldError,
    check_each,
    check_unique,
    invalid,
    require,
    required,
    too_long,
    too_many,
)
from reference_allocator.api.limits import POOL_NAME_MAX
from reference_allocator.api.names import DNS_SUBDOMAIN_MAX, dns_subdomain_problems

POOLS_LIMIT: Final = 100
"""The most pools in an answer where a request does not say how many it wants."""
_POOLS_MAX: Final = 1000
_CONDITIONS_MAX: Final = 10
_SUMMARY_MAX: Final = 32
_ERROR_MAX: Final = 256
_STATUS: Final = "resource/v1alpha3.ResourcePoolStatusRequestStatus"
_PARTITION: Final = "resource/v1alpha3.PartitionTypeStatus"
_COUNTS: Final[Mapping[str, int]] = {
    "resourceSliceCount": 1,
    "totalDevices": 0,
    "allocatedDevices": 0,
    "availableDevices": 0,
    "unavailableDevices": 0,
}
"""Number in a pool's status -> the least that it may be."""


def check_new(request: Obj) -> Iterator[FieldError]:
    """Check what a new request asks for, defaults applied."""
    spec, limit = request["spec"], request["spec"]["limit"]
    yield from require(names.check_caseless_subdomain)(spec.get("driver") or "", "spec.driver")
    if spec.get("poolName") is not None:
        yield from _check_pool_name(spec["poolName"], "spec.poolName")
    if limit > _POOLS_MAX:
        detail = f"must be less than or equal to {_POOLS_MAX}"
        yield invalid("spec.limit", limit, detail)
    yield from _check_count(limit, "spec.limit", least=1)
    attribute = spec.get("defaultPartitionTypeAttribute")
    if attribute is not None:
        path = "spec.defaultPartitionTypeAttribute"
        yield from names.check_fully_qualified_name(attribute, path)


def check_update(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Check that a changed request asks for the same."""
    if new["spec"] != old["spec"]:
        yield invalid("spec", None, "field is immutable")


def check_status(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Check what a request is answered, which is once."""
    status, old_status = new.get("status"), old.get("status")
    if status == old_status:
        return
    if old_status is not None:
        shown = None if status is None else show_internal(_STATUS, status)
        yield invalid("status", shown, "field is immutable")
    if status is None:
        return
    conditions = status.get("conditions") or []
    if old_status is None:
        yield from check_conditions(conditions, "status.conditions", most=len(conditions))
    yield from _check_required_count(status, "poolCount", "status")
    yield from check_each(status.get("pools") or [], _POOLS_MAX, _check_pool, "status.pools")
    if len(conditions) > _CONDITIONS_MAX:
        yield too_many("status.conditions", len(conditions), _CONDITIONS_MAX)


def _check_pool(pool: Obj, path: str) -> Iterator[FieldError]:
    yield from require(names.check_caseless_subdomain)(pool.get("driver") or "", f"{path}.driver")
    yield from require(_check_pool_name)(pool.get("poolName") or "", f"{path}.poolName")
    generation = pool.get("generation") or 0
    if not generation:
        yield required(f"{path}.generation")
    yield from _check_count(generation, f"{path}.generation")
    for field, least in _COUNTS.items():
        if pool.get(field) is not None:
            yield from _check_count(pool[field], f"{path}.{field}", least)
    if pool.get("nodeName") is not None:
        yield from names.check_subdomain(pool["nodeName"], f"{path}.nodeName")
    if len((pool.get("validationError") or "").encode()) > _ERROR_MAX:
        yield too_long(f"{path}.validationError", _ERROR_MAX)
    partitions = pool.get("partitionSummary") or []
    yield from check_unique(
        partitions,
        _SUMMARY_MAX,
        _check_partition,
        f"{path}.partitionSummary",
        by=lambda entry: (entry.get("attribute") or "", entry.get("type") or ""),
        show=lambda entry: order_fields(_PARTITION, entry),
    )
    if (summary := pool.get("shareableSummary")) is not None:
        inner = f"{path}.shareableSummary"
        for field in ("fullyAvailableDevices", "partiallyAvailableDevices"):
            yield from _check_required_count(summary, field, inner)
        capacities = summary.get("capacity") or []
        yield from check_each(capacities, _SUMMARY_MAX, _check_capacity, f"{inner}.capacity")


def _check_partition(partition: Obj, path: str) -> Iterator[FieldError]:
    for field in ("attribute", "type"):
        if not partition.get(field):
            yield required(f"{path}.{field}")
    for field in ("total", "allocatable"):
        yield from _check_required_count(partition, field, path)


def _check_capacity(capacity: Obj, path: str) -> Iterator[FieldError]:
    if not capacity.get("name"):
        yield required(f"{path}.name")
    for field in ("total", "consumed", "available"):
        if capacity.get(field) is None:
            yield required(f"{path}.{field}")


def _check_required_count(holder: Obj, field: str, path: str) -> Iterator[FieldError]:
    if holder.get(field) is None:
        yield required(f"{path}.{field}")
    else:
        yield from _check_count(holder[field], f"{path}.{field}")


def _check_count(count: int, path: str, least: int = 0) -> Iterator[FieldError]:
    if count < least:
        yield invalid(path, count, f"must be greater than or equal to {least}")


def _check_pool_name(value: Any, path: str) -> Iterator[FieldError]:
    if len(value) > POOL_NAME_MAX:
        yield too_long(path, POOL_NAME_MAX)
    for index, part in enumerate(value.split("/")):
        if not part:
            yield invalid(path, value, f"segment {index}: must not be empty")
            continue
        for problem in dns_subdomain_problems(part):
            text = problem.replace(f"{DNS_SUBDOMAIN_MAX} characters", f"{DNS_SUBDOMAIN_MAX} bytes")
            yield invalid(path, part, f"segment {index}: {text}")
