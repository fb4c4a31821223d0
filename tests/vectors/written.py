"""Vectors that are written by hand: each has the one thing in it that an allocator gets wrong.

Most are classes of differences that were met between Karpenter's allocator and Kubernetes' (`D1` to
`D24`, docs/found/karpenter.md); `python -m tests.vectors.make` writes them with the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]
DRIVER: Final = "gpu.example.com"
API: Final = "resource.k8s.io/v1 "
BETA: Final = (
    *("adminAccess", "prioritizedList", "partitionableDevices", "deviceTaints"),
    *("deviceBindingAndStatus", "consumableCapacity"),
)
"""The features that are on by default in 1.36 and 1.37."""


@dataclass(frozen=True)
class Written:
    """A question and what is right.

    Attributes:
        fits: whether the claims fit node-0.
        karpenter: the class of difference; empty where Karpenter's allocator is right.
        following: whether each pod that follows fits it beside those before.
    """

    id: str
    sentence: str
    source: str
    fits: bool
    question: Json
    karpenter: str = ""
    following: Sequence[bool] = ()


def node(name: str = "node-0", **labels: str) -> Json:
    """A node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def device(name: str, attributes: Mapping[str, Any] | None = None, **more: Any) -> Json:
    """A device; attributes are given as plain values, or as the API has them."""
    kinds = {int: "int", str: "string"}
    values = {
        key: value if isinstance(value, dict) else {kinds[type(value)]: value}
        for key, value in (attributes or {}).items()
    }
    return {"name": name, **({"attributes": values} if values else {}), **more}


def slice_of(
    *devices: Json,
    name: str = "s0",
    pool: str = "node-0",
    count: int = 1,
    generation: int = 1,
    where: Json | None = None,
    **more: Any,
) -> Json:
    """A slice of a pool with `count` slices, by default of node-0."""
    spec: Json = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        **(where or {"nodeName": "node-0"}),
        **more,
    }
    if devices:
        spec["devices"] = list(devices)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": spec,
    }


def counters(
    sets: Mapping[str, Json], *, name: str = "s1", pool: str = "node-0", where: Json | None = None
) -> Json:
    """The second slice of a pool, with its counter sets."""
    shared = [
        {"name": key, "counters": {counter: {"value": amount} for counter, amount in value.items()}}
        for key, value in sets.items()
    ]
    return slice_of(name=name, pool=pool, count=2, where=where, sharedCounters=shared)


def uses(counter_set: str, **amounts: str) -> Json:
    """What a device draws on a counter set."""
    drawn = {key: {"value": value} for key, value in amounts.items()}
    return {"consumesCounters": [{"counterSet": counter_set, "counters": drawn}]}


def exactly(name: str = "r", count: int = 1, **more: Any) -> Json:
    """A request."""
    body: Json = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **more}
    if body["allocationMode"] == "All":
        del body["count"]
    return {"name": name, "exactly": body}


def alternatives(*bodies: Json, name: str = "r") -> Json:
    """A request with alternatives, named a0, a1, ..."""
    common = {"deviceClassName": "gpu", "allocationMode": "ExactCount"}
    listed: list[Json] = [
        {"name": f"a{index}", **common, **body} for index, body in enumerate(bodies)
    ]
    return {"name": name, "firstAvailable": listed}


def claim(*requests: Json, constraints: Iterable[Json] = (), name: str = "c") -> Json:
    """A claim of a pod; by default one device."""
    devices: Json = {"requests": list(requests) or [exactly()]}
    if constraints:
        devices["constraints"] = list(constraints)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": devices},
    }


def held(*devices: str, name: str = "held", pool: str = "node-0", **more: Any) -> Json:
    """Another claim that has devices."""
    results = [
        {"request": "r", "driver": DRIVER, "pool": pool, "device": item, **more} for item in devices
    ]
    return {**claim(name=name), "status": {"allocation": {"devices": {"results": results}}}}


def held_shares(device_name: str, *amounts: str) -> Json:
    """Another claim that has shares of a device, of the capacity ``bw``."""
    share = "00000000-0000-0000-0000-00000000000{}"
    made = held(*[device_name] * len(amounts))
    for index, result in enumerate(made["status"]["allocation"]["devices"]["results"]):
        result |= {"shareID": share.format(index), "consumedCapacity": {"bw": amounts[index]}}
    return made


