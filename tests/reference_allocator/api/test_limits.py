"""Each of the API's limits: the largest object passes, one more is refused where it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reference_allocator.api.limits import check_limits
from reference_allocator.api.reading import InputError
from tests.reference_allocator.builders import (
    Json,
    allocated,
    claim,
    device,
    device_class,
    devices,
    first_available,
    match,
    opaque,
    request,
    resource_slice,
    spec,
)


def _of_device(**fields: object) -> Json:
    return resource_slice([{"name": "d", **fields}])


def _counters(count: int) -> Json:
    return {f"c{index}": {"value": "1"} for index in range(count)}


def _asking(**fields: object) -> Json:
    return claim({"name": "r", "exactly": {**spec(), **fields}})


SELECTOR = {"cel": {"expression": "true"}}
LIMITS: dict[str, tuple[str, int, Callable[[int], Json], str]] = {
    "devices": ("ResourceSlice", 128, lambda n: resource_slice(devices(n)), "$.spec.devices"),
    "devices of which one is tainted": (
        "ResourceSlice",
        64,
        lambda n: resource_slice([*devices(n - 1), device("t", taints=[{"key": "k"}])]),
        "$.spec.devices",
    ),
    "devices of which one has a list": (
        "ResourceSlice",
        64,
        lambda n: resource_slice([*devices(n - 1), device("t", {"a": [1, 2]})]),
        "$.spec.devices",
    ),
    "devices of which one consumes counters": (
        "ResourceSlice",
        64,
        lambda n: resource_slice([*devices(n - 1), device("t", counters={"s": {"n": "1"}})]),
        "$.spec.devices",
    ),
    "counter sets": (
        "ResourceSlice",
        8,
        lambda n: resource_slice(counters={f"s{i}": {"n": "1"} for i in range(n)}),
        "$.spec.sharedCounters",
    ),
    "counters of a set": (
        "ResourceSlice",
        32,
        lambda n: resource_slice(counters={"s": {f"n{i}": "1" for i in range(n)}}),
        "$.spec.sharedCounters[0].counters",
    ),
    "attributes and capacities": (
        "ResourceSlice",
        32,
        lambda n: resource_slice(
            [device("d", {f"a{i}": 1 for i in range(n - 1)}, capacity={"c": "1"})]
        ),
        "$.spec.devices[0]",
    ),
    "attribute values": (
        "ResourceSlice",
        48,
        lambda n: resource_slice([device("d", {"a": [1] * (n - 1), "b": 1})]),
        "$.spec.devices[0]",
    ),
    "length of a value": (
        "ResourceSlice",
        64,
        lambda n: resource_slice([device("d", {"a": "x" * n})]),
        "$.spec.devices[0].attributes.a.string",
    ),
    "length of a value in a list": (
        "ResourceSlice",
        64,
        lambda n: resource_slice([device("d", {"a": ["x", "é" * (n // 2) + "x" * (n % 2)]})]),
        "$.spec.devices[0].attributes.a.strings[1]",
    ),
    "consumptions": (
        "ResourceSlice",
        2,
        lambda n: resource_slice([device("d", counters={f"s{i}": {"n": "1"} for i in range(n)})]),
        "$.spec.devices[0].consumesCounters",
    ),
    "counters of a consumption": (
        "ResourceSlice",
        32,
        lambda n: _of_device(consumesCounters=[{"counterSet": "s", "counters": _counters(n)}]),
        "$.spec.devices[0].consumesCounters[0].counters",
    ),
    "compatibility groups": (
        "ResourceSlice",
        2,
        lambda n: _of_device(consumesCounters=[{"compatibilityGroups": ["g"] * n}]),
        "$.spec.devices[0].consumesCounters[0].compatibilityGroups",
    ),
    "taints": (
        "ResourceSlice",
        16,
        lambda n: _of_device(taints=[{}] * n),
        "$.spec.devices[0].taints",
    ),
    "binding conditions": (
        "ResourceSlice",
        4,
        lambda n: _of_device(bindingConditions=["c"] * n),
        "$.spec.devices[0].bindingConditions",
    ),
    "binding failure conditions": (
        "ResourceSlice",
        4,
        lambda n: _of_device(bindingFailureConditions=["c"] * n),
        "$.spec.devices[0].bindingFailureConditions",
    ),
    "valid values": (
        "ResourceSlice",
        10,
        lambda n: _of_device(
            capacity={"c": {"value": "1", "requestPolicy": {"validValues": ["1"] * n}}}
        ),
        "$.spec.devices[0].capacity.c.requestPolicy.validValues",
    ),
    "length of a pool name": (
        "ResourceSlice",
        253,
        lambda n: resource_slice(pool="p" * n),
        "$.spec.pool.name",
    ),
    "requests": (
        "ResourceClaim",
        32,
        lambda n: claim(*[request(f"r{i}") for i in range(n)]),
        "$.spec.devices.requests",
    ),
    "constraints": (
        "ResourceClaim",
        32,
        lambda n: claim(request(), constraints=[match("a/b")] * n),
        "$.spec.devices.constraints",
    ),
    "requests of a constraint": (
        "ResourceClaim",
        32,
        lambda n: claim(request(), constraints=[match("a/b", *["req"] * n)]),
        "$.spec.devices.constraints[0].requests",
    ),
    "configurations": (
        "ResourceClaim",
        32,
        lambda n: claim(request(), config=[opaque("x")] * n),
        "$.spec.devices.config",
    ),
    "alternatives": (
        "ResourceClaim",
        8,
        lambda n: claim(first_available("r", **{f"s{i}": spec() for i in range(n)})),
        "$.spec.devices.requests[0].firstAvailable",
    ),
    "selectors": (
        "ResourceClaim",
        32,
        lambda n: _asking(selectors=[SELECTOR] * n),
        "$.spec.devices.requests[0].exactly.selectors",
    ),
    "length of an expression": (
        "ResourceClaim",
        10240,
        lambda n: claim(request("r", 1, "x" * n)),
        "$.spec.devices.requests[0].exactly.selectors[0].cel.expression",
    ),
    "tolerations": (
        "ResourceClaim",
        16,
        lambda n: _asking(tolerations=[{"key": "k", "operator": "Exists"}] * n),
        "$.spec.devices.requests[0].exactly.tolerations",
    ),
    "derived attributes": (
        "ResourceClaim",
        32,
        lambda n: _asking(derivedAttributes=[{"name": "a", "expression": "1"}] * n),
        "$.spec.devices.requests[0].exactly.derivedAttributes",
    ),
    "results": (
        "ResourceClaim",
        32,
        lambda n: allocated(*[f"d{i}" for i in range(n)]),
        "$.status.allocation.devices.results",
    ),
    "consumers": (
        "ResourceClaim",
        256,
        lambda n: {"status": {"reservedFor": [{"name": "p"}] * n}},
        "$.status.reservedFor",
    ),
    "parameters": (
        "ResourceClaim",
        10240,
        lambda n: claim(request(), config=[opaque("x" * (n - len('{"value":""}')))]),
        "$.spec.devices.config[0].opaque.parameters",
    ),
    "class selectors": (
        "DeviceClass",
        32,
        lambda n: device_class("gpu", *["true"] * n),
        "$.spec.selectors",
    ),
    "class configurations": (
        "DeviceClass",
        32,
        lambda n: device_class("gpu", config=[opaque("x")] * n),
        "$.spec.config",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limit_passes_and_one_more_is_refused_with_its_path(name: str) -> None:
    kind, most, build, path = LIMITS[name]
    check_limits(kind, build(most))
    with pytest.raises(InputError) as caught:
        check_limits(kind, build(most + 1))
    assert caught.value.path == path
    assert str(most) in caught.value.message


@pytest.mark.parametrize("value", [{"spec": 1}, {"spec": {"devices": {"a": 1}}}])
def test_what_has_another_form_is_left_to_who_reads_it(value: object) -> None:
    check_limits("ResourceSlice", value)


def test_an_empty_list_is_a_list_attribute_as_the_api_server_counts() -> None:
    devices = [device(f"d-{index}", {"a": {"strings": []}}) for index in range(65)]
    with pytest.raises(InputError, match="must have at most 64 items"):
        check_limits("ResourceSlice", resource_slice(devices))
