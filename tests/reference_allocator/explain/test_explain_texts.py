"""What people read when there is no allocation."""

from __future__ import annotations

import pytest

from reference_allocator.cel import CelFeatures
from reference_allocator.explain import explain
from reference_allocator.explain.wording import explain_false
from tests.reference_allocator.builders import (
    DRIVER,
    Json,
    allocated,
    claim,
    device,
    device_class,
    devices,
    first_available,
    make_snapshot,
    match,
    node,
    request,
    resource_slice,
    spec,
)

ATTRIBUTES = f'device.attributes["{DRIVER}"]'
NEWER = f'{ATTRIBUTES}.cudaComputeCapability.isGreaterThan(semver("9.0.0"))'
T4 = {"cudaComputeCapability": ("version", "7.5.0"), "type": "gpu", "slot": 3}


def text(
    slices: list[Json],
    *claims: Json,
    taken: list[Json] | None = None,
    nodes: list[Json] | None = None,
    classes: list[Json] | None = None,
) -> str:
    snapshot = make_snapshot(slices, claims, taken=taken or [], nodes=nodes, classes=classes)
    return explain(snapshot).text


def test_devices_are_counted_down_rule_by_rule() -> None:
    six = allocated(*[f"dev-{index}" for index in range(6)])
    slices = [resource_slice(devices(8, T4))]
    assert text(slices, claim(request("r", 1, NEWER)), taken=[six]) == (
        "0/1 nodes: node-a: 8 devices of class gpu: 6 in use, 2 fail selector #0 "
        "(cudaComputeCapability 7.5.0 is not greater than 9.0.0)"
    )


def test_nodes_with_the_same_reason_share_a_line() -> None:
    slices = [resource_slice(devices(1), node=None, allNodes=True)]
    nodes = [node("node-a"), node("node-b"), node("node-c")]
    assert text(slices, claim(request("r", 2)), nodes=nodes) == (
        "0/3 nodes: node-a, node-b, node-c: 1 device of class gpu: 1 left; 2 needed"
    )


def test_each_node_has_its_own_line_otherwise() -> None:
    slices = [resource_slice(devices(2))]
    assert text(slices, claim(request("r", 2)), nodes=[node(), node("node-b")]) == (
        "1/2 nodes:\n  node-a: can be allocated\n  node-b: no devices of class gpu; 2 needed"
    )


@pytest.mark.parametrize(
    ("slices", "wanted", "expected"),
    [
        (
            [resource_slice([device("d", taints=[{"key": "k", "effect": "NoExecute"}])])],
            claim(request()),
            "1 device of class gpu: 1 tainted (k=:NoExecute)",
        ),
        (
            [resource_slice(devices(1, capacity={"mem": "4Gi"}))],
            claim(request(capacity={"mem": "8Gi"})),
            "1 device of class gpu: 1 without enough capacity (mem 8Gi of 4Gi)",
        ),
        (
            [resource_slice(devices(2))],
            claim(request("r", 2), constraints=[match("a.b/c")]),
            (
                "2 devices of class gpu: 2 without an attribute that a constraint needs (a.b/c); "
                "2 needed"
            ),
        ),
        (
            [resource_slice([device("a", {"x": 1}), device("b", {"x": 2})])],
            claim(request("r", 2), constraints=[match(f"{DRIVER}/x")]),
            (
                "2 devices of class gpu: 2 left; matchAttribute gpu.example.com/x keeps 2 of them "
                "from being had together"
            ),
        ),
        (
            [
                resource_slice(name="c", slices=2, counters={"s": {"n": "1"}}),
                resource_slice(devices(2, counters={"s": {"n": "1"}}), slices=2),
            ],
            claim(request("r", 2)),
            (
                "2 devices of class gpu: 2 left; the stock of counters or capacity keeps 2 of them "
                "from being had together"
            ),
        ),
        (
            [resource_slice(devices(1), slices=2)],
            claim(request()),
            (
                "pool gpu.example.com/pool is being updated (slices are missing); "
                "no devices of class gpu"
            ),
        ),
        (
            [resource_slice([device("a"), device("a")])],
            claim(request()),
            (
                "invalid resource pools were encountered; pool gpu.example.com/pool is invalid: "
                "duplicate device name a; no devices of class gpu"
            ),
        ),
        (
            [resource_slice(devices(1))],
            claim(request(class_name="tpu")),
            (
                "claim default/claim, request req: could not retrieve device class tpu: "
                'deviceclass.resource.k8s.io "tpu" not found'
            ),
        ),
        (
            [resource_slice(devices(1))],
            claim(first_available("f", x=spec(2), y=spec(1, "false"))),
            (
                "claim default/claim request f/x: 1 device of class gpu: 1 left; 2 needed; "
                "claim default/claim request f/y: 1 device of class gpu: 1 fail selector #0 (false)"
            ),
        ),
    ],
)
def test_the_reason_is_named(slices: list[Json], wanted: Json, expected: str) -> None:
    assert text(slices, wanted) == f"0/1 nodes: node-a: {expected}"


