"""What components of a cluster count, read from their metrics.

A kubelet is asked through the API server, which needs the permission for ``nodes/proxy``. What
listens on a control plane's own machine only is asked where the cluster's source can (a local
cluster).
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families

from conformance.kubeapi.connection import Connection
from conformance.scenario.observation import METRICS, PREPARED, Sample
from conformance.targets.seam.values import ApiError, TargetError

_PATIENCE = 2.0  # seconds


def of_kubelet(connection: Connection, node: str, agent: str = "") -> str:
    """The metrics of a node's kubelet. Raises ApiError or TargetError."""
    path = f"/api/v1/nodes/{node}/proxy/metrics"
    found = connection.text("GET", path, accept="text/plain", patience=_PATIENCE, agent=agent)
    return found.decode("utf-8", "replace")


def samples_in(text: str, name: str) -> Sequence[Sample] | None:
    """The series of a metric, by the name of whichever minor; None: this is no such text."""
    names = (name, *METRICS[name].formerly)
    # Alone, for there are thousands of others.
    lines = [line for line in text.splitlines() if line.startswith(names)]
    try:
        return [
            Sample(sample.labels, float(sample.value))
            for family in text_string_to_metric_families("\n".join(lines) + "\n")
            for sample in family.samples
            if sample.name in names
        ]
    except ValueError:
        return None


def why_not(connection: Connection, nodes: Sequence[str]) -> str:
    """Why the nodes' kubelets do not tell; empty if they do, as far as the first of them shows."""
    try:
        told = samples_in(of_kubelet(connection, nodes[0]), PREPARED) if nodes else True
    except (ApiError, TargetError) as error:
        return f"{error}; ci/rbac/kubelet-metrics.yaml has the permission"
    return "" if told else f"the kubelet of {nodes[0]} has no metric {PREPARED}"
