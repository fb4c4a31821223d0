"""Devices that are, or cost, CPU and memory of their node."""

from __future__ import annotations

import pytest

from reference_allocator.allocatable import (
    AllocatableError,
    PodClaim,
    claim_statuses,
    is_exclusive,
    list_insufficient_resources,
    sum_demand,
)
from reference_allocator.api import Node, ResourceSlice
from reference_allocator.api.quantity import Quantity, parse_quantity
from tests.reference_allocator.builders import DRIVER, NODE, Json, device, resource_slice

HERE = Node(NODE)
CORES = {"cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}}}
COMPLEX = {"cpu": {"mapping": {"deviceMultiplier": "8"}}}
GPU = {"memory": {"overhead": {"perPod": "1Gi", "perContainer": "512Mi"}}}


def published(**resources: Json) -> list[ResourceSlice]:
    content = [device(name, nodeAllocatableResources=item) for name, item in resources.items()]
    return [ResourceSlice.from_dict(resource_slice([*content, device("plain")]))]


def held(*names: str, reference: str = "ref", name: str = "claim", **consumed: str) -> PodClaim:
    results = [
        {
            "request": "r",
            "driver": DRIVER,
            "pool": "pool",
            "device": item,
            **({"consumedCapacity": consumed} if consumed else {}),
        }
        for item in names
    ]
    return PodClaim(reference, name, {"devices": {"results": results}})


def pod(*users: str, init: tuple[str, ...] = ()) -> Json:
    def containers(names: tuple[str, ...]) -> list[Json]:
        return [{"name": item, "resources": {"claims": [{"name": "ref"}]}} for item in names]

    return {"spec": {"initContainers": containers(init), "containers": containers(users)}}


def amounts(statuses: list[Json]) -> dict[str, str]:
    return {name: str(amount) for name, amount in sum_demand(statuses).items()}


def test_consumed_capacity_counts_by_its_multiplier() -> None:
    statuses = claim_statuses(pod("a"), [held("d", cores="4")], published(d=CORES), HERE)
    assert statuses == [
        {
            "resourceClaimName": "claim",
            "containers": ["a"],
            "mapping": [{"name": "cpu", "quantity": "8"}],
        }
    ]
    assert amounts(statuses) == {"cpu": "8"}


def test_devices_count_by_their_number() -> None:
    slices = published(d=COMPLEX, e=COMPLEX)
    statuses = claim_statuses(pod(), [held("d", "e")], slices, HERE)
    assert amounts(statuses) == {"cpu": "16"}
    assert "containers" not in statuses[0]


def test_overhead_counts_once_for_the_pod_and_once_for_each_container() -> None:
    claims = [held("d")]
    statuses = claim_statuses(pod("a", "b", init=("i",)), claims, published(d=GPU), HERE)
    assert statuses[0]["containers"] == ["i", "a", "b"]
    assert statuses[0]["overhead"] == [{"name": "memory", "perPod": "1Gi", "perContainer": "512Mi"}]
    assert amounts(statuses) == {"memory": "2560Mi"}
    assert amounts(claim_statuses(pod(), claims, published(d=GPU), HERE)) == {"memory": "1Gi"}


def test_claims_are_sorted_and_those_without_such_devices_left_out() -> None:
    slices = published(d=COMPLEX)
    claims = [held("d", name="b"), held("plain", name="x"), held("d", name="a")]
    statuses = claim_statuses(pod(), claims, slices, HERE)
    assert [item["resourceClaimName"] for item in statuses] == ["a", "b"]
    assert not claim_statuses(pod(), [held("gone")], slices, HERE)


def test_a_capacity_that_was_not_consumed_does_not_count() -> None:
    slices = published(d=CORES)
    assert not claim_statuses(pod(), [held("d", other="1")], slices, HERE)
    with pytest.raises(AllocatableError, match="ConsumedCapacity is nil"):
        claim_statuses(pod(), [held("d")], slices, HERE)


def test_a_device_that_is_gone_beside_one_that_counts_is_an_error() -> None:
    with pytest.raises(AllocatableError, match="device gone, driver"):
        claim_statuses(pod(), [held("d", "gone")], published(d=COMPLEX), HERE)


def test_devices_of_other_nodes_are_not_found() -> None:
    assert not claim_statuses(pod(), [held("d")], published(d=COMPLEX), Node("node-b"))


def test_only_claims_with_mapped_devices_are_exclusive() -> None:
    slices = published(d=COMPLEX, g=GPU)
    assert is_exclusive(held("g", "d").allocation, slices, HERE)
    assert not is_exclusive(held("g", "plain").allocation, slices, HERE)


def test_the_node_has_to_have_what_pod_and_claims_ask_for_together() -> None:
    def quantities(**texts: str) -> dict[str, Quantity]:
        return {name.replace("_", "-"): parse_quantity(text) for name, text in texts.items()}

    def missing(cpu: str, extra: str, used: str) -> list[str]:
        return list_insufficient_resources(
            quantities(cpu=cpu, memory="1Gi"),
            quantities(cpu=extra),
            quantities(cpu="4", memory="2Gi"),
            quantities(cpu=used),
        )

    assert missing("1", "2", "1") == []
    assert missing("1", "2", "1001m") == ["Insufficient cpu"]
    assert missing("5", "0", "0") == ["Insufficient cpu"]
