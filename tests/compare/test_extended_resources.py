"""Pods of extended resources that wait, asked in every way: explained, and what would fit if."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.compare.asking import answer_question
from conformance.compare.evidence import Obj
from conformance.compare.explain import explain_snapshot, read_snapshot
from conformance.compare.following import FollowedSnapshot
from conformance.compare.replay import WhatIf
from reference_allocator.snapshot import Snapshot
from tests.compare import cluster

NAME = "example.org/gpu"


def container(name: str, amount: int, **fields: Any) -> Obj:
    return {"name": name, "resources": {"requests": {NAME: str(amount)}}, **fields}


def sidecar(name: str, amount: int) -> Obj:
    return container(name, amount, restartPolicy="Always")


def situation(devices: int, pod: Obj, *others: Obj, allocated: tuple[Obj, ...] = ()) -> Snapshot:
    gpu = cluster.device_class()
    gpu["spec"]["extendedResourceName"] = NAME
    return read_snapshot(
        cluster.snapshot(
            slices=(cluster.resource_slice(sizes=["40Gi"] * devices),),
            device_classes=(gpu,),
            pods=(pod, *others),
            allocated=allocated,
        )
    )


PODS = {
    "each container has its own": (3, [], [container("a", 2), container("b", 1)]),
    "an init container has what later ones get": (2, [container("i", 2)], [container("a", 1)]),
    "a sidecar keeps its devices": (2, [sidecar("s", 1)], [container("a", 1)]),
    "what an earlier sidecar has is not to be had": (
        3,
        [sidecar("s", 1), container("i", 2)],
        [container("a", 1)],
    ),
    "what a later sidecar gets is to be had before": (
        2,
        [container("i", 2), sidecar("s", 1)],
        [container("a", 1)],
    ),
    "init containers come one after the other": (
        3,
        [container("i", 3), container("j", 2)],
        [container("a", 1)],
    ),
}
"""What is shown -> the fewest devices that do, by Kubernetes' `createRequestsAndMappings`."""


@pytest.mark.parametrize(("fewest", "init", "containers"), PODS.values(), ids=PODS)
def test_a_pod_needs_so_many_devices_and_no_fewer(
    fewest: int, init: list[Obj], containers: list[Obj]
) -> None:
    pod = cluster.pod("p", initContainers=init, containers=containers)
    for devices, fits in ((fewest, ("node-a",)), (fewest - 1, ())):
        [explained] = explain_snapshot(situation(devices, pod), "ns/p", suggest=False)
        assert explained.fits == fits, explained.text
    new = [cluster.node("new"), cluster.resource_slice("new", ["40Gi"] * fewest)]
    asked = json.dumps({"id": "1", "pod": "ns/p", "add": new}).encode()
    [told] = json.loads(answer_question(FollowedSnapshot(situation(0, pod)), asked))["pods"]
    assert told["fits"] == ["new"]


def test_a_node_that_is_added_and_a_pod_that_ends_give_devices(tmp_path: Path) -> None:
    """What the scheduler has made for a running pod is its child, and goes with it."""
    pod = cluster.pod("p", containers=[container("a", 2)])
    runs = cluster.pod("runs", nodeName="node-a", containers=[container("a", 1)])
    runs["metadata"]["uid"] = "uid-runs"
    runs["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "runs-extended"}}
    made = cluster.allocated("runs-extended", "gpu-0")
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "runs", "uid": "uid-runs", "controller": True}
    ]
    made["status"]["reservedFor"] = [{"resource": "pods", "name": "runs", "uid": "uid-runs"}]
    snapshot = situation(2, pod, runs, allocated=(made,))
    [explained] = explain_snapshot(snapshot, "ns/p")
    assert (explained.fits, [item.pods for item in explained.held]) == ((), [("ns/runs",)])
    assert "pod ns/runs ended" in {item.change for item in explained.changes or ()}
    file = tmp_path / "node.yaml"
    new = [cluster.node("new"), cluster.resource_slice("new")]
    file.write_text(yaml.safe_dump_all(new))
    for changed, node in (
        (WhatIf(end=("ns/runs",)).apply(snapshot), "node-a"),
        (WhatIf(nodes=(file,)).apply(snapshot), "new"),
    ):
        [explained] = explain_snapshot(changed, "ns/p", suggest=False)
        assert explained.fits == (node,), explained.text
    assert not WhatIf(end=("ns/runs",)).apply(snapshot).allocated
