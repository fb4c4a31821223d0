"""The problems that both allocators are timed on: lines for `dra-conformance allocate`.

`typical` is what clusters ask every day. `hard` has no solution, and upstream's search tries all
combinations or permutations before it says so; `n` is the number of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]

DRIVER = "gpu.example.com"
NIC = "nic.example.com"
FEATURES = dict.fromkeys(
    (
        "adminAccess",
        "consumableCapacity",
        "deviceBindingAndStatus",
        "deviceTaints",
        "partitionableDevices",
        "prioritizedList",
    ),
    True,
)
"""What Kubernetes 1.37 has on by default: the incubating implementation."""

CLAUSES = (
    f'device.attributes["{DRIVER}"].productName == "A100" && '
    f'device.attributes["{DRIVER}"].driverVersion.isGreaterThan(semver("550.0.0")) && '
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
)
_MAX_PER_CLAIM = 32
_MAX_PER_SLICE = 64
"""Of devices that consume counters."""


def gpu(index: int, **attributes: Json) -> Json:
    """One GPU with the attributes of a real one."""
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "index": {"int": index},
            "productName": {"string": "A100"},
            "driverVersion": {"version": "570.86.15"},
            "cudaComputeCapability": {"version": "8.0.0"},
            "numa": {"int": index // 4},
            **attributes,
        },
        "capacity": {"memory": {"value": "40Gi"}},
    }


def slice_of(node: str, devices: list[Json], driver: str = DRIVER, **spec: Any) -> Json:
    """The only slice of a node's pool."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    body = {"driver": driver, "pool": pool, "nodeName": node, "devices": devices, **spec}
    return {"metadata": {"name": f"{node}-{driver}-{len(spec)}"}, "spec": body}


