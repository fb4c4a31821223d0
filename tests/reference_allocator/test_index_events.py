"""An index that hears of events answers as one that is built anew from what there is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_allocator.allocator import Allocator, Outcome
from reference_allocator.api import Node, ResourceClaim, ResourceSlice
from reference_allocator.api.reading import InputError
from reference_allocator.features import Features
from reference_allocator.index import Index
from tests.reference_allocator.builders import (
    ALL,
    DRIVER,
    Json,
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
    spec,
)

KIND = f'device.attributes["{DRIVER}"].kind'
NODES = [node("node-a", zone="x"), node("node-b", zone="y"), node("node-c")]
WANTED = [
    claim(request(count=1)),
    claim(request(count=2), constraints=[match(f"{DRIVER}/root")]),
    claim(request("r", 2, f'{KIND} == "x"')),
    claim(request(everything=True)),
    claim(first_available("f", big=spec(3), small=spec(1, f'{KIND} != "x"'))),
    claim(request(capacity={"bw": "2"})),
]


@dataclass
class Model:
    """What is in the cluster, by name."""

    slices: dict[str, Json] = field(default_factory=dict)
    claims: dict[str, Json] = field(default_factory=dict)
    classes: dict[str, Json] = field(default_factory=dict)


_places: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"node": "node-a"},
        {"node": "node-a"},
        {"node": "node-b"},
        {"node": None, "allNodes": True},
        {
            "node": None,
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}
                ]
            },
        },
        {"node": None, "perDeviceNodeSelection": True},
        {
            "node": None,
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Bad"}]}]
            },
        },
    ]
)


@st.composite
def _slices(draw: st.DrawFn) -> Json:
    placement = dict(draw(_places))
    built: list[Json] = []
    for index in range(draw(st.integers(1, 3))):
        optional_fields: dict[str, Any] = {}
        if draw(st.booleans()):
            optional_fields["counters"] = {"set": {"n": str(draw(st.integers(1, 2)))}}
        if draw(st.integers(0, 2)) == 0:
            optional_fields["capacity"] = {"bw": "3"}
            optional_fields["shared"] = draw(st.booleans())
        if placement.get("perDeviceNodeSelection"):
            optional_fields["nodeName"] = draw(st.sampled_from(["node-a", "node-b"]))
        if draw(st.integers(0, 5)) == 0:
            optional_fields["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        if draw(st.integers(0, 7)) == 0:
            optional_fields["bindingConditions"] = ["ready"]
        attributes = {"kind": draw(st.sampled_from("xy")), "root": draw(st.sampled_from("ab"))}
        built.append(device(f"d{draw(st.integers(0, 1))}{index}", attributes, **optional_fields))
    counters = {"set": {"n": "3"}} if draw(st.integers(0, 3)) == 0 else None
    return resource_slice(
        () if counters else built,
        name=draw(st.sampled_from(["s0", "s1", "s2", "s3"])),
        pool=draw(st.sampled_from(["pool", "pool", "other"])),
        generation=draw(st.integers(1, 2)),
        slices=draw(st.sampled_from([1, 1, 2, 3])),
        counters=counters,
        **placement,
    )


@st.composite
def _allocated(draw: st.DrawFn) -> Json:
    results: list[Json] = []
    for _ in range(draw(st.integers(0, 2))):
        name = f"d{draw(st.integers(0, 1))}{draw(st.integers(0, 2))}"
        result: Json = {"device": name, "pool": draw(st.sampled_from(["pool", "other"]))}
        if draw(st.booleans()):
            result["shareID"] = f"share-{draw(st.integers(0, 9))}"
            result["consumedCapacity"] = {"bw": str(draw(st.integers(0, 2)))}
        results.append(result)
    return allocated(*results, name=draw(st.sampled_from(["c0", "c1", "c2"])))


_events = st.one_of(
    st.tuples(st.just("slice"), _slices()),
    st.tuples(st.just("slice"), _slices()),
    st.tuples(st.just("claim"), _allocated()),
    st.tuples(st.just("no slice"), st.sampled_from(["s0", "s1", "s2", "s3"])),
    st.tuples(st.just("no claim"), st.sampled_from(["c0", "c1", "c2"])),
    st.tuples(st.just("class"), st.sampled_from([(), (f'{KIND} == "y"',)])),
    st.tuples(st.just("no class"), st.just("gpu")),
)


def _apply(event: tuple[str, Any], index: Index, model: Model) -> None:
    match event:
        case "slice", item:
            index.put_slice(item)
            model.slices[item["metadata"]["name"]] = item
        case "no slice", name:
            assert index.remove_slice(name) == (model.slices.pop(name, None) is not None)
        case "claim", item:
            index.put_claim(item)
            model.claims[item["metadata"]["name"]] = item
        case "no claim", name:
            held = model.claims.pop(name, None)
            had = bool(held and held["status"]["allocation"]["devices"]["results"])
            assert index.remove_claim("default", name) == had
        case "class", selectors:
            item = device_class("gpu", *selectors)
            index.put_class(item)
            model.classes["gpu"] = item
        case "no class", name:
            assert index.remove_class(name) == (model.classes.pop(name, None) is not None)
        case other:
            raise AssertionError(other)


def _fresh(features: Features, index: Index, model: Model) -> Allocator:
    """An allocator built of what is there; the order of slices is the index's own."""
    slices = list(index.views.list_slices())
    assert sorted(item.name for item in slices) == sorted(model.slices)
    ordered = [model.slices[item.name] for item in slices]
    return Allocator(Index(features, ordered, [*model.classes.values()], [*model.claims.values()]))