def test_a_class_that_selects_nothing_says_why() -> None:
    classes = [device_class("gpu", f'{ATTRIBUTES}.type == "mig"')]
    assert text([resource_slice(devices(2, T4))], claim(request()), classes=classes) == (
        "0/1 nodes: node-a: no devices of class gpu: 2 fail class selector #0 (type gpu is not mig)"
    )


def test_the_smallest_conflict_is_named() -> None:
    slices = [resource_slice([device("a", {"x": 1}), device("b", {"x": 2}), device("c", {"x": 2})])]
    x_is_one = f"{ATTRIBUTES}.x == 1"
    claims = [
        claim(request("r", 1, f"{ATTRIBUTES}.x == 2"), name="free"),
        claim(request("r", 1, x_is_one), name="first"),
        claim(request("r", 1, x_is_one), name="second"),
    ]
    snapshot = make_snapshot(slices, claims)
    (report,) = explain(snapshot).nodes
    assert report.conflict == ("claim default/first", "claim default/second")
    within = claim(request("p", 1, x_is_one), request("q", 2), request("s", 1, x_is_one))
    (report,) = explain(make_snapshot(slices, [within])).nodes
    assert report.conflict == ("request p", "request s")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (NEWER, "cudaComputeCapability 7.5.0 is not greater than 9.0.0"),
        (f'{ATTRIBUTES}.type == "mig"', "type gpu is not mig"),
        (f'{ATTRIBUTES}.type != "gpu"', "type gpu is gpu"),
        (f"{ATTRIBUTES}.slot > 3", "slot 3 is not greater than 3"),
        (f"{ATTRIBUTES}.slot >= 4", "slot 3 is less than 4"),
        (f'{ATTRIBUTES}.type == "gpu" && {ATTRIBUTES}.slot == 4', "slot 3 is not 4"),
        (
            f'device.capacity["{DRIVER}"].memory.compareTo(quantity("64Gi")) >= 0',
            "memory 40Gi is less than 64Gi",
        ),
        (
            f'{ATTRIBUTES}.type == "a||b" || {ATTRIBUTES}.slot == 4',
            f'{ATTRIBUTES}.type == "a||b" || {ATTRIBUTES}.slot == 4; type is gpu, slot is 3',
        ),
        (f"{ATTRIBUTES}.slot in [1, 2]", f"{ATTRIBUTES}.slot in [1, 2]; slot is 3"),
        ('device.driver == "x"', f'device.driver == "x"; driver is {DRIVER}'),
        ("false", "false"),
    ],
)
def test_a_false_selector_is_put_into_words(expression: str, expected: str) -> None:
    tesla = device("d", T4, capacity={"memory": "40Gi"})
    assert explain_false(expression, DRIVER, tesla, CelFeatures()) == expected
