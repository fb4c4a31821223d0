"""Devices that look like real ones, in numbers that keep a search small.

Values come from small sets, so that devices agree and disagree with each other often enough for
constraints, selectors and counters to matter.
"""

from __future__ import annotations

from typing import Any

from conformance.fuzz.draw.dice import Dice

Json = dict[str, Any]

GPU = "gpu.example.com"
MIG = "mig.example.com"
NIC = "nic.example.com"
CPU = "cpu.example.com"
FABRIC = "fabric.example.com"
DRIVERS = (GPU, MIG, NIC, CPU, FABRIC)
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
ZONES = ("z1", "z2")


_MALFORMED: tuple[Json, ...] = (
    {"key": "zone", "operator": "Like", "values": ["z1"]},
    {"key": "zone", "operator": "In"},
    {"key": "rank", "operator": "Gt", "values": ["one"]},
    {"key": "zone", "operator": "NotIn", "values": []},
    {"key": "zone", "operator": "Exists", "values": ["z1"]},
    {"key": "zone", "operator": "In", "values": ["z1", "-"]},
    {"key": "not a label", "operator": "Exists"},
    {"key": "-/", "operator": "Lt", "values": ["1", "2", "x"]},
    {"key": "/a", "operator": "Exists"},
    {"key": "a/b/c", "operator": "Exists"},
    {"key": "a" * 64, "operator": "DoesNotExist"},
)


def draw_node_selector(dice: Dice) -> Json:
    """Draw a node selector that fits some nodes; mostly it has one term, as the API wants."""
    expression = dice.pick(
        [
            {"key": "zone", "operator": "In", "values": [dice.pick(ZONES)]},
            {"key": "zone", "operator": "In", "values": [*ZONES]},
            {"key": "zone", "operator": "NotIn", "values": ["z1"]},
            {"key": "rank", "operator": "Gt", "values": ["1"]},
            {"key": "rank", "operator": "Lt", "values": ["3"]},
            {"key": "gpu", "operator": "Exists"},
            {"key": "gpu", "operator": "DoesNotExist"},
        ]
    )
    term: Json = {"matchExpressions": [expression]}
    if dice.rare(30):
        return {"nodeSelectorTerms": [{"matchExpressions": [dice.pick(_MALFORMED)]}]}
    if dice.one_in(5):
        names = [dice.pick(["node-0", "node-1"])]
        operator = dice.pick(["In", "NotIn"])
        term["matchFields"] = [
            {"key": "metadata.name", "operator": operator, "values": list(names)}
        ]
        if dice.one_in(2):
            del term["matchExpressions"]
    elif dice.one_in(4):
        term["matchExpressions"] = [expression, {"key": "zone", "operator": "Exists"}]
    terms = [term, {"matchExpressions": [expression]}] if dice.rare(20) else [term]
    return {"nodeSelectorTerms": terms}


def draw_taint(dice: Dice) -> Json:
    """Draw a taint that some requests tolerate."""
    return {
        "key": dice.pick(["example.com/unhealthy", "example.com/maintenance"]),
        "effect": dice.pick(["NoSchedule", "NoExecute", "None"]),
        **({"value": dice.pick(["a", "b"])} if dice.one_in(2) else {}),
    }


_TAGS: tuple[Json, ...] = (
    {"strings": ["a", "b"]},
    {"strings": ["a", "b"]},
    {"strings": ["b"]},
    {"strings": ["c", "a"]},
    {"string": "a"},
    {"ints": [1, 2]},
    {"bools": [True, False]},
    {"versions": ["1.0.0", "2.0.0"]},
    {"strings": []},
)
_SINGLE_TAGS: tuple[Json, ...] = ({"string": "a"}, {"string": "b"}, {"int": 1})


