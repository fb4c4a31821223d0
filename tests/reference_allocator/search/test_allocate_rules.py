"""Constraints, taints, counters, groups, capacity and configuration."""

from __future__ import annotations

import pytest

from reference_allocator.features import Features
from tests.reference_allocator.builders import (
    ALL,
    DRIVER,
    Json,
    allocated,
    claim,
    device,
    device_class,
    devices,
    distinct,
    first_available,
    match,
    opaque,
    picked,
    request,
    resource_slice,
    solve,
    spec,
)

ROOT = f"{DRIVER}/root"
OFF = Features(prioritized_list=True)
"""No lists."""


def with_roots(*roots: object) -> list[Json]:
    return [
        resource_slice(
            [
                device(f"d{index}", {} if root is None else {"root": root})
                for index, root in enumerate(roots)
            ]
        )
    ]


@pytest.mark.parametrize(
    ("roots", "constraint", "features", "expected"),
    [
        (["a", "b", "b"], match(ROOT), OFF, ["d1", "d2"]),
        (["a", "b", "c"], match(ROOT), OFF, None),
        ([1, "1", 1], match(ROOT), OFF, ["d0", "d2"]),
        ([True, 1, True], match(ROOT), OFF, ["d0", "d2"]),
        (["1.0.0", ("version", "1.0.0"), ("version", "1.0.0")], match(ROOT), OFF, ["d1", "d2"]),
        ([None, "a", "a"], match(ROOT), OFF, ["d1", "d2"]),
        (["a", "b"], match("other.example.com/root"), OFF, None),
        ([["a"], ["a"], "a", "a"], match(ROOT), OFF, ["d2", "d3"]),
        ([["a", "b"], "c", ["b", "c"]], match(ROOT), ALL, ["d0", "d2"]),
        ([["a", "b"], "b"], match(ROOT), ALL, ["d0", "d1"]),
        ([[1], ["1"], 1], match(ROOT), ALL, ["d0", "d2"]),
        (["a", "a", "b"], distinct(ROOT), OFF, ["d0", "d2"]),
        (["a", "a"], distinct(ROOT), OFF, None),
        ([1, "1"], distinct(ROOT), OFF, ["d0", "d1"]),
        (["a", ["b"], "b"], distinct(ROOT), OFF, ["d0", "d2"]),
        ([["b"], "b"], distinct(ROOT), OFF, ["d0", "d1"]),
        ([["a", "b"], ["b", "c"], "c"], distinct(ROOT), ALL, ["d0", "d2"]),
        ([None, "a", "b"], distinct(ROOT), OFF, ["d1", "d2"]),
    ],
)
def test_constraints_between_two_devices(
    roots: list[object], constraint: Json, features: Features, expected: list[str] | None
) -> None:
    outcome = solve(
        with_roots(*roots), claim(request("r", 2), constraints=[constraint]), features=features
    )
    if expected is None:
        assert outcome.kind == "none"
    else:
        assert picked(outcome) == [f"r={name}" for name in expected]


def test_a_constraint_concerns_only_the_requests_that_it_names() -> None:
    slices = with_roots("a", "b", "a")
    wanted = claim(request("x"), request("y"), request("z"), constraints=[match(ROOT, "x", "z")])
    assert picked(solve(slices, wanted)) == ["x=d0", "y=d1", "z=d2"]


@pytest.mark.parametrize(("name", "expected"), [("r", "d2"), ("r/s", "d2"), ("r/t", "d1")])
def test_a_constraint_names_requests_or_subrequests(name: str, expected: str) -> None:
    slices = with_roots("a", "b", "a")
    wanted = claim(
        request("x"), first_available("r", s=spec(), t=spec()), constraints=[match(ROOT, "x", name)]
    )
    assert picked(solve(slices, wanted)) == ["x=d0", f"r/s={expected}"]


def test_the_search_gives_up_a_device_that_no_other_matches() -> None:
    slices = with_roots("a", "b", "c", "b")
    wanted = claim(request("x"), request("y"), constraints=[match(ROOT)])
    assert picked(solve(slices, wanted)) == ["x=d1", "y=d3"]


MODEL = f'device.attributes["{DRIVER}"].model'


def derived(expression: str, count: int = 2) -> Json:
    more = {"name": ROOT, "expression": expression}
    return claim(request("r", count, derivedAttributes=[more]), constraints=[match(ROOT)])