def allocated_on(name: str, selector: Json, pool: str = "node-0") -> Json:
    """The pod's own claim, which has a device that can be used where a selector matches."""
    made = held("gpu-0", name=name, pool=pool)
    made["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [selector]}
    return made


def by_name(*names: str) -> Json:
    """A term of a node selector, as the scheduler writes it for devices of one node."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


def by_label(key: str, *values: str) -> Json:
    """A term of a node selector."""
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def cel(text: str) -> Json:
    """The selectors of a request."""
    return {"selectors": [{"cel": {"expression": text}}]}


def wants(**capacity: str) -> Json:
    """The capacity of a request."""
    return {"capacity": {"requests": capacity}}


def question(
    *slices: Json,
    claims: Iterable[Json] = (),
    allocated: Iterable[Json] = (),
    nodes: Iterable[Json] = (),
    features: Iterable[str] = BETA,
    selectors: bool = True,
    **more: Any,
) -> Json:
    """What is asked, with one class."""
    spec = cel(f'device.driver == "{DRIVER}"') if selectors else {}
    gpu = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": spec,
    }
    return {
        "features": dict.fromkeys(features, True),
        "slices": list(slices),
        "deviceClasses": [gpu],
        "nodes": list(nodes) or [node()],
        "claims": list(claims) or [claim()],
        "allocated": list(allocated),
        **more,
    }


def shared(name: str = "nic", amount: str = "10", **more: Any) -> Json:
    """A device that several claims may share, with the capacity ``bw``."""
    capacity = {"bw": {"value": amount}}
    return device(name, allowMultipleAllocations=True, capacity=capacity, **more)


_LISTS = (*BETA, "listTypeAttributes")
_TWO_SETS = (
    slice_of(
        device("gpu-0", **uses("gpu-0", memory="40Gi")),
        device("gpu-1", **uses("gpu-1", memory="40Gi")),
        count=2,
    ),
    counters({"gpu-0": {"memory": "40Gi"}, "gpu-1": {"memory": "40Gi"}}),
)
_TWO_NODES = tuple(
    slice_of(
        device("gpu-0"), name=f"s{index}", pool=f"node-{index}", where={"nodeName": f"node-{index}"}
    )
    for index in (0, 1)
)


def _written() -> Iterable[Written]:
    yield Written(
        "distinct-attribute",
        "distinctAttribute is kept: two devices whose values differ fit.",
        f"{API}DeviceConstraint.distinctAttribute",
        True,
        question(
            slice_of(device("a", {"numa": 0}), device("b", {"numa": 1})),
            claims=[claim(exactly(count=2), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])],
        ),
        "D1",
    )
    yield Written(
        "distinct-attribute-that-is-the-same",
        "distinctAttribute is kept: two devices whose values are the same do not fit.",
        f"{API}DeviceConstraint.distinctAttribute",
        False,
        question(
            slice_of(device("a", {"numa": 0}), device("b", {"numa": 0})),
            claims=[claim(exactly(count=2), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])],
        ),
    )
    yield Written(
        "two-whole-gpus-with-counter-sets",
        "A counter that one device uses up keeps only devices away that draw on that counter.",
        f"{API}Device.consumesCounters",
        True,
        question(*_TWO_SETS, claims=[claim(exactly(count=2))]),
        "D2",
    )
    yield Written(
        "whole-gpu-and-partition-of-another",
        "A GPU that is used whole leaves the partitions of another GPU of its pool.",
        f"{API}Device.consumesCounters",
        True,
        question(
            slice_of(
                device("gpu-0", {"type": "gpu"}, **uses("gpu-0", memory="40Gi")),
                device("gpu-1-1g", {"type": "mig"}, **uses("gpu-1", memory="5Gi")),
                count=2,
            ),
            _TWO_SETS[1],
            claims=[
                claim(
                    exactly("a", **cel(f'device.attributes["{DRIVER}"].type == "gpu"')),
                    exactly("b", **cel(f'device.attributes["{DRIVER}"].type == "mig"')),
                )
            ],
        ),
        "D2",
    )
    yield Written(
        "two-partitions-of-one-gpu",
        "Two partitions in different places of one GPU fit together.",
        f"{API}Device.consumesCounters",
        True,
        question(
            slice_of(
                device("gpu-0-1g-0", **uses("gpu-0", memory="5Gi", place0="1")),
                device("gpu-0-1g-1", **uses("gpu-0", memory="5Gi", place1="1")),
                count=2,
            ),
            counters({"gpu-0": {"memory": "40Gi", "place0": "1", "place1": "1"}}),
            claims=[claim(exactly(count=2))],
        ),
        "D2",
    )
    yield Written(
        "partition-whose-counter-is-used-up",
        "A device whose counters other devices have used up is not to be had.",
        f"{API}Device.consumesCounters",
        False,
        question(
            slice_of(
                device("whole", **uses("gpu-0", memory="40Gi")),
                device("part", **uses("gpu-0", memory="5Gi")),
                count=2,
            ),
            counters({"gpu-0": {"memory": "40Gi"}}),
            allocated=[held("whole")],
        ),
    )
    yield Written(
        "claim-of-another-node",
        "A claim that has its devices keeps the pod from nodes that its node selector does not"
        " match, by name too.",
        f"{API}AllocationResult.nodeSelector; v1 NodeSelectorTerm.matchFields",
        False,
        question(*_TWO_NODES, claims=[allocated_on("c", by_name("node-1"), pool="node-1")]),
        "D3",
    )
    yield Written(
        "claim-of-this-node",
        "A claim that has its devices on this node needs no others.",
        f"{API}AllocationResult.nodeSelector; v1 NodeSelectorTerm.matchFields",
        True,
        question(*_TWO_NODES, claims=[allocated_on("c", by_name("node-0"))]),
    )
    yield Written(
        "claim-of-another-node-beside-one-to-allocate",
        "A pod with a claim that has devices elsewhere gets none here for its other claim.",
        f"{API}AllocationResult.nodeSelector; v1 NodeSelectorTerm.matchFields",
        False,
        question(
            *_TWO_NODES,
            claims=[allocated_on("shared", by_name("node-1"), pool="node-1"), claim(name="own")],
        ),
        "D3",
    )
    yield Written(
        "claim-of-the-pod-holds-the-only-device",
        "What a pod's claim has already is not free for its other claim.",
        f"{API}ResourceClaimStatus.allocation",
        False,
        question(
            _TWO_NODES[0], claims=[allocated_on("shared", by_name("node-0")), claim(name="own")]
        ),
    )
    yield Written(
        "per-device-node-selection",
        "With perDeviceNodeSelection each device says which nodes it is for.",
        f"{API}ResourceSliceSpec.perDeviceNodeSelection",
        True,
        question(
            slice_of(device("gpu-0", nodeName="node-0"), where={"perDeviceNodeSelection": True})
        ),
        "D4",
    )
    yield Written(
        "per-device-node-selection-of-another-node",
        "With perDeviceNodeSelection a device of another node is not for this one.",
        f"{API}ResourceSliceSpec.perDeviceNodeSelection",
        False,
        question(
            slice_of(device("gpu-0", nodeName="node-1"), where={"perDeviceNodeSelection": True})
        ),
    )
    yield Written(
        "eleven-of-ten",
        "More devices than there are do not fit, and that takes no time to see.",
        f"{API}ExactDeviceRequest.count",
        False,
        question(
            slice_of(*(device(f"gpu-{index}") for index in range(10))),
            claims=[claim(exactly(count=11))],
        ),
        "D5",
    )
    yield Written(
        "tainted-device",
        "A device with a taint that the request does not tolerate is not to be had.",
        f"{API}DeviceTaint.effect",
        False,
        question(slice_of(device("gpu-0", taints=[{"key": "bad", "effect": "NoSchedule"}]))),
        "D6",
    )
    yield Written(
        "evicting-taint",
        "A device with the effect NoExecute is not to be had either.",
        f"{API}DeviceTaint.effect",
        False,
        question(slice_of(device("gpu-0", taints=[{"key": "bad", "effect": "NoExecute"}]))),
        "D6",
    )
    yield Written(
        "tolerated-taint",
        "A device whose taint is tolerated is to be had.",
        f"{API}DeviceToleration",
        True,
        question(
            slice_of(device("gpu-0", taints=[{"key": "bad", "effect": "NoSchedule"}])),
            claims=[
                claim(
                    exactly(
                        tolerations=[{"key": "bad", "operator": "Exists", "effect": "NoSchedule"}]
                    )
                )
            ],
        ),
    )
    yield Written(
        "capacity-of-a-whole-device",
        "A capacity request selects among devices that are given out whole, too.",
        f"{API}ExactDeviceRequest.capacity",
        False,
        question(
            slice_of(device("gpu-0", capacity={"memory": {"value": "15Gi"}})),
            claims=[claim(exactly(**wants(memory="20Gi")))],
        ),
        "D7",
    )
    yield Written(
        "capacity-that-no-device-has",
        "A device without the capacity that is requested is not to be had.",
        f"{API}ExactDeviceRequest.capacity",
        False,
        question(slice_of(device("gpu-0")), claims=[claim(exactly(**wants(memory="1")))]),
        "D7",
    )
    yield Written(
        "one-shared-device-for-two",
        "A request for two devices takes two different ones, also where devices are shared.",
        f"{API}ExactDeviceRequest.count",
        False,
        question(slice_of(shared()), claims=[claim(exactly(count=2, **wants(bw="1")))]),
        "D8",
    )
    yield Written(
        "one-shared-device-for-two-requests",
        "Two requests may take shares of the same device.",
        f"{API}Device.allowMultipleAllocations",
        True,
        question(
            slice_of(shared()),
            claims=[claim(exactly("a", **wants(bw="5")), exactly("b", **wants(bw="5")))],
        ),
    )
    yield Written(
        "selector-that-fails-on-one-device",
        "A selector that fails on a device, here for want of an attribute, fails the pod.",
        f"{API}CELDeviceSelector.expression",
        False,
        question(
            slice_of(device("a"), device("b", {"model": "x"})),
            claims=[claim(exactly(**cel(f'device.attributes["{DRIVER}"].model == "x"')))],
        ),
        "D9",
    )
    yield Written(
        "admin-access-in-use",
        "A request with adminAccess gets devices that are in use.",
        f"{API}ExactDeviceRequest.adminAccess",
        True,
        question(
            slice_of(device("gpu-0")),
            claims=[claim(exactly(adminAccess=True))],
            allocated=[held("gpu-0")],
        ),
        "D10",
    )
    yield Written(
        "admin-result-counts-as-use",
        "A device that only a claim with adminAccess has is free.",
        f"{API}DeviceRequestAllocationResult.adminAccess",
        True,
        question(slice_of(device("gpu-0")), allocated=[held("gpu-0", adminAccess=True)]),
        "D10b",
    )
    elsewhere = {"nodeName": "node-1"}
    yield Written(
        "all-and-broken-pool-elsewhere",
        "A broken pool of another node does not matter to a request for all devices.",
        f"{API}ExactDeviceRequest.allocationMode",
        True,
        question(
            slice_of(device("gpu-0")),
            slice_of(
                device("x", **uses("missing", n="1")), name="s1", pool="node-1", where=elsewhere
            ),
            claims=[claim(exactly(allocationMode="All"))],
        ),
        "D11",
    )
    yield Written(
        "all-and-updating-pool-elsewhere",
        "A pool of another node that is being updated does not matter to a request for all.",
        f"{API}ExactDeviceRequest.allocationMode",
        True,
        question(
            slice_of(device("gpu-0")),
            slice_of(
                device("x", **uses("s", n="1")), name="s1", pool="node-1", count=3, where=elsewhere
            ),
            counters({"s": {"n": "1"}}, name="s2", pool="node-1", where=elsewhere),
            claims=[claim(exactly(allocationMode="All"))],
        ),
        "D11",
    )
    yield Written(
        "counter-in-thousandths",
        "Amounts of counters may be fractions: two halves are one.",
        f"{API}Counter.value",
        True,
        question(
            slice_of(
                device("a", **uses("s", n="500m")), device("b", **uses("s", n="500m")), count=2
            ),
            counters({"s": {"n": "1"}}),
            claims=[claim(exactly(count=2))],
        ),
        "D12",
    )
    yield Written(
        "counter-in-thousandths-too-little",
        "One and a half is less than two.",
        f"{API}Counter.value",
        False,
        question(
            slice_of(device("a", **uses("s", n="2")), count=2), counters({"s": {"n": "1500m"}})
        ),
        "D12",
    )
    yield Written(
        "share-of-a-counted-device",
        "Shares of one device draw on its counters once.",
        f"{API}Device.consumesCounters",
        True,
        question(
            slice_of(shared(**uses("s", n="1")), count=2),
            counters({"s": {"n": "1"}}),
            claims=[claim(exactly("a", **wants(bw="1")), exactly("b", **wants(bw="1")))],
        ),
        "D13",
    )
    yield Written(
        "second-share-of-a-counted-device",
        "A share draws on counters that a share of another claim has drawn on already.",
        f"{API}Device.consumesCounters",
        True,
        question(
            slice_of(shared(**uses("s", n="1")), count=2),
            counters({"s": {"n": "1"}}),
            claims=[claim(exactly(**wants(bw="1")))],
            allocated=[held_shares("nic", "1")],
        ),
        "D13",
    )
    yield Written(
        "shared-device-held-whole",
        "A device that a claim has whole is not to be had, though it can be shared now.",
        f"{API}Device.allowMultipleAllocations",
        False,
        question(
            slice_of(shared()), claims=[claim(exactly(**wants(bw="1")))], allocated=[held("nic")]
        ),
        "D14",
    )
    yield Written(
        "two-shares-in-one-claim",
        "All shares of a device count, those of one claim too.",
        f"{API}DeviceRequestAllocationResult.consumedCapacity",
        False,
        question(
            slice_of(shared()),
            claims=[claim(exactly(**wants(bw="1")))],
            allocated=[held_shares("nic", "5", "5")],
        ),
        "D15",
    )
    yield Written(
        "all-that-have-enough",
        "All devices means all that could ever give the capacity that is requested.",
        f"{API}ExactDeviceRequest.allocationMode",
        True,
        question(
            slice_of(shared("small", "1"), shared("large", "10")),
            claims=[claim(exactly(allocationMode="All", **wants(bw="5")))],
        ),
        "D16",
    )
    yield Written(
        "node-selector-by-name",
        "A slice's node selector may match nodes by name.",
        f"{API}ResourceSliceSpec.nodeSelector; v1 NodeSelectorTerm.matchFields",
        False,
        question(
            slice_of(
                device("gpu-0"), where={"nodeSelector": {"nodeSelectorTerms": [by_name("node-9")]}}
            )
        ),
        "D17",
    )
    zone = "topology.kubernetes.io/zone"
    in_zone = {"nodeSelector": {"nodeSelectorTerms": [by_label(zone, "z")]}}
    derived = {"name": "example.com/n", "expression": "device.driver"}
    yield Written(
        "node-without-zone",
        "A node that lacks a label does not match a selector that asks for a value of it.",
        f"{API}ResourceSliceSpec.nodeSelector",
        False,
        question(slice_of(device("gpu-0"), where=in_zone)),
        "D18",
    )
    yield Written(
        "node-in-the-zone",
        "A node with the label that a slice asks for can use its devices.",
        f"{API}ResourceSliceSpec.nodeSelector",
        True,
        question(
            slice_of(device("gpu-0"), where=in_zone),
            nodes=[node(**{zone: "z"})],
        ),
    )
    yield Written(
        "one-pool-name-on-two-nodes",
        "Pools of two nodes that have one name are apart.",
        f"{API}ResourcePool.name",
        True,
        question(
            slice_of(device("gpu-0"), pool="gpus"),
            slice_of(device("gpu-0"), name="s1", pool="gpus", where=elsewhere),
        ),
        "D19",
    )
    yield Written(
        "newer-generation-elsewhere",
        "A complete pool of this node counts, whatever generation another node's has.",
        f"{API}ResourcePool.generation",
        True,
        question(
            slice_of(device("gpu-0"), pool="p"),
            slice_of(device("gpu-0"), name="s1", pool="p", generation=2, where=elsewhere),
        ),
        "D19",
    )
    yield Written(
        "list-attribute",
        "A device with an attribute that is a list is selected as any other.",
        f"{API}DeviceAttribute.ints",
        True,
        question(slice_of(device("gpu-0", {"numa": {"ints": [0, 1]}})), features=_LISTS),
        "D20",
    )
    yield Written(
        "list-attribute-includes",
        "includes() selects by a value of a list.",
        f"{API}DeviceAttribute.ints",
        True,
        question(
            slice_of(device("gpu-0", {"numa": {"ints": [0, 1]}})),
            claims=[claim(exactly(**cel(f'device.attributes["{DRIVER}"].numa.includes(1)')))],
            features=_LISTS,
        ),
        "D20",
    )
    yield Written(
        "match-list-attribute",
        "matchAttribute holds for lists that have a value in common.",
        f"{API}DeviceConstraint.matchAttribute",
        True,
        question(
            slice_of(device("a", {"numa": {"ints": [0, 1]}}), device("b", {"numa": {"ints": [1]}})),
            claims=[claim(exactly(count=2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])],
            features=_LISTS,
            selectors=False,
        ),
        "D20",
    )
    yield Written(
        "alternative-that-does-not-compile",
        "An alternative whose selector does not compile does not matter where an earlier one fits.",
        f"{API}DeviceRequest.firstAvailable",
        True,
        question(
            slice_of(device("gpu-0")),
            claims=[claim(alternatives({"count": 1}, {"count": 1, **cel("device.later")}))],
        ),
        "D21",
    )
    yield Written(
        "all-with-constraint-then-one",
        "All devices that break a constraint end the pod; no later alternative is tried.",
        "k8s.io/dynamic-resource-allocation structured (cannot add device ... because a claim"
        " constraint would not be satisfied)",
        False,
        question(
            slice_of(device("a", {"x": "1"}), device("b", {"x": "2"})),
            claims=[
                claim(
                    alternatives({"allocationMode": "All"}, {"count": 1}),
                    constraints=[{"matchAttribute": f"{DRIVER}/x"}],
                )
            ],
        ),
        "D22",
    )
    yield Written(
        "skip-node-operations",
        "A node that does not declare the feature cannot use a slice that skips node operations.",
        f"{API}ResourceSliceSpec.skipNodeOperations",
        False,
        question(
            slice_of(device("gpu-0"), skipNodeOperations=["*"]),
            features=(*BETA, "optionalNodeOperations"),
        ),
        "D23",
    )
    yield Written(
        "derived-attribute-match",
        "matchAttribute holds for attributes that a request derives.",
        f"{API}ExactDeviceRequest.derivedAttributes",
        True,
        question(
            slice_of(device("a"), device("b")),
            claims=[
                claim(
                    exactly(
                        count=2,
                        derivedAttributes=[derived],
                    ),
                    constraints=[{"matchAttribute": "example.com/n"}],
                )
            ],
            features=(*BETA, "derivedAttributes"),
        ),
        "D23",
    )
    yield Written(
        "admin-access-is-off",
        "A request with adminAccess fails where the feature is off.",
        f"{API}ExactDeviceRequest.adminAccess",
        False,
        question(slice_of(device("gpu-0")), claims=[claim(exactly(adminAccess=True))], features=()),
        "D24",
    )
    yield Written(
        "alternatives-are-off",
        "A request with alternatives fails where the feature is off.",
        f"{API}DeviceRequest.firstAvailable",
        False,
        question(
            slice_of(device("gpu-0")), claims=[claim(alternatives({"count": 1}))], features=()
        ),
        "D24",
    )
    yield Written(
        "alternative-beyond-the-limit",
        "An alternative with which the claim would have more than 32 devices is passed over.",
        f"{API}DeviceRequest.firstAvailable (AllocationResultsMaxSize)",
        True,
        question(
            slice_of(*(device(f"gpu-{index}") for index in range(34))),
            claims=[claim(exactly("first", count=31), alternatives({"count": 3}, {"count": 1}))],
        ),
    )
    yield Written(
        "incomplete-pool",
        "Devices of a pool that is not complete are not to be had.",
        f"{API}ResourcePool.resourceSliceCount",
        False,
        question(slice_of(device("gpu-0"), count=2)),
    )
    yield Written(
        "older-generation",
        "Slices of an older generation do not count.",
        f"{API}ResourcePool.generation",
        False,
        question(slice_of(device("gpu-0")), slice_of(name="s1", generation=2)),
    )
    yield Written(
        "device-in-use",
        "A device that another claim has is not to be had.",
        f"{API}ResourceClaimStatus.allocation",
        False,
        question(slice_of(device("gpu-0")), allocated=[held("gpu-0")]),
    )
    yield Written(
        "class-that-is-not-there",
        "A request for a class that does not exist fails.",
        f"{API}ExactDeviceRequest.deviceClassName",
        False,
        {**question(slice_of(device("gpu-0"))), "deviceClasses": []},
    )
    yield Written(
        "node-to-be",
        "A node that is to be made has the devices of the slices with its name.",
        f"{API}ResourceSliceSpec.nodeName",
        True,
        question(slice_of(device("gpu-0")), place="template"),
    )


WRITTEN: Final = tuple(_written())
