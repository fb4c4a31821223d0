"""A real Kubernetes cluster on one Linux machine, without Docker.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and, as root, nodes with a real
kubelet and containerd each, all as ordinary processes under one state directory. Everything a
cluster makes can be found again from that directory and removed by another process.
"""

from conformance.clusters.local.cluster import LocalCluster, stale_clusters
from conformance.clusters.local.options import LocalOptions, Simulation
from conformance.clusters.local.processes.supervision import ComponentStatus

__all__ = ["ComponentStatus", "LocalCluster", "LocalOptions", "Simulation", "stale_clusters"]