def _with_extras(dice: Dice, device: Json) -> Json:
    """Add what any device may have: taints, binding conditions, attributes with pitfalls."""
    if dice.about("deviceTaints", 10):
        device["taints"] = [draw_taint(dice) for _ in range(dice.pick([1, 1, 2]))]
    if dice.about("deviceBindingAndStatus", 25):
        device["bindingConditions"] = ["example.com/attached"]
        if dice.one_in(2):
            device["bindingFailureConditions"] = ["example.com/failed"]
    elif dice.focus is None and dice.one_in(60):
        device["bindingConditions"] = []  # Not the same as none: the pool is tried last.
    if dice.about("deviceBindingAndStatus", 30):
        device["bindsToNode"] = True
    attributes = device.setdefault("attributes", {})
    if dice.rare(30):
        attributes["broken"] = {"version": "not a version"}
    lists = "listTypeAttributes" in dice.features
    if dice.focus is not None:
        lists = lists and "listTypeAttributes" in dice.focus
    if dice.one_in(6) or (lists and not dice.one_in(4)):
        attributes["tags"] = dice.pick(_TAGS if lists or dice.focus is None else _SINGLE_TAGS)
    if dice.one_in(12):
        attributes["mixed"] = dice.pick([{"int": 1}, {"string": "1"}, {"bool": True}])
    return device


def draw_gpu(dice: Dice, index: int) -> Json:
    """Draw a T4-like GPU: whole, with versions, memory and a PCIe root."""
    device: Json = {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "index": {"int": index},
            "productName": {"string": dice.pick(["Tesla T4", "Tesla T4", "A100"])},
            "cudaComputeCapability": {"version": dice.pick(["7.5.0", "7.5.0", "8.0.0"])},
            "ecc": {"bool": not dice.one_in(4)},
        },
        "capacity": {"memory": {"value": dice.pick(["15Gi", "16Gi", "16384Mi", "40Gi"])}},
    }
    if not dice.one_in(5):
        device["attributes"][PCIE_ROOT] = dice.pick(
            [{"string": "pci0"}, {"string": "pci0"}, {"string": "pci1"}, {"string": "pci2"}]
        )
    if dice.one_in(8):
        device["attributes"]["gpu.example.com/rack"] = {"string": dice.pick("ab")}
    return _with_extras(dice, device)


def draw_partition(dice: Dice, index: int, size: int) -> Json:
    """Draw an A100-like partition that consumes counters of its GPU; size 0 is the whole GPU."""
    gpu = index % 2
    profile = {0: "whole", 1: "1g.5gb", 2: "2g.10gb", 4: "4g.20gb"}[size]
    share = size or 7
    consumption: Json = {
        "counterSet": f"gpu-{gpu}-counters",
        "counters": {"memory": {"value": f"{5 * (size or 8)}Gi"}, "slices": {"value": str(share)}},
    }
    consumptions = [consumption]
    if dice.about("compatibilityGroups", 8):
        consumption["compatibilityGroups"] = dice.pick([["a"], ["a", "b"], ["b"]])
    if dice.one_in(12):
        linked = {"counterSet": f"gpu-{1 - gpu}-counters", "counters": {"slices": {"value": "1"}}}
        if dice.about("compatibilityGroups", 2):
            linked["compatibilityGroups"] = dice.pick([["a"], ["b"]])
        consumptions.append(linked)
    device: Json = {
        "name": f"gpu-{gpu}-{profile.replace('.', '-')}-{index}",
        "attributes": {
            "type": {"string": "mig" if size else "gpu"},
            "profile": {"string": profile},
            "parent": {"int": gpu},
        },
        "capacity": {"memory": {"value": f"{5 * (size or 8)}Gi"}},
        "consumesCounters": consumptions,
    }
    if dice.about("listTypeAttributes", 8):
        device["attributes"]["parent"] = {"ints": [gpu, 7]}
    if dice.about("consumableCapacity", 12):
        device["allowMultipleAllocations"] = True
    return _with_extras(dice, device)