def test_a_derived_attribute_hides_the_published_one_for_constraints() -> None:
    content = [
        device("d0", {"model": "a-1", "root": "x"}),
        device("d1", {"model": "b-1", "root": "x"}),
        device("d2", {"model": "a-2", "root": "y"}),
    ]
    wanted = derived(f'{MODEL}.split("-")[0]')
    assert picked(solve([resource_slice(content)], wanted)) == ["r=d0", "r=d2"]


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (f"{MODEL}.nope", f"evaluate derived attribute {ROOT} on device {DRIVER}/pool/d0 failed: "),
        ("nope(", f"compile derived attribute {ROOT} failed: compilation failed: "),
        ("device", f"compile derived attribute {ROOT} failed: must evaluate to "),
    ],
)
def test_a_derived_attribute_without_a_value_is_fatal(expression: str, error: str) -> None:
    outcome = solve([resource_slice([device("d0", {"model": "a"})])], derived(expression))
    assert outcome.kind == "error"
    assert outcome.error.startswith(error)


def test_a_constraint_in_the_way_of_all_devices_is_fatal_even_in_an_alternative() -> None:
    slices = with_roots("a", "b")
    options = first_available("r", s=spec(everything=True), t=spec())
    outcome = solve(slices, claim(options, constraints=[match(ROOT)]))
    assert outcome.kind == "error"
    assert outcome.error == (
        f"claim default/claim, request s: cannot add device {DRIVER}/pool/d1 because a claim "
        "constraint would not be satisfied"
    )


@pytest.mark.parametrize(
    ("taint", "toleration", "usable"),
    [
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, None, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, None, False),
        ({"key": "k", "value": "v", "effect": "None"}, None, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "k", "value": "w"}, False),
        ({"key": "k", "effect": "NoSchedule"}, {"operator": "Exists"}, True),
        ({"key": "k", "effect": "NoSchedule"}, {"key": "j", "operator": "Exists"}, False),
        (
            {"key": "k", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute"},
            False,
        ),
        ({"key": "k", "effect": "NoSchedule"}, {"key": "k", "operator": "Maybe"}, False),
    ],
)
def test_taints_have_to_be_tolerated(taint: Json, toleration: Json | None, usable: bool) -> None:
    slices = [resource_slice([device("d", taints=[taint])])]
    more: Json = {} if toleration is None else {"tolerations": [toleration]}
    wanted = claim(request("r", **more))
    outcome = solve(slices, wanted)
    assert outcome.kind == ("allocated" if usable else "none")
    assert solve(slices, wanted, features=OFF).kind == "allocated"
    if usable and toleration is not None:
        (result,) = outcome.allocations[0]["devices"]["results"]
        assert (
            result["tolerations"]
            == wanted["spec"]["devices"]["requests"][0]["exactly"]["tolerations"]
        )


def partitions(*amounts: int, total: int = 4, **more: object) -> list[Json]:
    """Devices p0, p1, ... that draw the given amounts on one counter."""
    return [
        resource_slice(name="counters", slices=2, counters={"gpu0": {"mem": f"{total}Gi"}}),
        resource_slice(
            [
                device(f"p{index}", counters={"gpu0": {"mem": f"{amount}Gi"}})
                for index, amount in enumerate(amounts)
            ],
            name="devices",
            slices=2,
        ),
    ]


def test_partitions_share_the_counters_of_their_device() -> None:
    slices = partitions(4, 2, 2, 1)
    assert picked(solve(slices, claim(request("r", 2)))) == ["r=p1", "r=p2"]
    assert solve(slices, claim(request("r", 3))).kind == "none"
    outcome = solve(slices, claim(request()), taken=[allocated("p1")])
    assert picked(outcome) == ["req=p2"]
    assert solve(slices, claim(request()), taken=[allocated("p0")]).kind == "none"


def test_an_overdrawn_counter_blocks_every_partition_of_the_pool() -> None:
    slices = partitions(3, 3, 0)
    assert solve(slices, claim(request()), taken=[allocated("p0", "p1")]).kind == "none"


def test_admin_access_draws_on_counters_too() -> None:
    slices = partitions(4)
    wanted = claim(request("r", adminAccess=True))
    assert picked(solve(slices, wanted)) == ["r=p0"]
    assert solve(slices, wanted, taken=[allocated("p0")]).kind == "none"


def test_partitions_are_not_used_while_the_feature_is_off() -> None:
    slices = [resource_slice([device("a", counters={"s": {"c": "1"}}), device("b")])]
    assert picked(solve(slices, claim(request()), features=OFF)) == ["req=b"]


