"""Which API version a kind is read in when a scenario does not say, and which have no namespace."""

from __future__ import annotations

RESOURCE_V1 = "resource.k8s.io/v1"

_VERSIONS = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "DeviceClass": RESOURCE_V1,
    "Event": "v1",
    "Job": "batch/v1",
    "Namespace": "v1",
    "Node": "v1",
    "Pod": "v1",
    "ResourceClaim": RESOURCE_V1,
    "ResourceClaimTemplate": RESOURCE_V1,
    "ResourceSlice": RESOURCE_V1,
}

CLUSTER_SCOPED = frozenset({"DeviceClass", "DeviceTaintRule", "Namespace", "Node", "ResourceSlice"})


def default_version(kind: str) -> str:
    """The stable API version of a kind; resource.k8s.io/v1 for one that is not listed."""
    return _VERSIONS.get(kind, RESOURCE_V1)