@given(st.lists(_events, max_size=12), st.lists(st.integers(0, 2), min_size=1), st.booleans())
def test_after_any_history_the_answers_are_those_of_a_new_allocator(
    events: list[tuple[str, Any]], asked: list[int], everything: bool
) -> None:
    features = ALL if everything else Features.for_version("1.37")
    model = Model(classes={"gpu": device_class()})
    index = Index(features, [], [device_class()], [])
    allocator = Allocator(index)
    for number, event in enumerate(events):
        _apply(event, index, model)
        fresh = _fresh(features, index, model)
        # Not all nodes are asked after each event, so that some views miss several.
        nodes = [NODES[asked[number % len(asked)]]] if number + 1 < len(events) else NODES
        for on in nodes:
            for wanted_claim in WANTED:
                assert allocator.allocate(on, [wanted_claim]) == fresh.allocate(on, [wanted_claim])


def _answers(index: Index) -> list[Outcome]:
    return [Allocator(index).allocate(node(), [wanted_claim]) for wanted_claim in WANTED]


def test_a_claim_that_goes_gives_its_devices_back() -> None:
    index = Index(ALL, [resource_slice(devices(2))], [device_class()])
    answers_before = _answers(index)
    index.put_claim(allocated("dev-0"))
    assert picked(Allocator(index).allocate(node(), [WANTED[0]])) == ["req=dev-1"]
    assert index.remove_claim("default", "other")
    assert _answers(index) == answers_before


def test_an_update_of_a_claim_counts_its_devices_once() -> None:
    index = Index(ALL, [resource_slice(devices(2))], [device_class()])
    for _ in range(3):
        index.put_claim(allocated("dev-0"))
    index.remove_claim("default", "other")
    assert picked(Allocator(index).allocate(node(), [WANTED[0]])) == ["req=dev-0"]


def test_a_device_of_two_claims_is_free_when_both_are_gone() -> None:
    held = [allocated("dev-0", name="a"), allocated("dev-0", name="b")]
    index = Index(ALL, [resource_slice(devices(1))], [device_class()], held)
    for name in "ab":
        assert Allocator(index).allocate(node(), [WANTED[0]]).kind == "none"
        index.remove_claim("default", name)
    assert picked(Allocator(index).allocate(node(), [WANTED[0]])) == ["req=dev-0"]


def test_a_changed_device_is_judged_anew_and_an_unchanged_one_is_not() -> None:
    content = [device("a", {"kind": "x"}), device("b", {"kind": "x"})]
    index = Index(ALL, [resource_slice(content)], [device_class()])
    wanted_claims = [claim(request("r", 1, f'{KIND} == "y"'))]
    allocator = Allocator(index)
    assert allocator.allocate(node(), wanted_claims).kind == "none"
    changed = [device("a", {"kind": "x"}), device("b", {"kind": "y"})]
    facts_before = [entry.facts for entry in index.views.get_view(_node()).candidates]
    index.put_slice(resource_slice(changed, generation=2))
    assert picked(allocator.allocate(node(), wanted_claims)) == ["r=b"]
    facts_after = [entry.facts for entry in index.views.get_view(_node()).candidates]
    assert [old is new for old, new in zip(facts_before, facts_after, strict=True)] == [True, False]


