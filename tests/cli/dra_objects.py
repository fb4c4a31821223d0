"""Claims, pods and slices of the driver, in every served version of the API."""

from __future__ import annotations

from tests.cli.plain_client import Json

DRIVER = "gpu.nvidia.com"
VERSIONS = ["v1", "v1beta2", "v1beta1"]


def bad_config() -> Json:
    return {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {}}


def good_config() -> Json:
    return {**bad_config(), "sharing": {"strategy": "TimeSlicing"}}


def claim(name: str, config: Json | None = None, version: str = "v1", kind: str = "") -> Json:
    """A ResourceClaim, or a template, in any served version."""
    request: Json = {"deviceClassName": DRIVER}
    requests = [{"name": "gpu", **(request if version == "v1beta1" else {"exactly": request})}]
    has = config is not None
    configs = [{"opaque": {"driver": DRIVER, "parameters": config}}] if has else []
    spec: Json = {"devices": {"requests": requests, "config": configs}}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": kind or "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec,
    }


def pod(name: str, claim_name: str, image: str) -> Json:
    command = ["sh", "-c", "trap 'exit 0' TERM; ls /dev; sleep 100000 & wait"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}],
            "containers": [
                {
                    "name": "c",
                    "image": image,
                    "command": command,
                    "resources": {"claims": [{"name": "gpu"}]},
                }
            ],
        },
    }


def slice_of(node: str, *, driver: str = DRIVER, pool: str = "", version: str = "v1") -> Json:
    device: Json = {"name": "fake"}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "fake"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": pool or node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{**device, "basic": {}} if version == "v1beta1" else device],
        },
    }
