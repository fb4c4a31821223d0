"""Shapes of clusters: how many nodes and devices there are, and the faults of some.

A shape is data from which the reference is built, so that the suite can be tried on a cluster like
one's own. It is not the driver: what that is called and how it shows devices is in its profile.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from conformance.scenario.base import Named, Strict, api_objects, dns_name
from conformance.scenario.documents.validate import load_document, shipped_or_file
from reference_allocator.api.defaulting import default_slice


class NodeTaint(Strict):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class DeviceTaint(Strict):
    """A taint that the driver publishes for a device."""

    key: str
    value: str = ""
    effect: Literal["None", "NoSchedule", "NoExecute"]


class ShapeNode(Strict):
    """A node, or several that are alike."""

    name: str = Field(description="the node's name; of several, what -0, -1 ... is added to")
    count: int | None = Field(default=None, ge=1, le=1000, description="how many there are")
    ready: bool = Field(
        default=True,
        description="false: its kubelet is gone, and the driver's ResourceSlices have stayed",
    )
    unschedulable: bool = Field(default=False, description="the node is cordoned")
    labels: dict[str, str] = Field(default={}, description="beside those of every node")
    taints: tuple[NodeTaint, ...] = Field(default=(), description="taints of the node")
    driver: bool = Field(default=True, description="false: no driver, and so no devices")
    gpus: str = Field(
        default="",
        description="simulated GPUs of the suite's own driver, as for --simulate; default t4x4",
    )
    shares: int | None = Field(
        default=None,
        ge=1,
        description="so many claims may have each GPU of the suite's own driver at once",
    )
    device_taints: dict[str, tuple[DeviceTaint, ...]] = Field(
        default={}, description="device -> taints that the driver publishes"
    )
    held: tuple[str, ...] = Field(
        default=(), description="devices that a pod in another namespace holds"
    )

    def expand_nodes(self) -> tuple[ShapeNode, ...]:
        """Return the nodes that it stands for, each with its own name."""
        if self.count is None:
            return (self,)
        return tuple(
            self.model_copy(update={"name": f"{self.name}-{index}", "count": None})
            for index in range(self.count)
        )


class ShapeSpec(Strict):
    """What a cluster has."""

    description: str = ""
    nodes: tuple[ShapeNode, ...] = ()
    slices: tuple[dict[str, Any], ...] | None = Field(
        default=None,
        description=(
            "ResourceSlices, as `kubectl get resourceslices -o yaml` shows them, in place of the"
            " devices that each node has otherwise; those of other drivers are there beside it"
        ),
    )

    @field_validator("nodes")
    @classmethod
    def _expand_nodes(cls, value: tuple[ShapeNode, ...]) -> tuple[ShapeNode, ...]:
        nodes = tuple(single_node for node in value for single_node in node.expand_nodes())
        for name, times in Counter(dns_name(node.name) for node in nodes).items():
            if times > 1:
                raise ValueError(f"{times} nodes have the name {name}")
        return nodes

    @field_validator("slices")
    @classmethod
    def _are_slices(
        cls, value: tuple[dict[str, Any], ...] | None
    ) -> tuple[dict[str, Any], ...] | None:
        for item in api_objects(value or (), "resource/v1.ResourceSlice", "a ResourceSlice of v1"):
            if not (item.get("metadata") or {}).get("name") or not item.get("spec"):
                raise ValueError("a ResourceSlice needs metadata.name and spec")
        return None if value is None else tuple(map(default_slice, value))

    @model_validator(mode="after")
    def _slices_have_their_nodes(self) -> Self:
        names = {node.name for node in self.nodes}
        for item in self.slices or ():
            node = item["spec"].get("nodeName")
            if node and node not in names:
                raise ValueError(f"slices: {item['metadata']['name']} is of no node: {node}")
        return self


class ClusterShape(Strict):
    """How many nodes and devices a cluster has, and the faults of some."""

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["ClusterShape"]
    metadata: Named
    spec: ShapeSpec


def find_shape(name_or_file: str, directory: Path) -> ClusterShape | None:
    """Return a shape by its shipped name or its file; None for neither. Raises UsageError."""
    file = shipped_or_file(name_or_file, directory, "cluster shape")
    return None if file is None else load_document(ClusterShape, file, "cluster shape")
