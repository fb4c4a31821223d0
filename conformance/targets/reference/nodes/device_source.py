"""Where the devices of a reference come from: simulated GPUs, a description, or nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.scenario.profile import DriverProfile
from conformance.targets.base import Obj
from conformance.targets.options import REFERENCE_DRIVER
from conformance.targets.reference.nodes.driver import NodeDriver


@dataclass(frozen=True, slots=True)
class SimulatedGpus:
    """Our own driver, called in-process on simulated NVML.

    Attributes:
        profile: the simulated GPUs of each node: a shipped profile's name or a file.
        driver: the driver's name in slices and allocations.
        dynamic_mig: offer all MIG devices that could be made.
    """

    profile: str | Path = "t4x4"
    driver: str = REFERENCE_DRIVER
    dynamic_mig: bool = False

    @property
    def simulated(self) -> str:
        """What is simulated, for reports."""
        return "NVML"

    def start(self, nodes: Sequence[str], root: Path) -> Mapping[str, NodeDriver | None]:
        """Start the driver on each node, with its files below ``root``.

        Raises:
            DriverError: the simulated GPUs cannot be set up.
        """
        # Only where there are GPUs: these load a C library.
        from conformance.targets.reference.nodes.nvml import NvmlDriver
        from nvml_driver.nvml.library import NvmlLibrary
        from nvml_driver.options import Features

        library, features = (
            NvmlLibrary.simulated(self.profile),
            Features(dynamic_mig=self.dynamic_mig),
        )
        return {
            name: NvmlDriver(self.driver, name, root / name, library, features) for name in nodes
        }


@dataclass(frozen=True, slots=True)
class DescribedDevices:
    """A driver that is only described.

    Attributes:
        profile: of the driver.
        slices: ResourceSlices (v1) of a cluster, published on nodes of the same names; without any,
            each node has the devices of the profile.
    """

    profile: DriverProfile
    slices: Sequence[Obj] = ()

    @property
    def driver(self) -> str:
        """The driver's name in slices and allocations."""
        return self.profile.driver

    @property
    def simulated(self) -> str:
        """What is simulated, for reports."""
        source = "the cluster's ResourceSlices" if self.slices else "its profile"
        return f"the devices of {self.driver} (as {source} describes them)"

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that have devices in the cluster; empty where the profile describes them."""
        names = {str(item["spec"]["nodeName"]) for item in self.slices if _is_local(item)}
        return tuple(sorted(names))

    def start(self, nodes: Sequence[str], root: Path) -> Mapping[str, NodeDriver | None]:
        """Start the driver on each node, with its files below ``root``.

        Raises:
            UsageError: an API server would refuse the devices of the profile.
        """
        from conformance.targets.reference.nodes.described import DescribedDriver

        return {
            name: DescribedDriver(
                self.profile.spec,
                name,
                root / name,
                self._slices_of(name, name == nodes[0]) if self.slices else None,
            )
            for name in nodes
        }

    def _slices_of(self, node: str, is_first: bool) -> list[Obj]:
        """What is on a node; the first one also publishes what is not on any one node."""
        return [
            {**item, "metadata": {"name": item["metadata"]["name"]}}
            for item in self.slices
            if item["spec"].get("nodeName") == node or (is_first and not _is_local(item))
        ]


def _is_local(resource_slice: Obj) -> bool:
    return bool(resource_slice["spec"].get("nodeName"))


@dataclass(frozen=True, slots=True)
class NoDriver:
    """Nodes without a driver: only the ``allocation`` tier is served.

    Attributes:
        why: for reports.
    """

    why: str

    driver: None = None
    simulated: None = None

    def start(self, nodes: Sequence[str], _root: Path) -> Mapping[str, NodeDriver | None]:
        """Nodes with a kubelet alone."""
        return dict.fromkeys(nodes)


DeviceSource = SimulatedGpus | DescribedDevices | NoDriver
