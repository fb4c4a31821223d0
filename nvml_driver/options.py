"""The settings of a driver on one node: names, places, and what to publish."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from nvml_driver.nvml.installation import DriverRoot

DEFAULT_DRIVER_NAME = "gpu.nvidia.com"

DeviceNodes = Literal["create", "declare"]

ConsumableShares = Literal["unlimited", "memory"] | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What a driver publishes beyond full GPUs and static MIG devices; all off by default.

    Named after the feature gates of kubernetes-sigs/dra-driver-nvidia-gpu (``pkg/featuregates``).

    Attributes:
        dynamic_mig: publish what could be partitioned, and make it when it is prepared.
        vfio: publish GPUs that the kernel driver vfio-pci has.
        numa_list: ``resource.kubernetes.io/numaNode`` is a list of int instead of one int. A
            server without the gate DRAListTypeAttributes (1.37, off by default) refuses such a
            slice: it drops the value that it does not know and then finds none.
        consumable_shares: several claims may have shares of a device: ``unlimited``, limited by
            ``memory``, or at most so many.
    """

    dynamic_mig: bool = False
    vfio: bool = False
    numa_list: bool = False
    consumable_shares: ConsumableShares | None = None

    def __post_init__(self) -> None:
        shares = self.consumable_shares
        if isinstance(shares, int) and shares < 1:
            raise ValueError(f"consumable_shares must be at least 1, not {shares}")
        if isinstance(shares, str) and shares not in ("unlimited", "memory"):
            raise ValueError(
                f"consumable_shares must be unlimited, memory or a number, not {shares!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOptions:
    """Options of a DriverCore.

    Attributes:
        node_name: the node; also the pool's name.
        cdi_root: where CDI specs go, one directory for each node; made if missing.
        state_dir: one for each node; made if missing. Holds the checkpoint and, for simulated GPUs,
            a sysfs tree and device files.
        device_root: where ``nvidia<minor>`` is; None: ``/dev``, or ``<state_dir>/dev`` with
            simulated GPUs.
        device_nodes: for simulated GPUs. ``create`` makes character devices in ``device_root``
            (needs root), and the CDI specs name them as ``hostPath``. ``declare`` makes none: the
            specs say type and numbers without ``hostPath``, and carry the annotation
            ``dra-conformance.dev/device-nodes: declared``, for callers that only read the specs.
        driver_root: where NVIDIA's driver is installed: ``nvidia-smi``, libraries.
        driver_libraries: give containers the driver's libraries and tools; never those of simulated
            GPUs, which have none but a simulated ``nvidia-smi``.
        cdi_hook: NVIDIA's CDI hook (``nvidia-cdi-hook``), as the node names it; None: do without.
        device_metadata: give containers files that describe their devices (see ``metadata``).
        container_prefix: stands before the names of all variables and device files that containers
            get, so that two instances on a node hide nothing of each other; for simulated GPUs.
        durable: fsync what must survive a loss of power; off for in-process use, where nothing
            outlives the process.
    """

    node_name: str
    cdi_root: Path
    state_dir: Path
    driver_name: str = DEFAULT_DRIVER_NAME
    device_root: Path | None = None
    device_nodes: DeviceNodes = "create"
    features: Features = field(default_factory=Features)
    driver_root: DriverRoot = field(default_factory=DriverRoot)
    driver_libraries: bool = True
    cdi_hook: Path | None = None
    device_metadata: bool = False
    container_prefix: str = ""
    durable: bool = True
