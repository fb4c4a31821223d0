"""Clusters of the suite's own that the kind command makes in a container engine."""

from conformance.clusters.kind.cluster import KindCluster
from conformance.clusters.kind.command import kind_command

__all__ = ["KindCluster", "kind_command"]
