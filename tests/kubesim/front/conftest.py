"""A front on a reference without devices, and a client that speaks HTTP and nothing more."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from conformance.targets.reference.device_source import NoDriver
from conformance.targets.reference.serving import real_time
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from kube.values import User
from kubesim.front.server import Front
from kubesim.front.serving import seconds_since_epoch

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
ACCOUNT = User("default", "account")


class Client:
    """Requests with the administrator's token, or what else is given."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self.server = config["clusters"][0]["cluster"]["server"]
        self.token = config["users"][0]["user"]["token"]
        self.pool = urllib3.PoolManager(ca_certs=str(kubeconfig.parent / "pki" / "ca.crt"))

    def send(
        self, method: str, path: str, body: Any = None, /, **headers: str
    ) -> urllib3.BaseHTTPResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"authorization": f"Bearer {self.token}", **named}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        return self.pool.request(
            method, self.server + path, body=data, headers=sent, retries=False, timeout=20.0
        )

    def stream(self, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Type and object of each event of a watch."""
        response = self.pool.request(
            "GET",
            self.server + path,
            headers={"authorization": f"Bearer {self.token}"},
            preload_content=False,
            timeout=20.0,
        )
        try:
            buffer = b""
            for chunk in response.stream():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    yield event["type"], event["object"]
        finally:
            response.close()


@pytest.fixture
def front(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Front]:
    """A front of the latest Kubernetes, or of the version that an indirect parameter names."""
    options = ReferenceOptions(devices=NoDriver("none"), start=seconds_since_epoch())
    if hasattr(request, "param"):
        options = replace(options, kubernetes_version=request.param)
    with ReferenceTarget(options) as target:
        backend = real_time(target)
        made = Front(backend, tmp_path, "test", {"its-token": ACCOUNT})
        running = threading.Thread(target=backend.run)
        running.start()
        yield made
        made.close()
        running.join()


@pytest.fixture
def client(front: Front) -> Iterator[Client]:
    made = Client(front.kubeconfig)
    yield made
    made.pool.clear()


def claim(name: str, **labels: str) -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "some.example.com"}}]
    metadata: Mapping[str, Any] = {"name": name, "labels": labels}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": requests}},
    }
