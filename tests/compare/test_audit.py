"""What is wrong with a cluster's allocations; each defect is planted, and nothing else is told."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.compare.audit.once import audit
from conformance.compare.evidence import Obj
from reference_allocator.features import Features
from tests.compare.cluster import allocation, claim, node, pod, resource_slice, snapshot


def held(name: str, *devices: str, **changes: Any) -> Obj:
    reserved = [{"resource": "pods", "name": name, "uid": f"uid-{name}"}]
    made = claim(name, len(devices))
    made["status"] = {"allocation": allocation(*devices), "reservedFor": reserved}
    made["metadata"] |= changes.pop("metadata", {})
    made["status"] |= changes
    return made


def user(name: str, phase: str = "Running") -> Obj:
    found = pod(name, nodeName="node-a") | {"status": {"phase": phase}}
    found["metadata"]["uid"] = f"uid-{name}"
    return found


def audited(*claims: Obj, **changes: Any) -> list[str]:
    names = [item["metadata"]["name"] for item in claims]
    known = {"pods": tuple(map(user, names)), "allocated": claims}
    return [str(item) for item in audit({"pods": [], **snapshot(**(known | changes))})]


def with_spec(item: Obj, **exactly: Any) -> Obj:
    item["spec"]["devices"]["requests"][0]["exactly"] |= exactly
    return item


def generation(number: int) -> Obj:
    found = resource_slice()
    found["metadata"]["name"] = f"slice-{number}"
    found["spec"]["pool"]["generation"] = number
    return found


def drained() -> Obj:
    """Two partitions of one GPU, of which its counters allow one."""
    found = resource_slice()
    counters = {"memory": {"value": "40Gi"}}
    found["spec"]["pool"]["resourceSliceCount"] = 2
    for device in found["spec"]["devices"]:
        device["consumesCounters"] = [{"counterSet": "gpu", "counters": counters}]
    return found


def stock() -> Obj:
    found = resource_slice()
    found["metadata"]["name"] = "counters"
    found["spec"]["pool"]["resourceSliceCount"] = 2
    del found["spec"]["devices"]
    counters = {"memory": {"value": "40Gi"}}
    found["spec"]["sharedCounters"] = [{"name": "gpu", "counters": counters}]
    return found


def emptied() -> Obj:
    """The second slice of a pool, of which the API server has left nothing."""
    item = stock()
    item["metadata"]["name"] = "empty"
    del item["spec"]["sharedCounters"]
    return item


def nowhere() -> Obj:
    item = resource_slice()
    del item["spec"]["nodeName"]
    return item


def networked() -> tuple[Obj, Obj]:
    """A device of some nodes, and a claim that has it and names no node."""
    found = resource_slice()
    del found["spec"]["nodeName"]
    term = {"matchExpressions": [{"key": "net", "operator": "In", "values": ["1"]}]}
    found["spec"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
    made = held("a", "gpu-0")
    made["status"]["allocation"]["nodeSelector"] = found["spec"]["nodeSelector"]
    return found, made


def labelled(**labels: str) -> Obj:
    found = node()
    found["metadata"]["labels"] = labels
    return found


def hot() -> Obj:
    found = resource_slice()
    found["spec"]["devices"][0]["taints"] = [{"key": "hot", "effect": "NoSchedule"}]
    return found


ADMIN = {"adminAccess": True}
BIG = claim(memory="80Gi")["spec"]["devices"]["requests"][0]["exactly"]["selectors"]


@pytest.mark.parametrize(
    ("claims", "changes"),
    [
        pytest.param((held("a", "gpu-0"), held("b", "gpu-1")), {}, id="as it should be"),
        pytest.param((held("a", "gpu-0"),), {"slices": (hot(),)}, id="tainted since"),
        pytest.param(
            (networked()[1],),
            {"slices": (networked()[0],), "nodes": (labelled(net="1"),)},
            id="used on a node that its allocation does not name",
        ),
        pytest.param(
            (held("a", "gpu-0"), held("b", "gpu-1")),
            {"slices": (generation(3),), "nodes": (node(unschedulable=True),)},
            id="another generation since",
        ),
        pytest.param(
            (held("a", "gpu-0", metadata={"deletionTimestamp": "now"}),), {}, id="deleted and used"
        ),
    ],
)
def test_nothing_is_found_where_nothing_is_wrong(
    claims: tuple[Obj, ...], changes: dict[str, Any]
) -> None:
    assert audited(*claims, **changes) == []


@pytest.mark.parametrize(
    ("claims", "changes", "finding"),
    [
        pytest.param(
            (held("a", "gpu-0"), held("b", "gpu-0")),
            {},
            "double-allocation: ns/a: gpu.example.com/node-a/gpu-0 is allocated to ns/b too",
            id="double allocation",
        ),
        pytest.param(
            (held("a", "gpu-0"), held("b", "gpu-1")),
            {"slices": (drained(), stock())},
            "counter: ",
            id="counters",
        ),
        pytest.param((held("a", "gpu-7"),), {}, "device: ns/a: ", id="no such device"),
        pytest.param(
            (with_spec(held("a", "gpu-0"), selectors=BIG),), {}, "selector: ns/a: ", id="selector"
        ),
        pytest.param((with_spec(held("a", "gpu-0"), count=2),), {}, "count: ns/a: ", id="count"),
        pytest.param(
            (held("a", "gpu-0"),),
            {"nodes": (), "slices": ()},
            "no-node: ns/a: there is no node node-a",
            id="node",
        ),
        pytest.param(
            (),
            {"nodes": ()},
            "stale-slice: gpu.example.com/node-a: slice node-a-gpus is of node node-a, which is",
            id="slice of a node that is gone",
        ),
        pytest.param(
            (),
            {"slices": (generation(1), generation(2))},
            "stale-slice: gpu.example.com/node-a: slice slice-1 is of generation 1; 2 is there",
            id="slice of an old generation",
        ),
        pytest.param(
            (),
            {"slices": (stock(),)},
            "stale-slice: gpu.example.com/node-a: 1 of 2 slices of generation 1 are there",
            id="part of a pool",
        ),
        pytest.param(
            (),
            {"slices": (stock(), emptied()), "features": Features()},
            "dropped-fields: gpu.example.com/node-a: slice empty has neither devices nor counters:"
            " are the counters dropped, because DRAPartitionableDevices is off?",
            id="counters dropped",
        ),
        pytest.param(
            (),
            {"slices": (nowhere(),)},
            "dropped-fields: gpu.example.com/node-a: slice node-a-gpus is for no node: is"
            " perDeviceNodeSelection dropped, because DRAPartitionableDevices is off?",
            id="node selection dropped",
        ),
        pytest.param(
            (with_spec(held("a", "gpu-9"), allocationMode="All", count=None),),
            {},
            "device: ns/a: gpu.example.com/node-a/gpu-9: the pool has no such device for node-a",
            id="one of all is gone",
        ),
        pytest.param(
            (networked()[1],),
            {"slices": (networked()[0],), "nodes": (labelled(net="2"),)},
            "device: ns/a: gpu.example.com/node-a/gpu-0: pool node-a has no devices for",
            id="used on another node",
        ),
        pytest.param(
            (held("a", "gpu-0"),),
            {"pods": ()},
            "reserved-for-nobody: ns/a: pod a is gone",
            id="gone pod",
        ),
        pytest.param(
            (held("a", "gpu-0"),),
            {"pods": (user("a", "Succeeded"),)},
            "reserved-for-nobody: ns/a: pod a has ended (Succeeded)",
            id="ended pod",
        ),
        pytest.param(
            (
                held(
                    "a",
                    "gpu-0",
                    metadata={"deletionTimestamp": "T", "finalizers": ["x.io/y"]},
                    reservedFor=[],
                ),
            ),
            {},
            "not-deleted: ns/a: was deleted at T, and is held by x.io/y",
            id="finalizer",
        ),
    ],
)
def test_each_defect_is_found(
    claims: tuple[Obj, ...], changes: dict[str, Any], finding: str
) -> None:
    found = audited(*claims, **changes)
    assert any(line.startswith(finding) for line in found), found
    rules = {line.partition(":")[0] for line in found} - {finding.partition(":")[0]}
    assert not rules, found  # nothing follows from a device that is not there


def test_pods_that_were_not_read_are_not_called_gone() -> None:
    assert audit(snapshot(allocated=(held("a", "gpu-0"),))) == []
