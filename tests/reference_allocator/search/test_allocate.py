"""What Kubernetes' recorded answers do not show of an allocation.

Which devices a claim gets, and every error, is in the answers of the real allocator (tests/oracle).
"""

from __future__ import annotations

from tests.reference_allocator.builders import (
    allocated,
    claim,
    device,
    devices,
    picked,
    request,
    resource_slice,
    solve,
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


def test_no_claims_are_satisfied() -> None:
    assert picked(solve([], [])) == []