@pytest.mark.parametrize(
    ("slices", "kind"),
    [
        ([resource_slice([device("a", counters={"nope": {"mem": "1"}})])], "nodeError"),
        (
            [
                resource_slice(name="c", slices=2, counters={"set": {"mem": "1"}}),
                resource_slice([device("a", counters={"set": {"cpu": "1"}})], slices=2),
            ],
            "nodeError",
        ),
        (
            [
                resource_slice(name="c1", slices=3, counters={"set": {"mem": "1"}}),
                resource_slice(name="c2", slices=3, counters={"set": {"mem": "1"}}),
                resource_slice([device("a")], slices=3),
            ],
            "nodeError",
        ),
    ],
)
def test_pools_with_wrong_counters_are_invalid(slices: list[Json], kind: str) -> None:
    assert solve(slices, claim(request())).kind == kind


def grouped(*groups: list[str]) -> list[Json]:
    return [
        resource_slice(name="counters", slices=2, counters={"gpu0": {"mem": "9"}}),
        resource_slice(
            [
                device(f"p{index}", counters={"gpu0": {"mem": "1"}}, groups=names)
                for index, names in enumerate(groups)
            ],
            name="devices",
            slices=2,
        ),
    ]


@pytest.mark.parametrize(
    ("groups", "taken", "count", "expected"),
    [
        ([["a"], ["b"], ["a"]], [], 2, ["p0", "p2"]),
        ([["a", "b"], ["b", "c"], ["a", "c"]], [], 3, None),
        ([["a"], [], []], [], 2, ["p1", "p2"]),
        ([["a"], ["b"], ["a"]], ["p1"], 1, None),
        ([["a"], ["b"], ["b"]], ["p1"], 1, ["p2"]),
        ([["a"], [], ["b"]], ["p1"], 1, None),
    ],
)
def test_partitions_in_use_together_share_a_compatibility_group(
    groups: list[list[str]], taken: list[str], count: int, expected: list[str] | None
) -> None:
    outcome = solve(
        grouped(*groups), claim(request("r", count)), taken=[allocated(*taken)] if taken else []
    )
    if expected is None:
        assert outcome.kind == "none"
    else:
        assert picked(outcome) == [f"r={name}" for name in expected]


def test_slices_with_compatibility_groups_are_left_out_while_the_feature_is_off() -> None:
    features = Features(partitionable_devices=True)
    assert solve(grouped(["a"]), claim(request()), features=features).kind == "none"


def shareable(policy: Json | None = None, value: str = "10") -> list[Json]:
    capacity: Json = {"value": value}
    if policy is not None:
        capacity["requestPolicy"] = policy
    return [resource_slice([device("nic", capacity={"bw": capacity}, shared=True)])]


RANGE = {"default": "2", "validRange": {"min": "2", "max": "8", "step": "3"}}
VALUES = {"default": "1", "validValues": ["1", "4", "10"]}


@pytest.mark.parametrize(
    ("policy", "asked", "consumed"),
    [
        (None, None, "10"),
        (None, "3", "3"),
        (RANGE, None, "2"),
        (RANGE, "1", "2"),
        (RANGE, "3", "5"),
        (RANGE, "5", "5"),
        (RANGE, "6", "8"),
        (RANGE, "9", None),
        (VALUES, None, "1"),
        (VALUES, "2", "4"),
        (VALUES, "11", None),
        ({"default": "3", "validRange": {"min": "2", "max": "8"}}, "2500m", "2500m"),
    ],
)
def test_a_request_is_rounded_up_to_what_the_policy_allows(
    policy: Json | None, asked: str | None, consumed: str | None
) -> None:
    more: Json = {} if asked is None else {"capacity": {"bw": asked}}
    outcome = solve(shareable(policy), claim(request("r", **more)))
    if consumed is None:
        assert outcome.kind == "none"
        return
    (result,) = outcome.allocations[0]["devices"]["results"]
    assert result["consumedCapacity"] == {"bw": consumed}
    assert result["shareID"]


def test_fractions_count_where_the_feature_is_on() -> None:
    policy = {"default": "500m", "validRange": {"min": "500m", "step": "250m"}}
    wanted = claim(request("r", capacity={"bw": "600m"}))
    (result,) = solve(shareable(policy), wanted).allocations[0]["devices"]["results"]
    assert result["consumedCapacity"] == {"bw": "750m"}


