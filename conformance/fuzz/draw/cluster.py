"""Draws nodes and the slices that drivers publish for them, also half-way through an update."""

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
    draw_counter_sets,
    draw_cpu,
    draw_endpoint,
    draw_gpu,
    draw_nic,
    draw_node_selector,
    draw_partition,
)

OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"


def draw_nodes(dice: Dice) -> list[Json]:
    """Draw one to six nodes, with labels that node selectors look at."""
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


def draw_slices(dice: Dice, cluster_nodes: list[Json]) -> list[Json]:
    """Draw the slices of a cluster with these nodes, in an order that means nothing."""
    published: list[Json] = []
    everywhere = _draw_drivers(dice)
    for node in cluster_nodes:
        name = node["metadata"]["name"]
        for driver in everywhere if dice.number(12) else everywhere[1:]:
            published += _draw_node_pool(dice, driver, name)
    if dice.about("nodes", 3) or not published:
        published += _draw_fabric_pool(dice, cluster_nodes)
    for item in published:
        optional = "optionalNodeOperations" in dice.features
        if (dice.focus is None or optional) and (dice.one_in(40) or (optional and dice.one_in(12))):
            item["spec"]["skipNodeOperations"] = dice.pick(
                [
                    ["*"],
                    ["NodeUnprepareResources"],
                    ["NodePrepareResources", "NodeUnprepareResources"],
                ]
            )
    dice.shuffle(published)
    return published


def _draw_drivers(dice: Dice) -> list[str]:
    """Draw the drivers that every node has."""
    if dice.focus is None:
        return dice.some([GPU, MIG, NIC, CPU], dice.pick([0, 1, 1, 2, 2, 3]))
    needed = {"partitionableDevices": MIG, "consumableCapacity": dice.pick([NIC, CPU])}
    drivers = [driver for feature, driver in needed.items() if feature in dice.focus]
    return drivers if drivers and dice.number(4) else [*drivers, GPU]


def _build_pool(dice: Dice, driver: str, pool: str, groups: list[Json]) -> list[Json]:
    """Build slices of a pool, one per group of spec fields, now and then in an update half done."""
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
            difference = dice.pick([-1, 1])
            # Where slices disagree, a scheduler believes the one that it happens to list first.
            for item in [victim] if dice.focus is None else built:
                item["spec"]["pool"]["resourceSliceCount"] += difference
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


def _draw_node_pool(dice: Dice, driver: str, node: str) -> list[Json]:
    on_node = {"nodeName": node}
    pool = "shared" if dice.one_in(12) else node
    if driver == GPU:
        sizes = [33, 36] if dice.focus is None and dice.one_in(80) else [1, 2, 3, 4, 4, 6, 8]
        devices = [draw_gpu(dice, index) for index in range(dice.pick(sizes))]
    elif driver == NIC:
        devices = [draw_nic(dice, index) for index in range(dice.pick([1, 2, 3, 4]))]
    elif driver == CPU:
        devices = [draw_cpu(dice, index) for index in range(dice.pick([1, 2, 2, 4]))]
    else:
        profiles = dice.pick([(0, 0), (0, 1, 1), (0, 2, 2, 1), (4, 2, 1, 1), (1, 1, 1, 1, 1)])
        devices = [draw_partition(dice, index, size) for index, size in enumerate(profiles)]
        if dice.rare(15):
            devices[0]["consumesCounters"][0]["counterSet"] = "unknown"
        groups: list[Json] = [
            {**on_node, "devices": slice_devices} for slice_devices in _split(dice, devices)
        ]
        return _build_pool(
            dice, driver, pool, [*groups, {**on_node, "sharedCounters": draw_counter_sets(dice)}]
        )
    return _build_pool(
        dice,
        driver,
        pool,
        [{**on_node, "devices": slice_devices} for slice_devices in _split(dice, devices)],
    )


def _draw_fabric_pool(dice: Dice, cluster_nodes: list[Json]) -> list[Json]:
    """Draw devices of more than one node: of all, of some, or each with a selection of its own."""
    per_device = dice.one_in(2)
    partitioned = dice.about("partitionableDevices", 3)
    devices: list[Json] = []
    for index in range(dice.pick([1, 2, 3, 4, 5])):
        device = draw_endpoint(dice, index)
        if partitioned and dice.one_in(2):
            device["consumesCounters"] = [
                {"counterSet": "lanes", "counters": {"n": {"value": dice.pick(["1", "2"])}}}
            ]
        if per_device:
            device.update(_draw_placement(dice, cluster_nodes))
        devices.append(device)
    groups: list[Json] = []
    for slice_devices in _split(dice, devices):
        placement = (
            {"perDeviceNodeSelection": True} if per_device else _draw_placement(dice, cluster_nodes)
        )
        groups.append({**placement, "devices": slice_devices})
    if partitioned:
        total = dice.pick(["1", "2", "3"])
        counters = [{"name": "lanes", "counters": {"n": {"value": total}}}]
        placement = _draw_placement(dice, cluster_nodes) if dice.one_in(3) else {"allNodes": True}
        groups.append({**placement, "sharedCounters": counters})
    return _build_pool(dice, FABRIC, dice.pick(["fabric", "a-fabric"]), groups)


def _draw_placement(dice: Dice, cluster_nodes: list[Json]) -> Json:
    match dice.number(4):
        case 0:
            return {"nodeName": dice.pick(cluster_nodes)["metadata"]["name"]}
        case 1:
            return {"allNodes": True}
        case _:
            return {"nodeSelector": draw_node_selector(dice)}
