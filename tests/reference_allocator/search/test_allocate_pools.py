"""Which devices a node can use, and in which order they are tried."""

from __future__ import annotations

import pytest

from reference_allocator.features import Features
from tests.reference_allocator.builders import (
    DRIVER,
    Json,
    claim,
    device,
    devices,
    node,
    picked,
    request,
    resource_slice,
    solve,
)

ONE = claim(request())
ALL_OF_THEM = claim(request("r", everything=True))


def named(*names: str) -> list[Json]:
    return [device(name) for name in names]


def test_pools_are_tried_by_driver_and_name_and_slices_by_name() -> None:
    slices = [
        resource_slice(named("d3"), name="z", pool="b"),
        resource_slice(named("d2"), name="y", pool="a", slices=2),
        resource_slice(named("d1"), name="x", pool="a", slices=2),
        resource_slice(named("d0"), name="w", pool="z", driver="a.example.com"),
    ]
    assert picked(solve(slices, claim(request("r", 4)))) == ["r=d0", "r=d1", "r=d2", "r=d3"]


def test_pools_with_binding_conditions_are_tried_last() -> None:
    slices = [
        resource_slice([device("d1"), device("d2", bindingConditions=["c"])], pool="a"),
        resource_slice(named("d0"), name="other", pool="b"),
    ]
    outcome = solve(slices, claim(request("r", 3)))
    assert picked(outcome) == ["r=d0", "r=d1", "r=d2"]
    assert outcome.allocations[0]["devices"]["results"][2]["bindingConditions"] == ["c"]


def test_devices_with_binding_conditions_are_not_used_while_the_feature_is_off() -> None:
    slices = [resource_slice([device("d1", bindingConditions=["c"]), device("d2")])]
    assert picked(solve(slices, ONE, features=Features())) == ["req=d2"]


def test_only_the_newest_generation_counts() -> None:
    slices = [
        resource_slice(named("old"), name="a"),
        resource_slice(named("new"), name="b", generation=2),
    ]
    assert picked(solve(slices, ALL_OF_THEM)) == ["r=new"]


def test_devices_of_an_incomplete_pool_are_not_used() -> None:
    slices = [
        resource_slice(named("a"), slices=2),
        resource_slice(named("b"), name="other", pool="z"),
    ]
    assert picked(solve(slices, ONE)) == ["req=b"]


def test_all_devices_are_an_error_while_any_pool_is_incomplete() -> None:
    slices = [
        resource_slice(named("a"), name="s", driver="other.example.com", slices=2),
        resource_slice(named("b")),
    ]
    assert solve(slices, ALL_OF_THEM).error == (
        "claim default/claim, request r: asks for all devices, but resource pool "
        "other.example.com/pool is currently being updated"
    )


def test_all_devices_are_an_error_while_any_pool_is_invalid() -> None:
    slices = [resource_slice(named("a", "a"))]
    assert solve(slices, ALL_OF_THEM).error == (
        "claim default/claim, request r: asks for all devices, but resource pool "
        f"{DRIVER}/pool is currently invalid"
    )


def test_an_invalid_pool_is_an_error_of_the_node_if_nothing_else_is_found() -> None:
    slices = [resource_slice(named("a", "a"))]
    outcome = solve(slices, ONE)
    assert (outcome.kind, outcome.error) == ("nodeError", "invalid resource pools were encountered")
    slices.append(resource_slice(named("b"), name="s", pool="z"))
    assert picked(solve(slices, ONE)) == ["req=b"]


def test_slices_for_other_nodes_complete_a_pool() -> None:
    slices = [
        resource_slice(named("a"), name="s1", slices=2),
        resource_slice(named("b"), name="s2", slices=2, node="node-b"),
    ]
    assert picked(solve(slices, ALL_OF_THEM)) == ["r=a"]


def test_a_generation_replaced_on_another_node_only_hides_an_incomplete_pool() -> None:
    newer = resource_slice(named("b"), name="s2", generation=2, node="node-b")
    stale_complete = resource_slice(named("a"), name="s1")
    assert picked(solve([stale_complete, newer], ONE)) == ["req=a"]
    stale_incomplete = resource_slice(named("a"), name="s1", slices=2)
    assert solve([stale_incomplete, newer], ALL_OF_THEM).kind == "none"


LABEL = {"key": "zone", "operator": "In", "values": ["x"]}


def selector(*expressions: Json, fields: list[Json] | None = None) -> Json:
    term: Json = {}
    if expressions:
        term["matchExpressions"] = list(expressions)
    if fields:
        term["matchFields"] = fields
    return {"nodeSelectorTerms": [term]}