def test_shares_add_up_to_the_capacity() -> None:
    slices = shareable()
    four = [claim(request("r", capacity={"bw": "3"}), name=f"c{index}") for index in range(4)]
    assert picked(solve(slices, four[:3])) == ["r=nic"] * 3
    assert solve(slices, four).kind == "none"
    share = {"device": "nic", "shareID": "s1", "consumedCapacity": {"bw": "6"}}
    assert picked(solve(slices, four[:1], taken=[allocated(share)])) == ["r=nic"]
    assert solve(slices, four[:2], taken=[allocated(share)]).kind == "none"


def test_one_request_gets_one_share_of_a_device() -> None:
    slices = shareable()
    assert solve(slices, claim(request("r", 2, capacity={"bw": "1"}))).kind == "none"
    two = claim(request("a", capacity={"bw": "1"}), request("b", capacity={"bw": "1"}))
    outcome = solve(slices, two)
    ids = {item["shareID"] for item in outcome.allocations[0]["devices"]["results"]}
    assert len(ids) == 2


def test_a_device_without_the_requested_capacity_is_passed_over() -> None:
    slices = [resource_slice([device("a"), device("b", capacity={"mem": "4Gi"})])]
    assert picked(solve(slices, claim(request("r", capacity={"mem": "1Gi"})))) == ["r=b"]
    assert solve(slices, claim(request("r", capacity={"mem": "8Gi"}))).kind == "none"


REPRESENTABLE = (
    "capacity request cannot be represented in the device's range arithmetic: request "
    "9223372036854775807 is not a representable milli value"
)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [("-1", "capacity value is negative"), ("9223372036854775807", REPRESENTABLE)],
)
def test_a_capacity_request_that_cannot_be_computed_is_fatal(asked: str, problem: str) -> None:
    policy = None if asked == "-1" else {"default": "2", "validRange": {"min": "2", "step": "3"}}
    slices = [
        resource_slice([device("a", capacity={"bw": {"value": "9", "requestPolicy": policy}})])
    ]
    outcome = solve(slices, claim(request("r", capacity={"bw": asked})))
    assert outcome.kind == "error"
    assert outcome.error == (
        f"claim default/claim, request r: checking capacity for device {DRIVER}/pool/a: "
        f'capacity "bw": {problem}'
    )


def test_further_shares_do_not_draw_on_counters_again() -> None:
    slices = [
        resource_slice(name="c", slices=2, counters={"set": {"n": "1"}}),
        resource_slice(
            [device("nic", capacity={"bw": "10"}, counters={"set": {"n": "1"}}, shared=True)],
            slices=2,
        ),
    ]
    two = [claim(request("r", capacity={"bw": "3"}), name=f"c{index}") for index in range(2)]
    assert picked(solve(slices, two)) == ["r=nic", "r=nic"]


def test_config_of_classes_comes_first_each_class_once() -> None:
    classes = [
        device_class("gpu", config=[opaque("gpu1"), opaque("gpu2")]),
        device_class("nic", config=[opaque("nic")]),
    ]
    wanted = claim(
        request("a"),
        request("b", class_name="nic"),
        request("c"),
        config=[
            opaque("global"),
            {"requests": ["b", "a"], **opaque("two")},
            {"requests": ["a", "b", "c"], **opaque("every")},
        ],
    )
    outcome = solve([resource_slice(devices(3))], wanted, classes=classes)
    assert outcome.allocations[0]["devices"]["config"] == [
        {"source": "FromClass", "requests": ["a", "c"], **opaque("gpu1")},
        {"source": "FromClass", "requests": ["a", "c"], **opaque("gpu2")},
        {"source": "FromClass", "requests": ["b"], **opaque("nic")},
        {"source": "FromClaim", **opaque("global")},
        {"source": "FromClaim", "requests": ["b", "a"], **opaque("two")},
        {"source": "FromClaim", **opaque("every")},
    ]


def test_config_concerns_only_the_chosen_alternative() -> None:
    classes = [
        device_class("gpu", config=[opaque("gpu")]),
        device_class("nic", "false", config=[opaque("nic")]),
    ]
    wanted = claim(
        first_available("r", x=spec(class_name="nic"), y=spec()),
        request("s"),
        config=[
            {"requests": ["r/x"], **opaque("x")},
            {"requests": ["r/y"], **opaque("y")},
            {"requests": ["r"], **opaque("r")},
        ],
    )
    outcome = solve([resource_slice(devices(2))], wanted, classes=classes)
    assert outcome.allocations[0]["devices"]["config"] == [
        {"source": "FromClass", **opaque("gpu")},
        {"source": "FromClaim", "requests": ["r/y"], **opaque("y")},
        {"source": "FromClaim", "requests": ["r"], **opaque("r")},
    ]
