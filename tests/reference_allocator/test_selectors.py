"""What a selector says of one device is remembered for all of its driver only if they are alike."""

from __future__ import annotations

import pytest

from reference_allocator.api import Node
from reference_allocator.cel import CelDevice, CelRuntimeError, compile_selector
from reference_allocator.features import Features
from reference_allocator.index import Index
from tests.reference_allocator.builders import DRIVER, NODE, Json, resource_slice

X = f'device.attributes["{DRIVER}"].x'
DEVICES: list[Json] = [
    {"name": "one", "attributes": {"x": {"int": 1}}},
    {"name": "shared", "allowMultipleAllocations": True, "capacity": {"m": {"value": "1"}}},
    {"name": "newer", "attributes": {"x": {"kindOfTomorrow": 1}}},
    {"name": "wrong", "attributes": {"x": {"version": "one"}}},
]


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}"',
        'device.driver == "other" && device.attributes["other"].x == 1',
        f'{X} == 1 || device.driver == "{DRIVER}"',
        f'device.driver == "{DRIVER}" && {X} == 1',
        "device.allowMultipleAllocations",
        f"has({X})",
        f'"m" in device.capacity["{DRIVER}"]',
        'device == dyn({"driver": device.driver})',
        "size(dyn(device)) == 4",
        'dyn(device).exists(key, key == "attributes")',
        "dyn({device.driver: device})[device.driver].allowMultipleAllocations",
        "[device].exists(each, each.allowMultipleAllocations)",
        "dyn(device)[1] == 2",
        "dyn(device.driver) == 1 || 1 / 0 == 1",
    ],
)
def test_each_device_is_asked(expression: str) -> None:
    index = Index(Features.all(), [resource_slice(DEVICES, node=NODE)])
    candidates = index.views.get_view(Node(NODE)).candidates
    assert [entry.id.device for entry in candidates] == [item["name"] for item in DEVICES]
    for entry, raw in zip(candidates, DEVICES, strict=True):
        failure = index.selectors.first_failure([expression], entry)
        answer = failure is None or failure.error or False
        assert str(answer).startswith(_alone(expression, raw)), entry


def _alone(expression: str, raw: Json) -> str:
    """What is said of a device that nothing is remembered of."""
    try:
        return str(compile_selector(expression).matches(CelDevice.from_api(DRIVER, raw)))
    except CelRuntimeError as error:
        return f"CEL runtime error: {error}"
