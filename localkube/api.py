"""The few requests that starting a cluster takes: whether a server is ready, making a role."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from kube.connection import Connection
from kube.errors import ApiError
from kube.kubeconfig import ClientConfig

Json = dict[str, Any]

_PATIENCE = 10.0


class LocalApi:
    """One server of a local cluster: the API server, or a component with a health path.

    Each is on this machine and has a certificate of the cluster's own authority; no proxy is used.
    """

    def __init__(
        self, host: str, port: int, pki: Path, *, token: str = "", client: str = ""
    ) -> None:
        """Prepare requests.

        Args:
            host: where the server listens.
            token: of the user in whose name requests are made; "" for none.
            client: name of the client certificate in `pki`, for a server that asks for one.
        """
        user: Json = {"token": token} if token else {}
        if client:
            pair = pki / f"{client}.crt", pki / f"{client}.key"
            user |= {"client-certificate": str(pair[0]), "client-key": str(pair[1])}
        self._config = ClientConfig(
            where=f"local cluster {pki.parent}",
            context="",
            cluster={
                "server": f"https://{host}:{port}",
                "certificate-authority": str(pki / "ca.crt"),
            },
            user_name="",
            user=user,
            proxies=False,
        )
        self._opened: Connection | None = None

    def text(self, path: str) -> str | None:
        """Body of a GET that answered 200, None where the server does not answer so (yet)."""
        body = self._connection.poll(path, _PATIENCE)
        return None if body is None else body.decode(errors="replace")

    def is_healthy(self, path: str) -> bool:
        """Return whether a GET of a health path answers 200."""
        return self.text(path) is not None

    def get(self, path: str) -> Json | None:
        """Return the object at `path`, None where there is none or no answer."""
        body = self.text(path)
        return None if body is None else json.loads(body)

    def create(self, path: str, manifest: Json) -> None:
        """Create an object; one that exists already is left alone.

        Raises ApiError: the server refused it; TargetError: it did not answer.
        """
        self._change("POST", path, manifest, unless=409)

    def delete(self, path: str) -> None:
        """Delete an object, or all of a collection; what is not there is gone already.

        Raises ApiError: the server refused it; TargetError: it did not answer.
        """
        self._change("DELETE", path, None, unless=404)

    @property
    def _connection(self) -> Connection:
        if self._opened is None:
            self._opened = Connection(self._config, keep=False)
        return self._opened

    def _change(self, method: str, path: str, manifest: Json | None, *, unless: int) -> None:
        try:
            self._connection.request(method, path, body=manifest, patience=_PATIENCE)
        except ApiError as error:
            if error.code != unless:
                raise


def accepts_connections(path: Path) -> bool:
    """Return whether somebody answers at a unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True
