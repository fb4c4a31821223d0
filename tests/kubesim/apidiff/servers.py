"""The two servers that are asked: a bare real one, and ours in this process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import urllib3
import yaml

from kubesim.front.application import Application
from kubesim.front.backend import Backend
from kubesim.front.serving import seconds_since_epoch
from kubesim.world import World
from localkube.controlplane import credentials, servers
from localkube.layout import make_layout
from localkube.state import State, free_ports
from tests.kubesim.apidiff.answers import NO_ANSWER, Answer, read_answer
from tests.kubesim.apidiff.requests import NAMESPACE, Sent

PROGRAMS: Final = ("etcd", "kube-apiserver")
_READY_SECONDS: Final = 120
_ANSWER_SECONDS: Final = 120.0
"""Also on a machine that is busy with other things."""
_TOKEN: Final = "token"


class Server(Protocol):
    """An API server that can be asked."""

    def send(self, sent: Sent) -> Answer:
        """Return the answer to a request."""
        ...


class Ours:
    """Our API server, without a network: requests are handed to its ASGI application."""

    def __init__(self, kubernetes: str, gates: Mapping[str, bool] | None = None) -> None:
        world = World(kubernetes_version=kubernetes, gates=gates, start=seconds_since_epoch())
        # Nothing but the API server, as the real one is alone, too.
        backend = Backend(world.cluster, world.api, world.handler, kubernetes, threading.RLock())
        self._application = Application(backend, {_TOKEN: None})
        self._loop = asyncio.new_event_loop()
        create_namespace(self)

    def send(self, sent: Sent) -> Answer:
        body = sent.encode()
        headers = {"authorization": f"Bearer {_TOKEN}", **_headers(sent)}
        scope: dict[str, Any] = {
            "type": "http",
            "method": sent.method,
            "path": sent.path,
            "query_string": urlencode(sent.query).encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        received: list[dict[str, Any]] = []

        is_read = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if is_read.is_set():  # the client stays
                await asyncio.Event().wait()
            is_read.set()
            return {"type": "http.request", "body": body or b"", "more_body": False}

        async def send(message: Any) -> None:
            received.append(message)

        self._loop.run_until_complete(self._application(scope, receive, send))
        start = received[0]
        warnings = [
            value.decode("latin-1")  # as HTTP clients do
            for name, value in start["headers"]
            if name.lower() == b"warning"
        ]
        data = b"".join(message.get("body", b"") for message in received[1:])
        return read_answer(start["status"], warnings, data)

    def close(self) -> None:
        self._loop.close()


class Real:
    """A real API server that a kubeconfig names."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self._server = config["clusters"][0]["cluster"]["server"]
        self._token = config["users"][0]["user"]["token"]
        ca = kubeconfig.parent / "pki" / "ca.crt"
        self._pool = urllib3.PoolManager(ca_certs=str(ca), maxsize=8)

    def send(self, sent: Sent) -> Answer:
        try:
            response = self._pool.request(
                sent.method,
                f"{self._server}{sent.url}",
                body=sent.encode(),
                headers={"authorization": f"Bearer {self._token}", **_headers(sent)},
                # It ends a connection from time to time, before it has read the request.
                retries=urllib3.Retry(2, redirect=0, status=0, allowed_methods=None),
                timeout=_ANSWER_SECONDS,
            )
        except urllib3.exceptions.MaxRetryError as error:
            if not isinstance(error.reason, urllib3.exceptions.ProtocolError):
                raise
            return NO_ANSWER
        warnings = response.headers.getlist("warning")
        return read_answer(response.status, warnings, response.data)


def _headers(sent: Sent) -> dict[str, str]:
    headers = {"user-agent": "apidiff/1"}
    if sent.body is not None and sent.content_type:
        headers["content-type"] = sent.content_type
    return headers | ({"accept": sent.accept} if sent.accept else {})


def create_namespace(server: Server) -> None:
    """Create the namespace of all cases, if it is not there."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    server.send(Sent("POST", "/api/v1/namespaces", (), namespace))


@contextmanager
def bare_server(
    binaries: Path, folder: Path, gates: Mapping[str, bool] | None = None
) -> Iterator[Real]:
    """Start etcd and kube-apiserver, without controllers; end them afterwards.

    Args:
        binaries: folder with both.
        folder: of their data, logs and certificates.

    Raises RuntimeError: the API server is not ready in time.
    """
    layout, ports = make_layout("apidiff", folder), free_ports()
    state = State("apidiff", binaries, 0, gates or {}, ports, None, None)
    (layout.dir / "logs").mkdir(parents=True, exist_ok=True)
    credentials.write_credentials(layout, state)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for spec in (
            servers.etcd_spec(layout, binaries, ports),
            servers.apiserver_spec(layout, binaries, state),
        ):
            # Nobody makes service accounts here.
            more = ["--disable-admission-plugins=ServiceAccount"] if processes else []
            with spec.log.open("wb") as log:
                command = [*spec.command, *more]
                env = os.environ | dict(spec.env)
                processes.append(
                    subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=env)
                )
        real = Real(layout.kubeconfig)
        _wait_ready(real, layout.log("kube-apiserver"))
        create_namespace(real)
        yield real
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_ready(real: Real, log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        try:
            if real.send(Sent("GET", "/readyz")).code == 200:
                return
        except urllib3.exceptions.HTTPError:
            pass
        time.sleep(0.5)
    raise RuntimeError(f"kube-apiserver is not ready after {_READY_SECONDS} s; see {log}")