def draw_counter_sets(dice: Dice) -> list[Json]:
    """Draw the counters of two GPUs; now and then too few, or wrong."""
    sets: list[Json] = [
        {
            "name": f"gpu-{gpu}-counters",
            "counters": {
                "memory": {"value": dice.pick(["40Gi", "40Gi", "20Gi", "10Gi"])},
                "slices": {"value": dice.pick(["7", "7", "4", "2"])},
            },
        }
        for gpu in range(2)
    ]
    if dice.rare(20):
        sets.append({**sets[0]})
    elif dice.rare(20):
        del sets[0]["counters"]["slices"]
    return sets


_SMALL_POLICIES: tuple[Json | None, ...] = (
    None,
    {"default": "1", "validValues": ["1", "2", "4", "8"]},
    {"default": "2", "validValues": ["2", "3"]},
    {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}},
    {"default": "3", "validRange": {"min": "3", "step": "3"}},
    {"default": "2", "validRange": {"min": "2", "max": "2500m"}},
    {"default": "500m", "validRange": {"min": "250m", "max": "3", "step": "250m"}},
    {"default": "1", "validRange": {"min": "2", "max": "3"}},
)
"""Policies for amounts that most requests have."""

_POLICIES: tuple[Json | None, ...] = (
    None,
    {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}},
    {"default": "2", "validValues": ["1", "2", "4", "8"]},
    {"default": "1G", "validRange": {"min": "500M"}},
    {"default": "500m", "validRange": {"min": "250m", "max": "4", "step": "250m"}},
    {"validRange": {"min": "0", "step": "3"}},
    {"default": "1Ki", "validRange": {"min": "2Ki", "max": "8Gi"}},
)


def draw_nic(dice: Dice, index: int) -> Json:
    """Draw a network interface whose bandwidth can be shared."""
    amounts = ["10", "8", "4", "4500m"] if dice.small else ["10G", "8Gi", "10", "4", "1500m"]
    bandwidth: Json = {"value": dice.pick(amounts)}
    policy = dice.pick(_SMALL_POLICIES if dice.small else _POLICIES)
    if policy is not None:
        bandwidth["requestPolicy"] = policy
    device: Json = {
        "name": f"nic-{index}",
        "attributes": {
            "model": {"string": dice.pick(["cx6", "cx6", "cx7"])},
            "numa": {"int": dice.number(2)},
            PCIE_ROOT: dice.pick(
                [{"string": "pci0"}, {"string": "pci1"}, {"strings": ["pci0", "pci1"]}]
            ),
        },
        "capacity": {"bandwidth": bandwidth},
    }
    if dice.one_in(4):
        device["capacity"]["queues"] = {"value": dice.pick(["2", "4", "0"])}
    if not dice.one_in(3):
        device["allowMultipleAllocations"] = not dice.one_in(8)
    return _with_extras(dice, device)


def draw_cpu(dice: Dice, index: int) -> Json:
    """Draw a group of CPUs that maps to the node's allocatable CPU."""
    device: Json = {
        "name": f"numa-{index}",
        "allowMultipleAllocations": True,
        "attributes": {"numa": {"int": index % 2}, "smt": {"bool": dice.one_in(2)}},
        "capacity": {
            "cpu": {
                "value": dice.pick(["2", "4"]),
                "requestPolicy": dice.pick(
                    [
                        {"default": "1", "validRange": {"min": "1", "step": "1"}},
                        {"default": "1", "validRange": {"min": "1", "max": "2", "step": "1"}},
                        {"default": "1", "validValues": ["1", "2"]},
                    ]
                ),
            }
        },
        "nodeAllocatableResources": {
            "cpu": {"mapping": {"capacityKey": "cpu", "capacityMultiplier": "1"}}
        },
    }
    return _with_extras(dice, device)


def draw_endpoint(dice: Dice, index: int) -> Json:
    """Draw a device on a fabric that several nodes can reach."""
    device: Json = {
        "name": f"ep-{index}",
        "attributes": {
            "rack": {"string": dice.pick("ab")},
            "lanes": dice.pick([{"int": 4}, {"int": 8}, {"version": "8.0.0"}]),
        },
    }
    return _with_extras(dice, device)
