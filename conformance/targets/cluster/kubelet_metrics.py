"""How many claims a kubelet has prepared, read from its metrics through the API server.

The kubelets of Kubernetes 1.34 to 1.37 have the gauge ``dra_resource_claims_in_use`` with the label
``driver_name``; ``<any>`` is always there, a driver only while it has claims (pkg/kubelet/metrics,
pkg/kubelet/cm/dra/claiminfo.go). It counts what the kubelet asked for and the driver said yes to:
it shows a kubelet that does not unprepare and a driver that refuses to, not one that only says that
it did.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.kubeapi.connection import Connection
from conformance.targets.base import ApiError, TargetError

_PATIENCE = 2.0  # seconds
_GAUGE = re.compile(
    r'^dra_resource_claims_in_use\{driver_name="(?P<driver>[^"]+)"\} (?P<count>\S+)$', re.MULTILINE
)


def prepared_claims(connection: Connection, node: str, driver: str, agent: str = "") -> int | None:
    """How many claims of a driver the node's kubelet has prepared; None: no such metric.

    Raises:
        ApiError: the metrics may not be read.
        TargetError: no answer.
    """
    path = f"/api/v1/nodes/{node}/proxy/metrics"
    found = connection.text("GET", path, accept="text/plain", patience=_PATIENCE, agent=agent)
    counts = dict(_GAUGE.findall(found.decode("utf-8", "replace")))
    return int(float(counts.get(driver, 0))) if counts else None


def why_not(connection: Connection, nodes: Sequence[str], driver: str) -> str:
    """Why the nodes' kubelets do not tell; empty if they do, as far as the first of them shows."""
    try:
        told = prepared_claims(connection, nodes[0], driver) is not None if nodes else True
    except (ApiError, TargetError) as error:
        return f"{error}; ci/rbac/kubelet-metrics.yaml has the permission"
    return "" if told else f"the kubelet of {nodes[0]} has no metric dra_resource_claims_in_use"
