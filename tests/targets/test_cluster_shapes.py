"""The reference is the cluster that a shape describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from kube.base.errors import UsageError
from kube.values import Query
from tests.scenario.shapes import SHAPES

WRITTEN = """
apiVersion: dra-conformance/v1
kind: ClusterShape
metadata: {name: mine}
spec: SPEC
"""


@pytest.mark.parametrize(
    ("shape", "devices", "nodes"),
    [
        ("1x1", 1, 1),
        ("3x1", 3, 3),
        ("4x8", 32, 4),
        ("control plane only", 0, 0),
        ("no devices", 0, 2),
        ("nodes-without-gpus", 4, 4),
        ("one-gpu-held", 3, 1),
        ("one-gpu-tainted", 3, 1),
        ("cordoned-node", 2, 1),
        ("not-ready-node", 2, 1),
        ("tainted-nodes", 4, 2),
        ("several pools", 8, 2),
        ("network-attached", 4, 2),
        ("two drivers", 4, 2),
    ],
)
def test_what_pods_could_have_is_what_the_shape_says(shape: str, devices: int, nodes: int) -> None:
    with open_reference(SHAPES[shape]) as opened:
        assert (opened.capabilities.free.total, len(opened.capabilities.nodes)) == (devices, nodes)


def test_the_slices_of_a_node_that_is_gone_have_stayed() -> None:
    with open_reference(SHAPES["not-ready-node"]) as opened:
        scope = opened.target.scope("any")
        slices = scope.find(Query("resource.k8s.io/v1", "ResourceSlice"))
        scope.close()
    assert {item["spec"]["nodeName"] for item in slices} == {"worker-0", "worker-1"}


def test_devices_of_another_driver_are_there_too() -> None:
    with open_reference(SHAPES["two drivers"]) as opened:
        snapshot = opened.target.scope("any").snapshot()
    pools = [
        (item["spec"]["driver"], item["spec"]["pool"]["generation"]) for item in snapshot["slices"]
    ]
    assert sorted(pools) == [("gpu.example.com", 0)] * 2 + [("nic.example.org", 0)] * 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "{nodes: [{name: a, held: [gpu-9]}]}",
            "the node a of the cluster shape has .*, not gpu-9",
        ),
        ("{nodes: [{name: a, driver: false, held: [gpu-0]}]}", "has none, not gpu-0"),
        ("{nodes: [{name: a}, {name: a}]}", "2 nodes have the name a"),
        ("{nodes: [{name: A_B}]}", "RFC 1123"),
        ("{nodes: [{name: a, cout: 2}]}", "unknown field 'cout'"),
        ("{nodes: [{name: a, gpus: t5x1}]}", "neither a file"),
        ("{slices: [{metadata: {name: s}}]}", "needs metadata.name and spec"),
        ("{slices: [{metadata: {name: s}, spec: {drivr: x}}]}", "has no such field"),
        ("{slices: [{metadata: {name: s}, spec: {nodeName: b}}]}", "s is of no node: b"),
        ("{slices: [{metadata: {name: s}, spec: {driver: x, allNodes: true}}]}", "driver x, and"),
    ],
)
def test_a_shape_that_is_wrong_is_told(tmp_path: Path, spec: str, message: str) -> None:
    file = tmp_path / "shape.yaml"
    file.write_text(WRITTEN.replace("SPEC", spec), encoding="utf-8")
    with (
        pytest.raises(UsageError, match=message),
        open_reference(TargetOptions(simulate=str(file))),
    ):
        pass
