"""DeviceTaintRules change what slices say before anything is allocated."""

from __future__ import annotations

import pytest

from reference_allocator.rules.taints import apply_taint_rules
from tests.reference_allocator.builders import (
    DRIVER,
    Json,
    claim,
    devices,
    request,
    resource_slice,
    solve,
)

TAINT = {"key": "broken", "effect": "NoExecute"}


def rule(selector: Json | None, name: str = "rule", key: str = "broken") -> Json:
    spec: Json = {"taint": {**TAINT, "key": key}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        ({}, ["dev-0", "dev-1"]),
        (None, []),
        ({"driver": DRIVER}, ["dev-0", "dev-1"]),
        ({"driver": "other.example.com"}, []),
        ({"pool": "pool"}, ["dev-0", "dev-1"]),
        ({"pool": "other"}, []),
        ({"device": "dev-1"}, ["dev-1"]),
        ({"driver": DRIVER, "pool": "pool", "device": "dev-0"}, ["dev-0"]),
        ({"driver": "other.example.com", "device": "dev-0"}, []),
    ],
)
def test_a_rule_taints_the_devices_that_it_selects(
    selector: Json | None, tainted: list[str]
) -> None:
    (tainted_slice,) = apply_taint_rules([resource_slice(devices(2))], [rule(selector)])
    assert [
        item["name"] for item in tainted_slice["spec"]["devices"] if item.get("taints")
    ] == tainted


def test_taints_of_rules_come_after_those_of_the_driver_by_name_of_rule() -> None:
    published = [resource_slice(devices(1, taints=[TAINT]))]
    (tainted_slice,) = apply_taint_rules(
        published, [rule({}, "b", "second"), rule({}, "a", "first")]
    )
    (item,) = tainted_slice["spec"]["devices"]
    assert [taint["key"] for taint in item["taints"]] == ["broken", "first", "second"]
    assert published[0]["spec"]["devices"][0]["taints"] == [TAINT]


def test_a_device_tainted_by_a_rule_is_not_allocated() -> None:
    slices = [resource_slice(devices(1))]
    assert solve(slices, claim(request())).kind == "allocated"
    tainted = [dict(item) for item in apply_taint_rules(slices, [rule({})])]
    assert solve(tainted, claim(request())).kind == "none"
