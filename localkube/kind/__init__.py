"""Clusters of the suite's own that the kind command makes in a container engine."""

from localkube.kind.cluster import KindCluster
from localkube.kind.command import kind_command

__all__ = ["KindCluster", "kind_command"]
