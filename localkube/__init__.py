"""Real clusters without a container engine, and kind; a kubeconfig's cluster as well.

Every source answers with one `ClusterAccess` value (see base.py), so that who uses a cluster does
not know where it comes from. `LocalCluster` is a real Kubernetes cluster on one Linux machine:
etcd, kube-apiserver, kube-controller-manager, kube-scheduler and, as root, nodes with a real
kubelet and containerd each, all as ordinary processes under one state directory. Everything a
cluster makes can be found again from that directory and removed by another process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localkube.cluster import LocalCluster, stale_clusters
    from localkube.driverprogram import DriverProgram, command_driver
    from localkube.options import LocalOptions
    from localkube.processes.supervision import ComponentStatus

__all__ = [
    "ComponentStatus",
    "DriverProgram",
    "LocalCluster",
    "LocalOptions",
    "command_driver",
    "stale_clusters",
]

_HOMES = {
    "ComponentStatus": "localkube.processes.supervision",
    "DriverProgram": "localkube.driverprogram",
    "LocalCluster": "localkube.cluster",
    "LocalOptions": "localkube.options",
    "command_driver": "localkube.driverprogram",
    "stale_clusters": "localkube.cluster",
}


def __getattr__(name: str) -> Any:
    """What `__all__` names, imported when somebody asks: pytest imports this in every session."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