def exactly(count: int, *selectors: str, driver: str = DRIVER, **more: Any) -> Json:
    """A request for devices of one driver."""
    body: Json = {"deviceClassName": driver, "allocationMode": "ExactCount", "count": count, **more}
    if more.get("allocationMode") == "All":
        del body["count"]
    if selectors:
        body["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return body


def claim(name: str, *requests: Json, constraints: list[Json] | None = None) -> Json:
    """A claim with requests r0, r1, ..."""
    devices: Json = {
        "requests": [{"name": f"r{index}", "exactly": item} for index, item in enumerate(requests)]
    }
    if constraints:
        devices["constraints"] = constraints
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": {"devices": devices}}


def line(name: str, slices: list[Json], claims: list[Json], nodes: int = 1) -> Json:
    """The whole problem."""
    return {
        "id": name,
        "features": FEATURES,
        "slices": slices,
        "deviceClasses": [
            {
                "metadata": {"name": driver},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
            }
            for driver in (DRIVER, NIC)
        ],
        "nodes": [{"metadata": {"name": f"node-{index}"}} for index in range(nodes)],
        "claims": claims,
        "allocated": [],
    }


def _cluster(nodes: int) -> list[Json]:
    return [slice_of(f"node-{node}", [gpu(index) for index in range(8)]) for node in range(nodes)]


def _mig() -> list[Json]:
    devices: list[Json] = []
    for parent in range(2):
        for size, number in ((7, 1), (3, 2), (2, 3), (1, 7)):
            for index in range(number):
                amounts = {"slices": {"value": str(size)}, "memory": {"value": f"{5 * size}Gi"}}
                use = {"counterSet": f"gpu-{parent}", "counters": amounts}
                device: Json = {"name": f"gpu-{parent}-{size}g-{index}", "consumesCounters": [use]}
                device["attributes"] = {"size": {"int": size}, "parent": {"int": parent}}
                devices.append(device)
    totals = {"slices": {"value": "7"}, "memory": {"value": "40Gi"}}
    sets = [{"name": f"gpu-{parent}", "counters": totals} for parent in range(2)]
    built = [slice_of("node-0", devices), slice_of("node-0", [], sharedCounters=sets)]
    for item in built:
        item["spec"]["pool"]["resourceSliceCount"] = 2
    del built[1]["spec"]["devices"]
    return built


def _nics() -> list[Json]:
    policy = {"default": "1G", "validRange": {"min": "1G", "max": "10G", "step": "1G"}}
    capacity = {"bandwidth": {"value": "10G", "requestPolicy": policy}}
    devices = [
        {"name": f"nic-{index}", "allowMultipleAllocations": True, "capacity": capacity}
        for index in range(4)
    ]
    return [slice_of("node-0", devices, NIC)]


def typical() -> dict[str, Json]:
    """Name -> problem."""
    size = f'device.attributes["{DRIVER}"].size == '
    same = [{"matchAttribute": f"{DRIVER}/numa"}]
    bandwidth = {"capacity": {"requests": {"bandwidth": "2500M"}}}
    found = {
        f"{nodes} nodes x 8, one claim": (_cluster(nodes), [claim("a", exactly(1))], nodes)
        for nodes in (1, 100, 1000)
    }
    found["4 of 8"] = (_cluster(1), [claim("a", exactly(4))], 1)
    found["CEL with 3 clauses"] = (_cluster(1), [claim("a", exactly(2, CLAUSES))], 1)
    found["All"] = (_cluster(1), [claim("a", exactly(0, allocationMode="All"))], 1)
    found["two claims with matchAttribute"] = (
        _cluster(1),
        [claim(name, exactly(2), exactly(2), constraints=same) for name in "ab"],
        1,
    )
    partitions = [exactly(1, f"{size}{number}") for number in (3, 2, 1)]
    found["MIG partitions with counters"] = (_mig(), [claim("a", *partitions)], 1)
    found["NIC capacity"] = (_nics(), [claim("a", exactly(1, driver=NIC, **bandwidth))], 1)
    return {name: line(name, *parts) for name, parts in found.items()}


def _claims_for(count: int, *, each: int = _MAX_PER_CLAIM, **more: Any) -> list[Json]:
    """As few claims as a total of `count` devices needs."""
    claims: list[Json] = []
    while count > 0:
        part = min(count, each)
        claims.append(claim(f"c{len(claims)}", exactly(part, **more)))
        count -= part
    return claims


def _one_device_too_few(n: int) -> tuple[list[Json], list[Json]]:
    return [slice_of("node-0", [gpu(index) for index in range(n)])], _claims_for(n + 1)


def _one_claim_too_few(n: int) -> tuple[list[Json], list[Json]]:
    return [slice_of("node-0", [gpu(index) for index in range(n)])], _claims_for(n + 1, each=1)


def _last_request_impossible(n: int) -> tuple[list[Json], list[Json]]:
    impossible = exactly(1, f'device.attributes["{DRIVER}"].index > 1000')
    claims = [*_claims_for(n // 2), claim("last", impossible)]
    return [slice_of("node-0", [gpu(index) for index in range(n)])], claims


def _counters_one_short(n: int) -> tuple[list[Json], list[Json]]:
    use = {"counterSet": "stock", "counters": {"units": {"value": "1"}}}
    devices = [{**gpu(index), "consumesCounters": [use]} for index in range(n)]
    stock = [{"name": "stock", "counters": {"units": {"value": str(n // 2 - 1)}}}]
    parts = [
        devices[first : first + _MAX_PER_SLICE] for first in range(0, len(devices), _MAX_PER_SLICE)
    ]
    built = [slice_of("node-0", part) for part in parts]
    built.append(slice_of("node-0", [], sharedCounters=stock))
    del built[-1]["spec"]["devices"]
    for number, item in enumerate(built):
        item["metadata"]["name"] += f"-{number}"
        item["spec"]["pool"]["resourceSliceCount"] = len(built)
    return built, _claims_for(n // 2)


def _constrained(n: int, kind: str, values: Callable[[int], int]) -> tuple[list[Json], list[Json]]:
    devices = [gpu(index, group={"int": values(index)}) for index in range(n)]
    wanted = min(n // 2, _MAX_PER_CLAIM)
    constraints = [{kind: f"{DRIVER}/group"}]
    return [slice_of("node-0", devices)], [claim("a", exactly(wanted), constraints=constraints)]


def _distinct_one_short(n: int) -> tuple[list[Json], list[Json]]:
    short = min(n // 2, _MAX_PER_CLAIM) - 1
    return _constrained(n, "distinctAttribute", lambda index: index % short)


def _match_one_short(n: int) -> tuple[list[Json], list[Json]]:
    group = min(n // 2, _MAX_PER_CLAIM) - 1
    return _constrained(n, "matchAttribute", lambda index: index // group)


_HARD: Mapping[str, Callable[[int], tuple[list[Json], list[Json]]]] = {
    "one device too few": _one_device_too_few,
    "one claim too few": _one_claim_too_few,
    "last request impossible": _last_request_impossible,
    "counters one short": _counters_one_short,
    "distinct one short": _distinct_one_short,
    "match one short": _match_one_short,
}


def hard(sizes: tuple[int, ...] = (12, 24, 48, 96)) -> dict[str, Json]:
    """Name -> problem without a solution."""
    return {
        f"{name}, n = {n}": line(f"{name}, n = {n}", *build(n))
        for name, build in _HARD.items()
        for n in sizes
    }
