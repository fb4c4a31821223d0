"""The ``cluster`` target: any Kubernetes API server, followed by watches."""

from conformance.targets.cluster.target import ClusterTarget, FaultInjector

__all__ = ["ClusterTarget", "FaultInjector"]
