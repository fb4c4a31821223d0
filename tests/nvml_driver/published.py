"""What an API server and a scheduler would have against ResourceSlices of the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubesim.validation.resource_slice import check_slice
from reference_allocator.api import Node, RequestPolicy
from reference_allocator.api.limits import check_limits
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.api.reading import InputError
from reference_allocator.features import Features
from reference_allocator.index import Index
from reference_allocator.wire.lines import check_form

Json = Mapping[str, Any]


def problems(slices: Sequence[Json]) -> list[str]:
    """What would be refused or not be understood in one node's slices; empty if all is well."""
    found: list[str] = []
    for item in slices:
        name = item["metadata"]["name"]
        found += [f"{name}: {problem}" for problem in _of_slice(item)]
    return found or list(_of_pools(slices))


def _of_slice(item: Json) -> Iterator[str]:
    try:
        check_form(item, "resource/v1.ResourceSlice")
        check_limits("ResourceSlice", item)
    except InputError as error:
        yield str(error)
        return
    yield from map(str, check_slice(dict(item)))
    if not item["spec"].get("devices") and not item["spec"].get("sharedCounters"):
        yield "neither devices nor sharedCounters"
    for device in item["spec"].get("devices", ()):
        for name, capacity in device.get("capacity", {}).items():
            if "requestPolicy" in capacity:
                yield from (f"{device['name']}: {name}: {text}" for text in _of_policy(capacity))


def _of_policy(capacity: Json) -> Iterator[str]:
    """What validateRequestPolicy of the API server has against a range."""
    policy = RequestPolicy.from_dict(capacity["requestPolicy"])
    value, valid = parse_quantity(capacity["value"]).nanos, policy.valid_range
    default = policy.default.nanos if policy.default else 0
    low = valid.min.nanos if valid and valid.min else 0
    high = valid.max.nanos if valid and valid.max else value
    if not low <= default <= high <= value:
        yield f"min {low} <= default {default} <= max {high} <= value {value} does not hold"
    if valid and valid.step:
        step = valid.step.nanos
        if low + step > value or (default - low) % step or (high - low) % step:
            yield f"step {step} does not reach default, max or anything"


def _of_pools(slices: Sequence[Json]) -> Iterator[str]:
    names = {item["spec"].get("nodeName", "") for item in slices}
    for name in names:
        for pool in Index(Features.all(), slices).views.get_view(Node(name)).pools:
            if not pool.usable:
                yield f"{pool.id}: {pool.invalid_reason or 'the number of slices is wrong'}"
