"""ci/deploy/audit on a real cluster: the Deployment's pod tells of a device that two claims have.

As in test_real_job.py the manifests are what the real kustomize makes of them, and the container
runs from this machine's files.
"""

from __future__ import annotations

import pytest

from tests.cli import deployment
from tests.cli.plain_client import Api, eventually
from tests.compare import cluster as objects

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_go,
    pytest.mark.slow,
    pytest.mark.everything,
]

AUDIT = deployment.ROOT / "ci" / "deploy" / "audit"
PODS = "/api/v1/namespaces/dra-conformance-audit/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def given_twice(admin: Api) -> None:
    """Two claims that are allocated the same device, as no scheduler would."""
    admin.create(objects.device_class())
    admin.create(objects.resource_slice())
    for name in ("one", "two"):
        made = objects.claim(name)
        made["metadata"] = {"name": name, "namespace": "default"}
        stored = admin.create(made)
        stored["status"] = {"allocation": objects.allocation("gpu-0")}
        admin.ask("PUT", f"{CLAIMS}/{name}/status", stored)


def test_the_deployment_tells_of_a_device_in_two_claims() -> None:
    with deployment.for_clients("a") as (admin, image):
        for one in deployment.unrestricted(AUDIT):
            if one["kind"] == "Deployment":
                deployment.for_a_client(one["spec"]["template"]["spec"], image, ["dra-conformance"])
            admin.create(one)

        def log() -> str:
            for pod in admin.list(PODS):
                for status in pod["status"].get("containerStatuses") or ():
                    if "running" in status["state"]:
                        return admin.text("GET", f"{PODS}/{pod['metadata']['name']}/log")
            return ""

        eventually(lambda: "metrics on " in log(), lambda: str(admin.list(PODS)), 180)
        given_twice(admin)
        found = eventually(lambda: "double-allocation" in log() and log(), log, 60)
    assert "gpu-0" in found
