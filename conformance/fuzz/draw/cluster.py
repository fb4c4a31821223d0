"""Nodes and the slices that drivers publish for them, also half-way through an update."""

from __future__ import annotations

import copy

from conformance.fuzz.draw.dice import Dice
from conformance.fuzz.draw.inventories import (
    CPU,
    FABRIC,
    GPU,
    MIG,
    NIC,
    ZONES,
    Json,
    counter_sets,
    cpus,
    endpoints,
    gpus,
    nics,
    node_selector,
    partitions,
)

OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"


def nodes(dice: Dice) -> list[Json]:
    """One to six nodes, with labels that node selectors look at."""
    built: list[Json] = []
    if dice.focus is not None:  # few sets of nodes, which a run uses again and again
        first, number = dice.number(2), dice.pick([1, 1, 2, 3])
        for index in range(number):
            labels = {"zone": ZONES[(index + first) % 2], "rank": str(index)}
            labels |= {"gpu": "true"} if index % 2 else {}
            built.append({"metadata": {"name": f"node-{index}", "labels": labels}})
        return built
    for index in range(dice.pick([1, 1, 1, 2, 2, 3, 4, 6])):
        labels = {"zone": dice.pick(ZONES), "rank": str(index)}
        if dice.one_in(2):
            labels["gpu"] = "true"
        node: Json = {"metadata": {"name": f"node-{index}", "labels": labels}}
        if dice.one_in(2):
            node["status"] = {"declaredFeatures": [OPTIONAL_OPERATIONS]}
        built.append(node)
    return built


def slices(dice: Dice, named: list[Json]) -> list[Json]:
    """The slices of a cluster with these nodes, in an order that means nothing."""
    found: list[Json] = []
    everywhere = _drivers(dice)
    for node in named:
        name = node["metadata"]["name"]
        for driver in everywhere if dice.number(12) else everywhere[1:]:
            found += _node_pool(dice, driver, name)
    if dice.about("nodes", 3) or not found:
        found += _fabric_pool(dice, named)
    for item in found:
        optional = "optionalNodeOperations" in dice.features
        if (dice.focus is None or optional) and (dice.one_in(40) or (optional and dice.one_in(12))):
            item["spec"]["skipNodeOperations"] = dice.pick(
                [
                    ["*"],
                    ["NodeUnprepareResources"],
                    ["NodePrepareResources", "NodeUnprepareResources"],
                ]
            )
    dice.shuffle(found)
    return found


def _drivers(dice: Dice) -> list[str]:
    """The drivers that every node has."""
    if dice.focus is None:
        return dice.some([GPU, MIG, NIC, CPU], dice.pick([0, 1, 1, 2, 2, 3]))
    needed = {"partitionableDevices": MIG, "consumableCapacity": dice.pick([NIC, CPU])}
    found = [driver for feature, driver in needed.items() if feature in dice.focus]
    return found if found and dice.number(4) else [*found, GPU]


def _pool(dice: Dice, driver: str, pool: str, groups: list[Json]) -> list[Json]:
    """Slices of one pool, one per group of spec fields; now and then in the middle of an update."""
    generation = dice.pick([1, 1, 2])
    built: list[Json] = []
    for index, group in enumerate(groups):
        # Names need not follow the order in which slices are given.
        where = group.get("nodeName") or pool
        name = f"{driver.partition('.')[0]}-{where}-{dice.pick('abc')}{index}"
        identity = {"name": pool, "generation": generation, "resourceSliceCount": len(groups)}
        built.append({"metadata": {"name": name}, "spec": {"driver": driver, "pool": identity}})
        built[-1]["spec"].update(group)
    if dice.about("updating", 30) or dice.rare(10):
        return _disturb(dice, built)
    return built


def _disturb(dice: Dice, built: list[Json]) -> list[Json]:
    victim = dice.pick(built)
    match dice.number(5):
        case 0:
            more = dice.pick([-1, 1])
            # Where slices disagree, a scheduler believes the one that it happens to list first.
            for item in [victim] if dice.focus is None else built:
                item["spec"]["pool"]["resourceSliceCount"] += more
        case 1:
            victim["spec"]["pool"]["generation"] += dice.pick([-1, 1])
        case 2 if len(built) > 1:
            built.remove(victim)
        case 3:
            old = copy.deepcopy(victim)
            old["metadata"]["name"] += "-old"
            old["spec"]["pool"]["generation"] -= 1
            built.append(old)
        case _:
            devices = victim["spec"].get("devices")
            if devices:
                devices[-1]["name"] = dice.pick(devices)["name"]
    return built


def _split(dice: Dice, devices: list[Json]) -> list[list[Json]]:
    if len(devices) < 2 or not dice.one_in(3):
        return [devices]
    middle = 1 + dice.number(len(devices) - 1)
    return [devices[:middle], devices[middle:]]


def _node_pool(dice: Dice, driver: str, node: str) -> list[Json]:
    at = {"nodeName": node}
    pool = "shared" if dice.one_in(12) else node
    if driver == GPU:
        sizes = [33, 36] if dice.focus is None and dice.one_in(80) else [1, 2, 3, 4, 4, 6, 8]
        devices = [gpus(dice, index) for index in range(dice.pick(sizes))]
    elif driver == NIC:
        devices = [nics(dice, index) for index in range(dice.pick([1, 2, 3, 4]))]
    elif driver == CPU:
        devices = [cpus(dice, index) for index in range(dice.pick([1, 2, 2, 4]))]
    else:
        profiles = dice.pick([(0, 0), (0, 1, 1), (0, 2, 2, 1), (4, 2, 1, 1), (1, 1, 1, 1, 1)])
        devices = [partitions(dice, index, size) for index, size in enumerate(profiles)]
        if dice.rare(15):
            devices[0]["consumesCounters"][0]["counterSet"] = "unknown"
        groups: list[Json] = [{**at, "devices": part} for part in _split(dice, devices)]
        return _pool(dice, driver, pool, [*groups, {**at, "sharedCounters": counter_sets(dice)}])
    return _pool(dice, driver, pool, [{**at, "devices": part} for part in _split(dice, devices)])


def _fabric_pool(dice: Dice, named: list[Json]) -> list[Json]:
    """Devices that are not of one node: for all, for some, or each with a selection of its own."""
    per_device = dice.one_in(2)
    partitioned = dice.about("partitionableDevices", 3)
    devices: list[Json] = []
    for index in range(dice.pick([1, 2, 3, 4, 5])):
        device = endpoints(dice, index)
        if partitioned and dice.one_in(2):
            device["consumesCounters"] = [
                {"counterSet": "lanes", "counters": {"n": {"value": dice.pick(["1", "2"])}}}
            ]
        if per_device:
            device.update(_placement(dice, named))
        devices.append(device)
    groups: list[Json] = []
    for part in _split(dice, devices):
        where = {"perDeviceNodeSelection": True} if per_device else _placement(dice, named)
        groups.append({**where, "devices": part})
    if partitioned:
        total = dice.pick(["1", "2", "3"])
        counters = [{"name": "lanes", "counters": {"n": {"value": total}}}]
        where = _placement(dice, named) if dice.one_in(3) else {"allNodes": True}
        groups.append({**where, "sharedCounters": counters})
    return _pool(dice, FABRIC, dice.pick(["fabric", "a-fabric"]), groups)


def _placement(dice: Dice, named: list[Json]) -> Json:
    match dice.number(4):
        case 0:
            return {"nodeName": dice.pick(named)["metadata"]["name"]}
        case 1:
            return {"allNodes": True}
        case _:
            return {"nodeSelector": node_selector(dice)}
