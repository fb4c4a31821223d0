"""The few API requests that starting a cluster takes, before any client library is loaded.

Only used by this package, on clusters of its own: is it ready, is the node Ready, create the
driver's role. Scenarios go through the cluster target's client.
"""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

from conformance.clusters.base import ClusterError

Json = dict[str, Any]


class LocalApi:
    """HTTPS requests to one server of a local cluster.

    Every server of a local cluster is on this machine and has a certificate of the cluster's own
    authority; no proxy is ever used.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        ca: Path,
        token: str = "",
        client: tuple[Path, Path] | None = None,
        timeout_seconds: float = 10,
    ) -> None:
        """Prepare requests; `client` is (certificate, key) for a server that asks for one."""
        self._address = (host, port)
        self._context = ssl.create_default_context(cafile=str(ca))
        if client is not None:
            self._context.load_cert_chain(*client)
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = timeout_seconds

    def text(self, path: str) -> str | None:
        """Body of a GET that answered 200, None where the server does not answer so (yet)."""
        try:
            status, body = self._request("GET", path, None)
        except (OSError, http.client.HTTPException):
            return None
        return body if status == http.client.OK else None

    def healthy(self, path: str) -> bool:
        """Whether a GET of a health path answers 200."""
        return self.text(path) is not None

    def get(self, path: str) -> Json | None:
        """The object at `path`, None where there is none or no answer."""
        body = self.text(path)
        return None if body is None else json.loads(body)

    def create(self, path: str, manifest: Json) -> None:
        """Create an object; one that exists already is left alone.

        Raises:
            ClusterError: the server refused it or did not answer.
        """
        try:
            status, body = self._request("POST", path, json.dumps(manifest))
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"API server {self._address}: POST {path}: {error}") from error
        if status not in (http.client.CREATED, http.client.OK, http.client.CONFLICT):
            raise ClusterError(f"API server {self._address}: POST {path}: {status} {body[:300]}")

    def delete(self, path: str) -> None:
        """Delete an object, or all of a collection; what is not there is gone already.

        Raises:
            ClusterError: the server refused it or did not answer.
        """
        try:
            status, body = self._request("DELETE", path, None)
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"API server {self._address}: DELETE {path}: {error}") from error
        if status not in (http.client.OK, http.client.ACCEPTED, http.client.NOT_FOUND):
            raise ClusterError(f"API server {self._address}: DELETE {path}: {status} {body[:300]}")

    def _request(self, method: str, path: str, body: str | None) -> tuple[int, str]:
        host, port = self._address
        connection = http.client.HTTPSConnection(
            host, port, context=self._context, timeout=self._timeout
        )
        try:
            headers = self._headers | ({"Content-Type": "application/json"} if body else {})
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        finally:
            connection.close()
