"""Correct allocations, each spoiled in one way: the checker names the rule that is broken."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from reference_allocator.api.reading import InputError
from reference_allocator.checks import check
from reference_allocator.features import Features
from tests.reference_allocator.builders import (
    ALL,
    DRIVER,
    Json,
    allocated,
    claim,
    device,
    device_class,
    distinct,
    first_available,
    make_snapshot,
    match,
    node,
    opaque,
    request,
    resource_slice,
    rules,
    solve,
    spec,
)

KIND = f'device.attributes["{DRIVER}"].kind'
ROOT = f"{DRIVER}/root"


@dataclass
class World:
    """A problem with a correct allocation; tampering changes any part of it."""

    slices: list[Json]
    claims: list[Json]
    classes: list[Json] = field(default_factory=lambda: [device_class()])
    taken: list[Json] = field(default_factory=list)
    features: Features = ALL
    node: Json = field(default_factory=node)
    allocations: list[Any] = field(default_factory=list)

    def solve(self) -> World:
        """Fills in the allocations of the search."""
        outcome = solve(
            self.slices,
            self.claims,
            classes=self.classes,
            taken=self.taken,
            features=self.features,
            on=self.node,
        )
        assert outcome.kind == "allocated", outcome
        self.allocations = copy.deepcopy(list(outcome.allocations))
        return self

    def broken(self) -> set[str]:
        """The rules that the checker finds broken."""
        snapshot = make_snapshot(
            self.slices, self.claims, classes=self.classes, taken=self.taken, features=self.features
        )
        return rules(check(snapshot, self.node, self.claims, self.allocations))

    def result(self, number: int = 0, claim_index: int = 0) -> Json:
        """One device result."""
        device_result: Json = self.allocations[claim_index]["devices"]["results"][number]
        return device_result

    def results(self, claim_index: int = 0) -> list[Json]:
        """All device results of a claim."""
        device_results: list[Json] = self.allocations[claim_index]["devices"]["results"]
        return device_results


def gpus() -> World:
    """Eight devices of two kinds on two roots; two claims, one with alternatives."""
    content = [
        device(
            f"d{index}",
            {"kind": "big" if index < 6 else "small", "root": f"r{index % 2}", "slot": index},
            taints=[{"key": "k", "effect": "NoSchedule"}] if index == 5 else [],
        )
        for index in range(8)
    ]
    return World(
        slices=[
            resource_slice(content[:4], name="s0", slices=2),
            resource_slice(content[4:], name="s1", slices=2),
            resource_slice([device("x", {"kind": "big"})], name="n", node="node-b", pool="other"),
        ],
        classes=[device_class("gpu", f'{KIND} != "tiny"', config=[opaque("class")])],
        claims=[
            claim(
                request("a", 2, f'{KIND} == "big"', tolerations=[{"key": "z"}]),
                request("b"),
                constraints=[match(ROOT, "a")],
                config=[{"requests": ["a"], **opaque("a")}],
            ),
            claim(first_available("f", big=spec(9), one=spec()), name="second"),
        ],
        taken=[allocated("d0")],
    ).solve()


def every_device() -> World:
    slices = [
        resource_slice(
            [device("d0", {"kind": "x"}), device("d1", {"kind": "x"}), device("y", {"kind": "y"})]
        )
    ]
    return World(slices, [claim(request("r", 1, f'{KIND} == "x"', everything=True))]).solve()


def different() -> World:
    content = [device(f"d{index}", {"root": f"r{index // 2}"}) for index in range(4)]
    wanted_claim = claim(request("r", 2), constraints=[distinct(ROOT)])
    return World([resource_slice(content)], [wanted_claim]).solve()


def partitions() -> World:
    content = [
        device(f"p{index}", counters={"gpu": {"mem": "2"}}, groups=[group])
        for index, group in enumerate("aabb")
    ]
    slices = [
        resource_slice(content, slices=2),
        resource_slice(name="c", slices=2, counters={"gpu": {"mem": "4"}}),
    ]
    return World(slices, [claim(request("r", 2))]).solve()


def shares() -> World:
    bandwidth = {"value": "10", "requestPolicy": {"default": "2", "validValues": ["2", "6"]}}
    content = [
        device("nic", capacity={"bw": bandwidth}, shared=True),
        device("own", capacity={"bw": {"value": "9"}}),
    ]
    share = {"device": "nic", "shareID": "used", "consumedCapacity": {"bw": "2"}}
    wanted_claim = claim(request("r", capacity={"bw": "5"}), request("s", capacity={"bw": "9"}))
    return World([resource_slice(content)], [wanted_claim], taken=[allocated(share)]).solve()


def admin() -> World:
    wanted_claim = claim(request("r", adminAccess=True), request("q", adminAccess=True))
    slices = [resource_slice([device("d0"), device("d1")])]
    return World(slices, [wanted_claim], taken=[allocated("d0")]).solve()


def selected_nodes() -> World:
    zone = {"key": "zone", "operator": "In", "values": ["x"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    content = [
        device("a", nodeSelector=selector, bindingConditions=["ready"]),
        device("b", nodeName="node-b"),
    ]
    slices = [
        resource_slice(content, node=None, perDeviceNodeSelection=True),
        resource_slice(
            [device("c")], name="t", pool="z", node=None, allNodes=True, skipNodeOperations=["*"]
        ),
    ]
    on = node("node-a", "DRAOptionalNodeOperations", zone="x")
    return World(slices, [claim(request("r", 2))], node=on).solve()


Tamper = Callable[[World], object]


def drop(world: World) -> None:
    world.results().pop()


def duplicate_of_another_claim(world: World) -> None:
    world.result(0, 1)["device"] = world.result(2)["device"]


def use(device_name: str, number: int = 0, claim_index: int = 0) -> Tamper:
    return lambda world: world.result(number, claim_index).update(device=device_name)


def put(key: str, value: object, number: int = 0, claim_index: int = 0) -> Tamper:
    return lambda world: world.result(number, claim_index).update({key: value})


def without(key: str, number: int = 0) -> Tamper:
    return lambda world: world.result(number).pop(key)


def replace(name: str, value: object) -> Tamper:
    return lambda world: setattr(world, name, value)


def config(change: Callable[[list[Json]], object]) -> Tamper:
    return lambda world: change(world.allocations[0]["devices"]["config"])


def new_generation(world: World) -> None:
    world.slices.append(resource_slice([device("n")], name="s9", generation=2, slices=2))


def replaced_elsewhere(world: World) -> None:
    world.slices.pop(0)
    world.slices.append(
        resource_slice([device("n")], name="s9", generation=2, node="node-b", slices=1)
    )


def same_name_twice(world: World) -> None:
    world.slices[1]["spec"]["devices"][0]["name"] = "d1"


def more_than_32(world: World) -> None:
    content = [device(f"d{index}") for index in range(33)]
    world.slices = [resource_slice(content)]
    world.claims = [claim(request("r", 33))]
    world.classes, world.taken = [device_class()], []
    device_result = {"request": "r", "driver": DRIVER, "pool": "pool"}
    world.allocations = [
        {
            "devices": {"results": [{**device_result, "device": item["name"]} for item in content]},
            "nodeSelector": world.allocations[0]["nodeSelector"],
        }
    ]


def use_all_alternatives(world: World) -> None:
    world.results(1).append({**world.result(0, 1), "request": "f/big", "device": "d7"})


# fmt: off
# ruff: noqa: E501 - one case a line reads best
CASES: list[tuple[str, Callable[[], World], Tamper, str]] = [
    ("a claim without a result", gpus, lambda world: world.allocations.pop(), "allocation-count"),
    ("a device too few", gpus, drop, "count"),
    ("a device too many", gpus, lambda w: w.results().append({**w.result(2), "device": "d7"}), "count"),
    ("a request that is not there", gpus, put("request", "zz"), "request"),
    ("an alternative named like a request", gpus, put("request", "f", 0, 1), "request"),
    ("devices of two alternatives", gpus, use_all_alternatives, "alternative"),
    ("an alternative with too few devices", gpus, put("request", "f/big", 0, 1), "count"),
    ("more than 32 devices", gpus, more_than_32, "limit"),
    ("a device that does not exist", gpus, use("nope"), "device"),
    ("a pool that does not exist", gpus, put("pool", "nope"), "device"),
    ("a driver that does not exist", gpus, put("driver", "nope.example.com"), "device"),
    ("a pool of another node", gpus, lambda w: w.result(2).update(pool="other", device="x"), "device"),
    ("a device of a replaced generation", gpus, new_generation, "pool-incomplete"),
    ("a generation replaced on another node", gpus, replaced_elsewhere, "pool-generation"),
    ("a pool with a slice missing", gpus, lambda world: world.slices.pop(1), "pool-incomplete"),
    ("a pool with a name twice", gpus, same_name_twice, "pool-invalid"),
    ("a device in use by another claim", gpus, use("d0", 2), "in-use"),
    ("a device given to two claims", gpus, duplicate_of_another_claim, "in-use"),
    ("a device given to two requests", gpus, lambda w: w.result(2).update(device=w.result()["device"]), "in-use"),
    ("a request selector that is false", gpus, use("d7", 1), "selector"),
    ("a class selector that is false", gpus, replace("classes", [device_class("gpu", "false", config=[opaque("class")])]), "selector"),
    ("a selector that fails", gpus, replace("classes", [device_class("gpu", f"{KIND}.x == 1", config=[opaque("class")])]), "selector"),
    ("a selector that does not compile", gpus, replace("classes", [device_class("gpu", "bad(", config=[opaque("class")])]), "selector"),
    ("a class that does not exist", gpus, replace("classes", []), "feature"),
    ("a taint that is not tolerated", gpus, use("d5", 2), "taint"),
    ("values that do not match", gpus, use("d2", 1), "constraint"),
    ("an attribute that is missing", gpus, lambda w: w.slices[0]["spec"]["devices"][1]["attributes"].pop("root"), "constraint"),
    ("values that are not distinct", different, use("d1", 1), "constraint"),
    ("not all devices", every_device, drop, "all"),
    ("all devices and one that does not match", every_device, lambda w: w.results().append({**w.result(), "device": "y"}), "all"),
    ("counters that do not suffice", partitions, lambda w: w.slices[1]["spec"]["sharedCounters"][0]["counters"].update(mem={"value": "3"}), "counter"),
    ("counters used up by another claim", partitions, replace("taken", [allocated("p3")]), "counter"),
    ("partitions that do not go together", partitions, use("p2", 1), "compatibility-group"),
    ("a partition beside one in use", partitions, replace("taken", [allocated("p3")]), "compatibility-group"),
    ("too much capacity", shares, lambda w: w.taken[0]["status"]["allocation"]["devices"]["results"][0].update(consumedCapacity={"bw": "5"}), "capacity"),
    ("less consumed than the policy says", shares, put("consumedCapacity", {"bw": "5"}), "capacity"),
    ("nothing consumed", shares, without("consumedCapacity"), "capacity"),
    ("a capacity that is not there consumed", shares, put("consumedCapacity", {"bw": "6", "x": "1"}), "capacity"),
    ("a device that is too small", shares, lambda w: w.claims[0]["spec"]["devices"]["requests"][1]["exactly"]["capacity"]["requests"].update(bw="10"), "capacity"),
    ("a share without an id", shares, without("shareID"), "share"),
    ("a share with an id in use", shares, put("shareID", "used"), "share"),
    ("a share of a device that is not shareable", shares, put("shareID", "mine", 1), "share"),
    ("admin access not asked for", gpus, put("adminAccess", value=True), "admin-access"),
    ("admin access asked for, not marked", admin, without("adminAccess"), "admin-access"),
    ("one claim with admin access twice to a device", admin, use("d0", 1), "in-use"),
    ("admin access while off", admin, replace("features", Features()), "feature"),
    ("alternatives while off", gpus, replace("features", Features()), "feature"),
    ("a device for another node", selected_nodes, use("b", 1), "node"),
    ("binding conditions while off", selected_nodes, replace("features", Features(partitionable_devices=True)), "feature"),
    ("binding conditions left out", selected_nodes, without("bindingConditions", 1), "result-fields"),
    ("a device that the node cannot skip for", selected_nodes, replace("node", node("node-a", zone="x")), "feature"),
    ("operations to skip left out", selected_nodes, without("skipNodeOperations"), "result-fields"),
    ("tolerations left out", gpus, without("tolerations"), "result-fields"),
    ("config left out", gpus, config(lambda entries: entries.pop()), "config"),
    ("config in another order", gpus, config(lambda entries: entries.reverse()), "config"),
    ("config for another request", gpus, config(lambda entries: entries[1].update(requests=["b"])), "config"),
    ("config from the wrong source", gpus, config(lambda entries: entries[0].update(source="FromClaim")), "config"),
    ("no node selector for a local device", gpus, lambda w: w.allocations[0].pop("nodeSelector"), "node-selector"),
    ("a node selector for another node", gpus, lambda w: w.allocations[0]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0].update(values=["node-b"]), "node-selector"),
    ("a node selector that is too wide", selected_nodes, lambda w: w.allocations[0]["nodeSelector"]["nodeSelectorTerms"][0]["matchExpressions"][0].update(values=["x", "y"]), "node-selector"),
]
# fmt: on


@pytest.mark.parametrize(
    ("world", "tamper", "rule"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_a_tampered_allocation_breaks_the_rule(
    world: Callable[[], World], tamper: Tamper, rule: str
) -> None:
    built = copy.deepcopy(world())
    assert built.broken() == set()
    tamper(built)
    assert rule in built.broken()


@pytest.mark.parametrize("world", [gpus, every_device, different, partitions, shares, admin])
def test_violations_read_well(world: Callable[[], World]) -> None:
    built = copy.deepcopy(world())
    built.result()["device"] = "gone"
    snapshot = make_snapshot(built.slices, built.claims, classes=built.classes, taken=built.taken)
    violations = check(snapshot, built.node, built.claims, built.allocations)
    texts = [str(item) for item in violations if item.rule == "device"]
    name = built.result()["request"]
    where = f"claim default/claim request {name} device {DRIVER}/pool/gone"
    assert texts == [f"device: {where}: the pool has no such device for node-a"]


def test_a_snapshot_taken_after_the_allocation_will_do() -> None:
    built = gpus()
    for wanted_claim, allocation in zip(built.claims, built.allocations, strict=True):
        built.taken.append({**wanted_claim, "status": {"allocation": allocation}})
    assert built.broken() == set()


def test_admin_access_to_a_partition_in_use_draws_on_counters_again() -> None:
    slices = [
        resource_slice([device("p", counters={"gpu": {"mem": "2"}})], slices=2),
        resource_slice(name="c", slices=2, counters={"gpu": {"mem": "3"}}),
    ]
    wanted_claim = claim(request("r", adminAccess=True))
    free = World(slices, [wanted_claim]).solve()
    assert free.broken() == set()
    held = World(slices, [wanted_claim], taken=[allocated("p")], allocations=free.allocations)
    assert solve(slices, wanted_claim, taken=held.taken).kind == "none"
    assert held.broken() == {"counter"}


def test_one_claim_after_another_draws_on_counters_with_admin_access() -> None:
    slices = [
        resource_slice([device("p", counters={"gpu": {"mem": "2"}})], slices=2),
        resource_slice(name="c", slices=2, counters={"gpu": {"mem": "4"}}),
    ]
    wanted_claims = [
        claim(request("r")),
        claim(request("r", adminAccess=True), name="second"),
        claim(request("r", adminAccess=True), name="third"),
    ]
    assert World(slices, wanted_claims[:2]).solve().broken() == set()
    assert solve(slices, wanted_claims).kind == "none"


@pytest.mark.parametrize("step", ["0", "-250m", "-1"])
def test_a_step_that_the_api_server_refuses_lets_no_amount_in(step: str) -> None:
    policy = {"default": "2", "validRange": {"min": "1", "step": step}}
    nic = device("nic", capacity={"bw": {"value": "9", "requestPolicy": policy}}, shared=True)
    built = World([resource_slice([nic])], [claim(request(capacity={"bw": "4500m"}))])
    share = {"device": "nic", "shareID": "s", "consumedCapacity": {"bw": "4500m"}}
    built.allocations = [allocated(share)["status"]["allocation"]]
    assert "capacity" in built.broken()


def test_amounts_are_counted_in_thousandths_where_64_bits_hold_them() -> None:
    """Answered so by v0.38.0-beta.0: all of 7Ei is no multiple of half of one, 2^63-1 is of one."""

    def whole(amount: str, **bounds: str) -> World:
        capacity = {"c": {"value": amount, "requestPolicy": {"validRange": bounds}}}
        return World([resource_slice([device("d", capacity=capacity)])], [claim(request())])

    fitting = whole(str(2**63 - 1), min=str(2**63 - 1), step="1").solve()
    assert fitting.broken() == set()
    too_large = whole("7Ei", step="500m")
    assert solve(too_large.slices, too_large.claims).kind == "none"
    too_large.allocations = fitting.allocations
    assert too_large.broken() == {"capacity"}


def test_shares_of_a_partition_draw_on_counters_once() -> None:
    slices = [
        resource_slice([device("p", counters={"gpu": {"mem": "2"}}, shared=True)], slices=2),
        resource_slice(name="c", slices=2, counters={"gpu": {"mem": "2"}}),
    ]
    wanted_claims = [claim(request("r")), claim(request("r"), name="second")]
    assert World(slices, wanted_claims).solve().broken() == set()
    held = [allocated({"device": "p", "shareID": "used"})]
    assert World(slices, wanted_claims, taken=held).solve().broken() == set()


BROKEN = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["one"]}]}
    ]
}


@pytest.mark.parametrize(
    ("more", "path"),
    [
        (resource_slice([device("z")], name="z", node=None, nodeSelector=BROKEN), ".nodeSelector"),
        (
            resource_slice(
                [device("y", allNodes=True), device("z", nodeSelector=BROKEN)],
                name="z",
                node=None,
                perDeviceNodeSelection=True,
            ),
            ".devices[1].nodeSelector",
        ),
    ],
)
def test_a_node_selector_that_does_not_parse_is_an_error_of_the_input(
    more: Json, path: str
) -> None:
    built = gpus()
    more["spec"]["pool"]["name"] = "unparsable"
    built.result()["pool"] = "unparsable"
    built.result()["device"] = "z"
    built.slices.append(more)
    with pytest.raises(InputError, match="the value must be an integer") as caught:
        built.broken()
    assert caught.value.path == f"$.slices[3].spec{path}"


def mixed_groups(count: int) -> World:
    """Partitions of others that go together no more; p2 and p3 have no groups, p4 has one."""
    groups: list[list[str]] = [[], ["a"], [], [], ["a"]]
    content = [
        device(f"p{index}", counters={"gpu": {"mem": "1"}}, groups=names)
        for index, names in enumerate(groups)
    ]
    slices = [
        resource_slice(content, slices=2),
        resource_slice(name="c", slices=2, counters={"gpu": {"mem": "9"}}),
    ]
    wanted_claim = claim(request("r", count))
    return World(
        slices, [wanted_claim], taken=[allocated("p0", name="x"), allocated("p1", name="y")]
    )


def test_what_others_hold_may_go_together_no_more() -> None:
    built = mixed_groups(2).solve()
    assert [item["device"] for item in built.results()] == ["p2", "p3"]
    assert built.broken() == set()
    built.result(1)["device"] = "p4"
    assert built.broken() == {"compatibility-group"}
