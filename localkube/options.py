"""What a caller chooses about a local cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localkube.base import ClusterUsageError
from localkube.binaries.versions import KUBERNETES
from localkube.driverprogram import DriverProgram

MAX_NODES = 9

MOST_SUITABLE = 4
"""More nodes than these gain a run nothing: docs/decisions/0035."""

CONTROL_PLANE_MEMORY = 2 << 30  # Bytes: etcd and four components after some hundred scenarios.

NODE_MEMORY = 512 << 20  # Bytes: kubelet, containerd, two drivers and some pods.


def count_suitable_nodes(processors: int | None = None, memory: int | None = None) -> int:
    """Return how many nodes suit a machine, so that scenarios run beside each other on them.

    Args:
        processors: how many there are; None: those that this process may use.
        memory: bytes that are available; None: this machine's.

    Returns: 1 to ``MOST_SUITABLE``.
    """
    if processors is None:
        processors = len(os.sched_getaffinity(0))
    if memory is None:
        memory = _read_available_memory()
    room = (memory - CONTROL_PLANE_MEMORY) // NODE_MEMORY
    return max(1, min(MOST_SUITABLE, 2 * processors, room))


def has_room_for(nodes: int) -> bool:
    """Whether this machine has memory for another cluster with so many nodes."""
    return _read_available_memory() >= CONTROL_PLANE_MEMORY + nodes * NODE_MEMORY


def _read_available_memory() -> int:
    """Return the bytes that programs can get without swapping (``MemAvailable``, proc(5))."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, value = line.split(":", 1)
        if name == "MemAvailable":
            return int(value.split()[0]) << 10
    raise ClusterUsageError("/proc/meminfo has no MemAvailable; say how many --nodes")


@dataclass(frozen=True)
class LocalOptions:
    """Options of one local cluster.

    Attributes:
        name: the cluster's name: part of its directory, context and interface names.
        state_dir: its directory; None: the one of that name under `layout.default_root`.
        binaries: directory with all the cluster's binaries; None: the cache, built when empty.
        kubernetes: version of the binaries in the cache, for example "v1.37.1".
        node_kubernetes: that of the kubelets; "" is the same.
        upgrade_to: the version that its components can be upgraded to; "" is none.
        nodes: number of nodes with a kubelet, 0 to 9; 0 is a control plane only (no root needed).
        feature_gates: Kubernetes feature gates, set on every component.
        driver: the DRA driver that runs beside each kubelet; None: there is none.
        scheduler_command: a scheduler to run beside kube-scheduler; None: there is no other.
        other_driver: a second driver that can be started beside each node's.
        persistent: True: the cluster stays until `down` (`cluster up`). False: it belongs to the
            program that started it and is removed when that program ends, however it ends.
    """

    name: str = "default"
    state_dir: Path | None = None
    binaries: Path | None = None
    kubernetes: str = KUBERNETES
    node_kubernetes: str = ""
    upgrade_to: str = ""
    nodes: int = 1
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    driver: DriverProgram | None = None
    scheduler_command: tuple[str, ...] | None = None
    other_driver: DriverProgram | None = None
    persistent: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot work. Raises ClusterUsageError: a value is out of range."""
        if not 0 <= self.nodes <= MAX_NODES:
            raise ClusterUsageError(f"number of nodes {self.nodes}: use 0 to {MAX_NODES}")
        if self.driver is not None and not self.nodes:
            raise ClusterUsageError(
                "a driver needs a node with a kubelet to run on: ask for at least one node"
            )
