"""A client of the API server for tests: one request, its answer, nothing kept.

It is none of the project's own, so that a mistake there cannot hide here. It reads the REST paths
from the API server's discovery.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import urllib3
import yaml

from localkube import LocalCluster

Json = dict[str, Any]


def eventually(
    check: Callable[[], Any], what: str | Callable[[], str], seconds: float = 180
) -> Any:
    """The first true value of ``check``; ``what`` says what was awaited."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not within {seconds} s: {what if isinstance(what, str) else what()}"
            )
        time.sleep(0.1)


class RefusedError(Exception):
    """The API server's answer was not 2xx."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Api:
    """Requests to the API server as one user."""

    def __init__(self, server: str, ca: Path, token: str) -> None:
        self.server, self.ca = server, ca
        self._pool = urllib3.PoolManager(
            ca_certs=str(ca), headers={"Authorization": f"Bearer {token}"}, retries=False
        )
        self._plurals: dict[str, dict[str, tuple[str, bool]]] = {}

    @classmethod
    def admin(cls, cluster: LocalCluster) -> Api:
        """The administrator of a local cluster."""
        document = yaml.safe_load(cluster.layout.kubeconfig.read_text())
        server = document["clusters"][0]["cluster"]["server"]
        return cls(server, cluster.layout.pki / "ca.crt", document["users"][0]["user"]["token"])

    def as_user(self, token: str) -> Api:
        """The same server, another user."""
        return Api(self.server, self.ca, token)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def text(
        self, method: str, path: str, body: Json | None = None, media: str = "application/json"
    ) -> str:
        """The answer to one request.

        Raises:
            RefusedError: it was no success.
        """
        answer = self._pool.request(
            method,
            self.server + path,
            body=None if body is None else json.dumps(body).encode(),
            headers={**self._pool.headers, "Content-Type": media},
            timeout=30.0,
        )
        said = answer.data.decode()
        if not 200 <= answer.status < 300:
            raise RefusedError(answer.status, json.loads(said)["message"])
        return said

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """One request with JSON in and out."""
        answer: Json = json.loads(self.text(method, path, body))
        return answer

    def path(self, manifest: Mapping[str, Any], *, collection: bool = False) -> str:
        """Where an object lives, or the objects of its kind."""
        version, kind = manifest["apiVersion"], manifest["kind"]
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self._plurals:
            self._plurals[version] = {
                one["kind"]: (one["name"], one["namespaced"])
                for one in self.ask("GET", prefix)["resources"]
                if "/" not in one["name"]
            }
        plural, namespaced = self._plurals[version][kind]
        namespace = manifest["metadata"].get("namespace", "default")
        where = f"{prefix}/namespaces/{namespace}/{plural}" if namespaced else f"{prefix}/{plural}"
        return where if collection else f"{where}/{manifest['metadata']['name']}"

    def apply(self, manifest: Json) -> Json:
        """Server-side apply, where an unknown or repeated field is an error."""
        path = f"{self.path(manifest)}?fieldManager=test&fieldValidation=Strict"
        answer: Json = json.loads(
            self.text("PATCH", path, manifest, media="application/apply-patch+yaml")
        )
        return answer

    def create(self, manifest: Json, query: str = "?fieldValidation=Strict") -> Json:
        """Create an object."""
        return self.ask("POST", self.path(manifest, collection=True) + query, manifest)

    def get(self, manifest: Mapping[str, Any]) -> Json | None:
        """The object as it is, None if there is none."""
        try:
            return self.ask("GET", self.path(manifest))
        except RefusedError as error:
            if error.status != 404:
                raise
            return None

    def list(self, path: str) -> list[Json]:
        """The items of a collection."""
        items: list[Json] = self.ask("GET", path)["items"]
        return items

    def delete(self, manifest: Mapping[str, Any]) -> None:
        """Delete an object and all that it owns."""
        self.ask("DELETE", self.path(manifest) + "?propagationPolicy=Background")

    def token(self, namespace: str, account: str, pod: str = "") -> str:
        """A token of a service account, as the kubelet gives it to a pod; without a pod to none."""
        # Two hours: all scenarios with one took 13 minutes on a busy machine.
        bound = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": pod}} if pod else {}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200, **bound},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        granted: str = self.ask("POST", path, body)["status"]["token"]
        return granted
