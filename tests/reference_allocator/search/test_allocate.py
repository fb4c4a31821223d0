"""What Kubernetes' recorded answers do not show of an allocation.

Which devices a claim gets, and every error, is in the answers of the real allocator (tests/oracle).
"""

from __future__ import annotations

from collections import Counter

from reference_allocator.allocator import Allocator
from reference_allocator.index import Index
from tests.reference_allocator.builders import (
    ALL,
    DRIVER,
    allocated,
    claim,
    device,
    device_class,
    devices,
    first_available,
    match,
    node,
    picked,
    request,
    resource_slice,
    solve,
    spec,
)


def test_the_search_stops_at_its_deadline() -> None:
    outcome = solve([resource_slice(devices(4))], claim(request(count=5)), deadline=0.0)
    assert outcome.kind == "timeout"
    assert outcome.error == "filter operation aborted: context deadline exceeded"


def test_a_search_as_deep_as_many_claims_with_32_devices_each_does_not_overflow() -> None:
    pools = [
        resource_slice(devices(128), name=f"s{index}", pool=f"p{index}") for index in range(10)
    ]
    claims = [claim(request(count=32), name=f"c{index}") for index in range(40)]
    assert len(picked(solve(pools, claims))) == 1280


def test_each_share_has_an_id_of_its_own_which_is_the_same_each_time() -> None:
    nic = resource_slice([device("nic", capacity={"bw": {"value": "10"}}, shared=True)])
    share = {"device": "nic", "shareID": "s1", "consumedCapacity": {"bw": "6"}}
    two = claim(request("a", capacity={"bw": "1"}), request("b", capacity={"bw": "1"}))
    outcomes = [solve([nic], two, taken=[allocated(share)]) for _ in range(2)]
    first, second = (
        [item["shareID"] for item in outcome.allocations[0]["devices"]["results"]]
        for outcome in outcomes
    )
    assert first == second
    assert len({*first, "s1"}) == 3


def test_an_alternative_with_more_devices_than_a_claim_can_get_is_passed_over() -> None:
    twice = [first_available(name, many=spec(20), few=spec(2)) for name in ("a", "b")]
    outcome = solve([resource_slice(devices(64))], claim(*twice))
    results = outcome.allocations[0]["devices"]["results"]
    assert Counter(item["request"] for item in results) == {"a/many": 20, "b/few": 2}


def test_a_search_knows_nothing_of_the_one_before() -> None:
    pairs = [device(f"d{number}", {"pair": number // 2}) for number in range(1, 9)]
    allocator = Allocator(Index(ALL, [resource_slice(pairs)], [device_class()]))
    two = claim(request(count=2), constraints=[match(f"{DRIVER}/pair")])
    assert picked(allocator.allocate(node(), [two])) == ["req=d2", "req=d3"]
    assert allocator.allocate(node(), [claim(request(count=9))]).kind == "none"
    assert picked(allocator.allocate(node(), [two])) == ["req=d2", "req=d3"]


def test_no_claims_are_satisfied() -> None:
    assert picked(solve([], [])) == []
