"""What is answered about a node that is not there yet is what happens when it comes.

Clusters are drawn at random and run by `kubesim`, whose scheduler does what Kubernetes' does. A pod
waits in each; the question is whether it would fit a new node. Then the node comes. What is
answered by a part of a snapshot is what the whole of it says, also after events.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from conformance.compare.asking import answer_question, explain_by_all, explain_by_part
from conformance.compare.evidence import Obj, key_of
from conformance.compare.following import FollowedSnapshot
from kubesim import World
from kubesim.store import clone
from tests.compare.test_following import KINDS, event
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


def make_cluster(name: str) -> World:
    """A cluster like those that are asked about, whatever became of its pod."""
    dice = random.Random(name)
    world = make_world(dice)
    for change in (spread_pool, failing_device):
        if dice.random() < 0.3:
            change(dice, world)
            world.settle()
    return world


def compare_ways(seeds: range) -> Counter[str]:
    """Ask a part and the whole, while one cluster becomes another event by event."""
    counts = Counter[str]()
    for seed in seeds:
        dice = random.Random(f"part-{seed}")
        first, second = (make_cluster(f"{name}-{seed}") for name in ("before", "after"))
        was, now = (
            {
                (kind, *key_of(item)): item
                for kind in KINDS
                for item in world.cluster.store.all(kind)
            }
            for world in (first, second)
        )
        events = [event(item) for item in now.values()]
        events += [event(item, "DELETED") for key, item in was.items() if key not in now]
        dice.shuffle(events)
        followed = FollowedSnapshot(take_snapshot(first))
        for number in range(len(events) + 1):
            followed.apply(clone({"events": events[:number][-1:]})["events"])
            pods = [pod for pod in followed.snapshot.pods if not pod["spec"].get("nodeName")]
            for pod in pods:
                name, added = "/".join(key_of(pod)), new_node(dice)
                by_part = explain_by_part(followed, name, clone({"add": added})["add"])
                if by_part is None:
                    counts["by the whole"] += 1
                    continue
                [by_all] = explain_by_all(followed, name, added, (), ())
                what = f"seed {seed}, {number} events, {name}: {by_part}, {by_all}"
                assert (by_part.fits, by_part.reasons) == (by_all.fits, by_all.reasons), what
                assert by_part.note == by_all.note, what
                counts["fits" if by_part.fits else "does not"] += 1
                counts["has failed"] += any("error" in str(item) for item in by_all.reasons)
    return counts


def test_a_part_of_a_snapshot_says_of_a_new_node_what_the_whole_says() -> None:
    counts = compare_ways(range(30))
    assert counts["fits"] > 50, counts
    assert counts["does not"] > 100, counts
    assert counts["by the whole"] > 20, counts


@pytest.mark.everything
@pytest.mark.parametrize("part", range(20))
def test_a_part_of_many_snapshots_says_what_the_whole_says(part: int) -> None:
    assert compare_ways(range(100 * part, 100 * part + 100))["fits"]
