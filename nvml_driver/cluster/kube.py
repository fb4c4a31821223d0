"""Serves the driver's needs of the API server: claims, its node, its slices.

Plain dicts in and out.

The official client finds the server and its credentials, and sends the requests; its model classes
are not used, because a driver should pass on fields that the client's version does not know. All
failures become ``KubeError`` here, so that nothing else need know the client.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client, config

from nvml_driver.errors import KubeError

_LOG = logging.getLogger(__name__)
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_TIMEOUT = (5.0, 30.0)  # connect, read
_CLAIM_TIMEOUT = (5.0, 15.0)  # well below the kubelet's 45 s for a prepare call
_WATCH_SECONDS = 300

Json = dict[str, Any]


class KubeClient:
    """A client for one API server."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

    @classmethod
    def connect(cls, kubeconfig: Path | None) -> KubeClient:
        """Read a kubeconfig, or (None) the pod's service account; ask nothing. Raises KubeError."""
        settings = client.Configuration()
        settings.retries = False
        if kubeconfig is None:
            source = "no --kubeconfig was given, and this is not a pod with a service account"
        else:
            source = f"kubeconfig {kubeconfig} cannot be used"
            if not kubeconfig.is_file():  # a device or a pipe might never end
                raise KubeError(f"{source}: it does not exist or is not a regular file")
        try:
            if kubeconfig is None:
                config.load_incluster_config(client_configuration=settings)
            else:
                config.load_kube_config(
                    str(kubeconfig), client_configuration=settings, persist_config=False
                )
        except Exception as error:  # noqa: BLE001 -- a malformed file fails there in many ways
            raise KubeError(f"{source}: {' '.join(str(error).split())}") from None
        if not settings.host.startswith(("https://", "http://")):
            raise KubeError(
                f"{source}: the server must be an https:// URL, found {settings.host!r}"
            )
        return cls(client.ApiClient(settings))

    def get_claim(self, namespace: str, name: str) -> Json | None:
        """Return a ResourceClaim, None if there is none. Raises KubeError."""
        path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"
        try:
            return self._request_json("GET", path, timeout=_CLAIM_TIMEOUT)
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def node_reference(self, name: str) -> Json:
        """Return an ownerReference to the Node, for its slices.

        Raises KubeError: no such node (yet).
        """
        node = self._request_json("GET", f"/api/v1/nodes/{name}")
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "name": name,
            "uid": node["metadata"]["uid"],
            "controller": True,
        }

    def list_slices(self, driver_name: str, node_name: str) -> tuple[list[Json], str]:
        """Return the driver's slices of the node, and the list's resourceVersion.

        Raises KubeError.
        """
        slice_list = self._request_json("GET", _SLICES, query=_selector(driver_name, node_name))
        version = str(slice_list["metadata"].get("resourceVersion", ""))
        return list(slice_list.get("items") or ()), version

    def create_slice(self, body: Json) -> Json:
        """Create a ResourceSlice and return what the server stored."""
        return self._request_json("POST", _SLICES, body=body)

    def replace_slice(self, body: Json) -> Json:
        """Replace a ResourceSlice; ``metadata.resourceVersion`` guards against lost updates."""
        return self._request_json("PUT", f"{_SLICES}/{body['metadata']['name']}", body=body)

    def delete_slice(self, name: str) -> None:
        """Delete a ResourceSlice, unless it is gone. Raises KubeError."""
        try:
            self._request_json("DELETE", f"{_SLICES}/{name}")
        except KubeError as error:
            if error.status != 404:
                raise

    def watch_slices(self, driver_name: str, node_name: str, version: str) -> SliceWatch:
        """Begin to watch the driver's slices of the node from a list's resourceVersion."""
        query = [
            *_selector(driver_name, node_name),
            ("watch", "true"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(_WATCH_SECONDS)),
        ]
        # The server ends the watch; later than that, the connection is dead.
        timeout = (_TIMEOUT[0], _WATCH_SECONDS + 15.0)
        return SliceWatch(self._send("GET", _SLICES, query, None, timeout))

    def _request_json(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Json | None = None,
        timeout: tuple[float, float] = _TIMEOUT,
    ) -> Json:
        response = self._send(method, path, query or [], body, timeout)
        try:
            answer: Json = json.loads(response.data)
        except (ValueError, urllib3.exceptions.HTTPError) as error:
            raise KubeError(f"{method} {path}: the answer cannot be read: {error}") from None
        return answer

    def _send(
        self,
        method: str,
        path: str,
        query: list[tuple[str, str]],
        body: Json | None,
        timeout: tuple[float, float],
    ) -> urllib3.HTTPResponse:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = self._api.param_serialize(
            method,
            path,
            query_params=query,
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._api.call_api(*request, _request_timeout=timeout)
        except (urllib3.exceptions.HTTPError, client.ApiException, OSError) as error:
            raise KubeError(f"{method} {path}: cannot reach the API server: {error}") from None
        response: urllib3.HTTPResponse = answer.response
        if not 200 <= response.status < 300:
            raise KubeError(f"{method} {path}: {_explain_refusal(response)}", response.status)
        return response


class SliceWatch:
    """A watch of slices that runs; iterate over its events, ``stop`` it from another thread."""

    def __init__(self, response: urllib3.HTTPResponse) -> None:
        self._response = response
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield events until the server or ``stop`` ends it. Raises KubeError: 410, list again."""
        partial_line = b""
        try:
            for chunk in self._response.stream(65536):
                *lines, partial_line = (partial_line + chunk).split(b"\n")
                for line in filter(None, lines):
                    event = json.loads(line)
                    if event.get("type") == "ERROR":
                        status = event.get("object") or {}
                        message = str(status.get("message") or "watch error")
                        raise KubeError(message, int(status.get("code") or 0))
                    yield event
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError) as error:
            if not self._stopped.is_set():
                raise KubeError(f"the watch of slices broke: {error}") from None
        finally:
            self._response.close()

    def stop(self) -> None:
        """End the watch, also while another thread waits for its next event."""
        self._stopped.set()
        try:
            self._response.shutdown()
        except (ValueError, OSError, AttributeError):
            _LOG.debug("the watch had ended already")


def _selector(driver_name: str, node_name: str) -> list[tuple[str, str]]:
    return [("fieldSelector", f"spec.driver={driver_name},spec.nodeName={node_name}")]


def _explain_refusal(response: urllib3.HTTPResponse) -> str:
    """Return what the API server says is wrong (a Status object), else the HTTP reason."""
    try:
        message = json.loads(response.data)["message"]
    except (ValueError, KeyError, TypeError, urllib3.exceptions.HTTPError):
        message = response.reason
    return f"HTTP {response.status}: {message}"
