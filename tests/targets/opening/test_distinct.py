"""CEL that only one device of a driver fits: from an attribute that tells it from all others."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.opening.offer import selectors_of

D = "d.example.com"


def slice_of(pool: str, *devices: Any, driver: str = D, generation: int = 1) -> dict[str, Any]:
    """Devices are numbered in the order of their attributes."""
    named = [{"name": f"d{place}", "attributes": each} for place, each in enumerate(devices)]
    return {
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "devices": named,
        }
    }


def text(value: str) -> dict[str, str]:
    return {"string": value}


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param(
            [slice_of("p", {"m": text("T4"), "u": text("a")}, {"m": text("T4"), "u": text("b")})],
            'device.attributes["d.example.com"]["u"] == "b"',
            id="one of two differs",
        ),
        pytest.param(
            [slice_of("p", {"x.org/i": {"int": 0}}, {"x.org/i": {"int": 1}})],
            'device.attributes["x.org"]["i"] == 1',
            id="number with a domain",
        ),
        pytest.param(
            [slice_of("p", {"u": text('a"')}, {"u": text('b"\\')})],
            'device.attributes["d.example.com"]["u"] == "b\\"\\\\"',
            id="quoted",
        ),
        pytest.param(
            [slice_of("p", {"u": text("a")}, {"u": text("b")}), slice_of("q", {"u": text("b")})],
            "",
            id="another pool has the value",
        ),
        pytest.param(
            [
                slice_of("p", {"u": text("a")}, {"u": text("b")}),
                slice_of("q", {"u": text("b")}, driver="other.example.com"),
            ],
            'device.attributes["d.example.com"]["u"] == "b"',
            id="another driver has the value",
        ),
        pytest.param(
            [
                slice_of("p", {"u": text("b")}, {"u": text("a")}, generation=1),
                slice_of("p", {"u": text("a")}, {"u": text("b")}, generation=2),
            ],
            'device.attributes["d.example.com"]["u"] == "b"',
            id="the newest generation counts",
        ),
        pytest.param([slice_of("p", {}, {"u": text("b")})], "", id="one is without"),
        pytest.param([slice_of("p", {"u": {"int": 1}}, {"u": text("b")})], "", id="two kinds"),
        pytest.param(
            [slice_of("p", {"v": {"version": "1.0.0"}}, {"v": {"version": "2.0.0"}})],
            "",
            id="a version is no literal",
        ),
        pytest.param([slice_of("p", {"b": {"bool": True}}, {})], "", id="a bool is two values"),
    ],
)
def test_an_attribute_of_all_whose_value_only_this_device_has(
    slices: list[dict[str, Any]], expected: str
) -> None:
    assert selectors_of(slices, D, [("p", "d1")]).get(("p", "d1"), "") == expected
