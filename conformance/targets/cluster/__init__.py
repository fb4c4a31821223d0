"""The ``cluster`` target: any Kubernetes API server, followed by watches."""

from conformance.targets.cluster.target import ClusterTarget

__all__ = ["ClusterTarget"]