@pytest.mark.parametrize(
    ("spec", "usable"),
    [
        ({"nodeName": "node-a"}, True),
        ({"nodeName": "node-b"}, False),
        ({"allNodes": True}, True),
        ({"nodeSelector": selector(LABEL)}, True),
        ({"nodeSelector": selector({**LABEL, "values": ["y", "z"]})}, False),
        ({"nodeSelector": selector({**LABEL, "operator": "NotIn"})}, False),
        ({"nodeSelector": selector({"key": "gone", "operator": "NotIn", "values": ["x"]})}, True),
        ({"nodeSelector": selector({"key": "zone", "operator": "Exists"})}, True),
        ({"nodeSelector": selector({"key": "zone", "operator": "DoesNotExist"})}, False),
        ({"nodeSelector": selector({"key": "size", "operator": "Gt", "values": ["4"]})}, True),
        ({"nodeSelector": selector({"key": "size", "operator": "Lt", "values": ["4"]})}, False),
        ({"nodeSelector": selector({"key": "zone", "operator": "Gt", "values": ["4"]})}, False),
        ({"nodeSelector": selector(LABEL, {"key": "gone", "operator": "Exists"})}, False),
        ({"nodeSelector": {"nodeSelectorTerms": [{}]}}, False),
        ({"nodeSelector": {"nodeSelectorTerms": []}}, False),
        (
            {
                "nodeSelector": selector(
                    fields=[{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]
                )
            },
            True,
        ),
        (
            {
                "nodeSelector": selector(
                    fields=[{"key": "metadata.name", "operator": "NotIn", "values": ["node-a"]}]
                )
            },
            False,
        ),
        ({}, False),
    ],
)
def test_node_selection_of_slices(spec: Json, usable: bool) -> None:
    outcome = solve(
        [resource_slice(named("d"), node=None, **spec)], ONE, on=node(zone="x", size="5")
    )
    assert outcome.kind == ("allocated" if usable else "none")


def test_one_of_several_terms_of_a_selector_is_enough() -> None:
    terms = {"nodeSelectorTerms": [*selector({**LABEL, "values": ["y"]})["nodeSelectorTerms"]]}
    slices = [resource_slice([device("d", nodeSelector=terms)], node=None, allNodes=True)]
    assert solve(slices, ONE, on=node(zone="x")).kind == "allocated"


def test_a_selector_that_does_not_parse_is_fatal() -> None:
    slices = [resource_slice(named("d"), node=None, nodeSelector=selector({**LABEL, "values": []}))]
    outcome = solve(slices, ONE)
    assert outcome.kind == "error"
    assert outcome.error == (
        "gather pool information: failed to perform node selection for slice slice: failed to "
        "parse node selector &NodeSelector{NodeSelectorTerms:[]NodeSelectorTerm{NodeSelectorTerm{"
        "MatchExpressions:[]NodeSelectorRequirement{NodeSelectorRequirement{Key:zone,Operator:In,"
        "Values:[],},},MatchFields:[]NodeSelectorRequirement{},},},}: "
        "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: []: for 'in', 'notin' "
        "operators, values set can't be empty"
    )


def test_devices_can_select_nodes_themselves() -> None:
    slices = [
        resource_slice(
            [
                device("a", nodeName="node-b"),
                device("b", nodeSelector=selector({**LABEL, "values": ["y"]})),
                device("c", allNodes=True),
                device("d", nodeName="node-a"),
            ],
            node=None,
            perDeviceNodeSelection=True,
        )
    ]
    assert picked(solve(slices, ALL_OF_THEM, on=node(zone="x"))) == ["r=c", "r=d"]
    off = Features(prioritized_list=True)
    assert solve(slices, ONE, on=node(zone="x"), features=off).kind == "none"


def test_the_result_is_bound_to_the_node_by_any_local_device() -> None:
    slices = [
        resource_slice(named("a"), pool="p1", name="s1", node=None, allNodes=True),
        resource_slice(named("b"), pool="p2", name="s2"),
    ]
    here = {"key": "metadata.name", "operator": "In", "values": ["node-a"]}
    outcome = solve(slices, claim(request("r", 2)))
    assert outcome.allocations[0]["nodeSelector"] == {
        "nodeSelectorTerms": [{"matchFields": [here]}]
    }
    assert "nodeSelector" not in solve(slices, ONE).allocations[0]
    binds = [resource_slice([device("a", bindsToNode=True)], node=None, allNodes=True)]
    assert "nodeSelector" in solve(binds, ONE).allocations[0]


def test_the_result_selects_the_nodes_that_all_devices_select() -> None:
    rack = {"key": "rack", "operator": "Exists"}
    swapped = {**LABEL, "values": ["z", "x"]}
    slices = [
        resource_slice(named("a"), pool="p1", name="s1", node=None, nodeSelector=selector(LABEL)),
        resource_slice(
            named("b"), pool="p2", name="s2", node=None, nodeSelector=selector(rack, LABEL)
        ),
        resource_slice(named("c"), pool="p3", name="s3", node=None, nodeSelector=selector(swapped)),
    ]
    outcome = solve(slices, claim(request("r", 3)), on=node(zone="x", rack="1"))
    assert outcome.allocations[0]["nodeSelector"] == {
        "nodeSelectorTerms": [{"matchExpressions": [LABEL, rack, swapped]}]
    }


def test_devices_that_skip_node_operations_need_a_node_that_says_so() -> None:
    slices = [resource_slice(named("a"), skipNodeOperations=["*"])]
    assert solve(slices, ONE).kind == "none"
    declares = node("node-a", "DRAOptionalNodeOperations")
    assert solve(slices, ONE, on=declares, features=Features()).kind == "none"
    outcome = solve(slices, ONE, on=declares)
    assert outcome.allocations[0]["devices"]["results"][0]["skipNodeOperations"] == ["*"]


def test_slices_without_devices_and_nodes_without_slices_find_nothing() -> None:
    assert solve([], ONE).kind == "none"
    assert solve([resource_slice()], ONE).kind == "none"
    assert solve([resource_slice(devices(1))], ONE, on=node("node-b")).kind == "none"
