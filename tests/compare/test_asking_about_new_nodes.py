"""What is answered about a node that is not there yet is what happens when it comes.

Clusters are drawn at random and run by `kubesim`, whose scheduler does what Kubernetes' does. A pod
waits in each; the question is whether it would fit a new node. Then the node comes.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from conformance.compare.asking import answer_question
from conformance.compare.evidence import Obj
from conformance.compare.following import FollowedSnapshot
from kubesim import World
from tests.compare.test_remedies_hold import (
    DRIVER,
    make_device,
    make_world,
    node_of,
    take_snapshot,
)
from tests.kubesim import kit

NEW = "new"


def spread_pool(dice: random.Random, world: World) -> None:
    """A pool with slices of a node, for all nodes, and perhaps one for the node to come."""
    generation = {"generation": 1, "resourceSliceCount": dice.choice([1, 2, 2, 3])}
    places: list[Obj] = [{"allNodes": True}, {"nodeName": "n0"}]
    for number, place in enumerate(places[: dice.randint(1, 2)]):
        item = kit.resource_slice(f"fabric-{number}", "n0", DRIVER, make_device(dice, number))
        del item["spec"]["nodeName"]
        item["spec"] |= {"pool": {"name": "fabric", **generation}, **place}
        world.api.create(item, default_namespace="ns")


def failing_device(dice: random.Random, world: World) -> None:
    """A device of another node that has not what a selector reads."""
    item = kit.resource_slice("bare", "n0", DRIVER, {"name": "bare"})
    item["spec"]["pool"] = {"name": "bare", "generation": 1, "resourceSliceCount": 1}
    world.api.create(item, default_namespace="ns")
    del dice


def new_node(dice: random.Random) -> list[Obj]:
    """A node and its slices, as a node group would add them."""
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    node = {**kit.node(NEW), "apiVersion": "v1", "kind": "Node"}
    node["spec"] = {"taints": [taint]} if dice.random() < 0.1 else {}
    devices = [make_device(dice, number) for number in range(dice.randint(0, 4))]
    published = kit.resource_slice(f"{NEW}-gpus", NEW, DRIVER, *devices)
    if dice.random() < 0.1:
        published["spec"]["pool"]["resourceSliceCount"] = 2
    return [node, published]


def check_seeds(seeds: range) -> Counter[str]:
    """What came of each seed."""
    counts = Counter[str]()
    for seed in seeds:
        dice = random.Random(f"new-{seed}")
        world = make_world(dice)
        for change in (spread_pool, failing_device):
            if dice.random() < 0.3:
                change(dice, world)
                world.settle()
        if node_of(world) is not None:
            counts["scheduled before"] += 1
            continue
        added = new_node(dice)
        line = json.dumps({"id": "1", "pod": "ns/p", "add": added}).encode()
        answer = json.loads(answer_question(FollowedSnapshot(take_snapshot(world)), line))
        [told] = answer["pods"]
        for obj in added:
            world.api.create(obj, default_namespace="ns")
        world.settle()
        node = node_of(world)
        what = f"seed {seed}: {answer}, and then it is on {node}"
        assert set(told["fits"]) <= {NEW}, what
        if told["fits"]:
            assert node is not None, what
        else:
            assert node != NEW, what
        counts["fits" if told["fits"] else "does not"] += 1
        counts["on the new node"] += node == NEW
        counts["claim elsewhere"] += "elsewhere" in json.dumps(told["reasons"])
    return counts


def test_what_is_said_of_a_new_node_is_what_the_scheduler_does_then() -> None:
    counts = check_seeds(range(300))
    assert counts["fits"] > 40, counts
    assert counts["does not"] > 40, counts
    assert counts["on the new node"] > 40, counts
    assert counts["claim elsewhere"] > 5, counts


@pytest.mark.everything
@pytest.mark.parametrize("part", range(20))
def test_what_is_said_of_many_new_nodes_is_what_the_scheduler_does_then(part: int) -> None:
    assert check_seeds(range(1000 * part, 1000 * part + 1000)).total() >= 1000