def test_an_event_of_another_node_leaves_the_view_of_a_node_alone() -> None:
    slices = [
        resource_slice(devices(2), name=name, pool=name, node=name) for name in ("node-a", "node-b")
    ]
    index = Index(ALL, slices, [device_class()])
    allocator = Allocator(index)
    assert allocator.allocate(node("node-a"), [WANTED[0]]).kind == "allocated"
    pool_before = index.views.get_view(_node()).pools[0]
    index.put_slice(resource_slice(devices(3), name="node-b", pool="node-b", node="node-b"))
    assert index.views.get_view(_node()).pools[0] is pool_before
    index.put_slice(resource_slice(devices(3), name="node-a", pool="node-a", node="node-a"))
    assert index.views.get_view(_node()).pools[0] is not pool_before


def test_a_malformed_event_changes_nothing() -> None:
    index = Index(ALL, [resource_slice(devices(2))], [device_class()])
    answers_before = _answers(index)
    with pytest.raises(InputError, match=r"\$\.spec\.driver: required value"):
        index.put_slice({"metadata": {"name": "slice"}, "spec": {"pool": {"name": "p"}}})
    with pytest.raises(InputError, match="expected a list"):
        index.put_claim({"status": {"allocation": {"devices": {"results": 1}}}})
    with pytest.raises(InputError, match="required value"):
        index.put_class({"metadata": {}})
    assert _answers(index) == answers_before


def test_slices_of_equal_names_are_all_replaced_by_an_update() -> None:
    twice = [resource_slice(devices(2), pool=name) for name in ("a", "b")]
    index = Index(ALL, twice, [device_class()])
    index.put_slice(ResourceSlice.from_dict(resource_slice(devices(1), pool="c")))
    assert [item.pool for item in index.views.list_slices()] == ["c"]


def _node() -> Node:
    return Node.from_dict(node())


def test_the_deadline_ends_the_judging_of_all_devices_too() -> None:
    index = Index(ALL, [resource_slice(devices(8, {"kind": "x"}))], [device_class()])
    wanted_claims = [claim(request("r", 1, f'{KIND} == "x"', everything=True))]
    outcome = Allocator(index).allocate(node(), wanted_claims, deadline=0.0)
    assert outcome.kind == "timeout"
    assert Allocator(index).allocate(node(), wanted_claims).kind == "allocated"


def test_shares_that_consume_nothing_can_go_one_after_the_other() -> None:
    index = Index(ALL, [resource_slice([device("d", capacity={"bw": "1"}, shared=True)])])
    for name in "ab":
        share = {"device": "d", "shareID": f"share-{name}", "consumedCapacity": {"bw": "0"}}
        index.put_claim(allocated(share, name=name))
    assert index.remove_claim("default", "a")
    assert index.remove_claim("default", "b")


def test_a_pool_that_was_whole_is_outdated_by_a_slice_that_comes_later() -> None:
    of_two_nodes = [
        resource_slice(devices(1), name="a", node="node-a", slices=2),
        resource_slice(devices(1), name="b", node="node-b", slices=2),
    ]
    newer = resource_slice(devices(1), name="c", node="node-c", slices=1, generation=2)
    late = Index(ALL, of_two_nodes, [device_class()])
    late.put_slice(newer)
    for index in (Index(ALL, [*of_two_nodes, newer], [device_class()]), late):
        assert Allocator(index).allocate(node("node-b"), [WANTED[0]]).kind == "none"
        assert Allocator(index).allocate(node("node-c"), [WANTED[0]]).kind == "allocated"


def test_a_claim_for_all_devices_gets_those_that_each_node_has_now() -> None:
    def local(name: str, count: int) -> Json:
        return resource_slice(devices(count), name=name, node=name, pool=name)

    index = Index(ALL, [local("node-a", 2), local("node-b", 3)], [device_class()])
    allocator = Allocator(index)
    wanted = ResourceClaim.from_dict(claim(request(everything=True)))
    nodes = [Node.from_dict(node(name)) for name in ("node-a", "node-a", "node-b", "node-a")]
    assert [len(picked(allocator.allocate(item, [wanted]))) for item in nodes] == [2, 2, 3, 2]
    index.put_slice(local("node-a", 5))
    assert len(picked(allocator.allocate(nodes[0], [wanted]))) == 5


def test_the_deadline_ends_a_search_that_has_no_device_to_judge() -> None:
    allocator = Allocator(Index(ALL, [resource_slice(devices(24))], [device_class()]))
    wanted = [claim(request(), name=f"c{number}") for number in range(24)]
    assert allocator.allocate(_node(), wanted).kind == "allocated"
    assert allocator.allocate(_node(), wanted, deadline=0.0).kind == "timeout"
