"""Where the devices of a reference come from: simulated GPUs, a description, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.shape import ShapeNode
from kube.base.errors import UsageError
from kube.values import Obj
from kubesim.nodes.driver import NodeDriver
from kubesim.validation.resource_slice import check_slice
from nvml_driver.options import DEFAULT_DRIVER_NAME


@dataclass(frozen=True, slots=True)
class SimulatedGpus:
    """Our own driver, called in-process on simulated NVML.

    Attributes:
        profile: the simulated GPUs of a node whose shape names none.
        prefix: stands before the names of what containers get.
    """

    profile: str | Path = "t4x4"
    driver: str = DEFAULT_DRIVER_NAME
    dynamic_mig: bool = False
    prefix: str = ""

    @property
    def simulated(self) -> str:
        """What is simulated, for reports."""
        return "NVML"

    network: ClassVar[Sequence[Obj]] = ()
    unprepared: ClassVar[Sequence[Obj]] = ()

    def count(self, node: ShapeNode) -> int:
        from nvml_driver.simulated.profile import load_profile

        return len(load_profile(str(node.gpus or self.profile)).shown)

    def start(self, node: ShapeNode, root: Path, cdi: Path) -> NodeDriver:
        """Start the driver on a node, with its files below ``root``, and its CDI specs in ``cdi``.

        Raises DriverError: the simulated GPUs cannot be set up.
        """
        # Only where there are GPUs: these load a C library.
        from conformance.targets.reference.nvml import NvmlDriver
        from nvml_driver.nvml.library import NvmlLibrary
        from nvml_driver.options import Features

        simulated = partial(NvmlLibrary.load_simulated, node.gpus or self.profile)
        features = Features(dynamic_mig=self.dynamic_mig, consumable_shares=node.shares)
        return NvmlDriver(
            self.driver, node.name, root, cdi, simulated, features, prefix=self.prefix
        )


@dataclass(frozen=True, slots=True)
class DescribedDevices:
    """A driver that is only described.

    Attributes:
        slices: ResourceSlices (v1) of a cluster, published on nodes of the same names; None: each
            node has the devices of the profile.
        others: ResourceSlices of other drivers, which are there and whose devices nobody prepares.
    """

    profile: DriverProfile
    slices: Sequence[Obj] | None = None
    others: Sequence[Obj] = ()

    @property
    def driver(self) -> str:
        """The driver's name in slices and allocations."""
        return self.profile.driver

    @property
    def simulated(self) -> str:
        source = "its profile" if self.slices is None else "ResourceSlices"
        return f"the devices of {self.driver} (as {source} describes them)"

    @property
    def network(self) -> list[Obj]:
        """Slices with devices that are not on any one node."""
        return [
            keep_name_only(item) for item in self.slices or () if not item["spec"].get("nodeName")
        ]

    @property
    def unprepared(self) -> list[Obj]:
        """Slices that are published, and whose driver does not run."""
        return [keep_name_only(item) for item in self.others]

    def _slices_of_node(self, node: ShapeNode) -> list[Obj]:
        """Return what is published for a node alone."""
        from conformance.targets.reference.described import describe_slices

        if self.slices is None:
            return describe_slices(self.profile.spec, node.name)
        return [
            keep_name_only(item)
            for item in self.slices
            if item["spec"].get("nodeName") == node.name
        ]

    def count(self, node: ShapeNode) -> int:
        return sum(len(item["spec"].get("devices") or ()) for item in self._slices_of_node(node))

    def start(self, node: ShapeNode, _root: Path, cdi: Path) -> NodeDriver:
        """Start the driver on a node, with its CDI specs in ``cdi``. Raises UsageError."""
        from conformance.targets.reference.described import DescribedDriver

        node_slices, network = self._slices_of_node(node), self.network
        for resource_slice in (*node_slices, *network, *self.others):
            for problem in check_slice(resource_slice):
                name, driver = resource_slice["metadata"]["name"], resource_slice["spec"]["driver"]
                raise UsageError(f"ResourceSlice {name} of {driver}: {problem}")
        return DescribedDriver(self.profile.spec, cdi, node_slices, network)


def keep_name_only(resource_slice: Obj) -> Obj:
    """Return a slice with nothing of its metadata but its name."""
    return {**resource_slice, "metadata": {"name": resource_slice["metadata"]["name"]}}


@dataclass(frozen=True, slots=True)
class NoDriver:
    """Nodes without a driver: only the ``allocation`` tier is served."""

    why: str

    driver: ClassVar[None] = None
    simulated: ClassVar[None] = None

    network: ClassVar[Sequence[Obj]] = ()
    unprepared: ClassVar[Sequence[Obj]] = ()

    def start(self, _node: ShapeNode, _root: Path, _cdi: Path) -> None:
        """Start nothing: the node has a kubelet alone."""


DeviceSource = SimulatedGpus | DescribedDevices | NoDriver
