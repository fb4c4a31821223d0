"""A front on a port of loopback: HTTPS with its own certificate authority, and a kubeconfig.

uvicorn serves it in a thread of its own. It reads requests, writes chunks, ends idle connections
and does TLS; requests are carried out in other threads, one at a time by the backend's lock. That a
client may take for ever to send its headers is the one thing that uvicorn has no limit for.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kube.base.errors import UsageError
from kube.credentials import Authority, write_kubeconfig
from kube.values import User
from kubesim.front.application import Application
from kubesim.front.backend import Backend

_REFUSALS: Final = {
    400: "400 Bad Request",
    431: "431 Request Header Fields Too Large",
    501: "Unsupported transfer encoding",
}
_PLAIN_TEXT: Final = b"Client sent an HTTP request to an HTTPS server.\n"
_PLAIN_REFUSAL: Final = (
    b"HTTP/1.0 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(_PLAIN_TEXT) + _PLAIN_TEXT
)
_IDLE_SECONDS: Final = 120
_END_SECONDS: Final = 1


class Connection(H11Protocol):
    """One client, who has to send the headers of a request in time once it has begun.

    Another user of the machine needs no token to open connections, so that those which wait for
    headers are bounded in time and in number; the oldest goes first.

    Attributes:
        header_seconds: from the connection, or from the first byte of a later request
            (``ReadHeaderTimeout`` in pkg/server/secure_serving.go of k8s.io/apiserver).
        max_waiting: connections of a server without the headers of a request.
        headers_due: ends the connection; None while it does not wait for headers.
    """

    header_seconds = 32.0
    max_waiting = 256
    headers_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._time_headers()
        waiting = [
            (connection.headers_due.when(), connection)
            for connection in self.connections
            if isinstance(connection, Connection) and connection.headers_due is not None
        ]
        if len(waiting) > self.max_waiting:
            _, oldest = min(waiting, key=lambda item: item[0])
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timeout()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (uvicorn's words)
        """Refuse what is no request, in the words of Go's net/http (``badRequestError``).

        It is called where h11 has raised the error that says why.
        """
        error = sys.exc_info()[1]
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        text = _REFUSALS.get(status, _REFUSALS[400])
        headers = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"Connection", b"close")]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase),
            h11.Data(data=text.encode()),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _time_headers(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._cancel_timeout()
        elif self.headers_due is None:
            self.headers_due = self.loop.call_later(self.header_seconds, self.transport.abort)

    def _cancel_timeout(self) -> None:
        if self.headers_due is not None:
            self.headers_due.cancel()
            self.headers_due = None


class _Handshake(ssl.SSLObject):
    """The TLS of a connection; who speaks plain HTTP is told so (``Server.serve`` of net/http)."""

    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason != "HTTP_REQUEST":
                raise
            self.outgoing.write(_PLAIN_REFUSAL)
            # Only who waits for more sends what there is; the client ends the connection.
            raise ssl.SSLWantReadError from None


class _Context(ssl.SSLContext):
    sslobject_class = _Handshake

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any
    ) -> _Handshake:
        handshake = super().wrap_bio(incoming, outgoing, *args, **kwargs)
        assert isinstance(handshake, _Handshake)
        handshake.outgoing = outgoing
        return handshake


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for requests; drop idle connections, whose clients would not answer TLS's end."""
        self._abort(idle=True)
        await super().shutdown(sockets)
        self._abort(idle=False)
        await asyncio.sleep(0.01)  # connections close in the loop

    def _abort(self, *, idle: bool) -> None:
        for connection in tuple(self.server_state.connections):
            cycle: Any = getattr(connection, "cycle", None)
            if not idle or cycle is None or cycle.response_complete:
                connection.transport.abort()


def listen(port: int = 0) -> socket.socket:
    """Listen on a port of loopback; 0 is any free one.

    Raises UsageError: it cannot be had.
    """
    # With its protocol by name: else asyncio does not know that it is TCP, leaves Nagle's algorithm
    # on for each connection, and a client that delays acknowledgements waits 40 ms for an answer.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        return listening
    except OSError as error:
        listening.close()
        raise UsageError(
            f"port {port} of 127.0.0.1 cannot be listened on: {error.strerror or error}; choose "
            "another --port, or 0 for any free one"
        ) from None


class Front(Application):
    """A server, from now until it is closed.

    Args:
        folder: of certificates and the kubeconfig ``kubeconfig`` of the administrator.
        tokens: further bearer tokens -> the accounts that they are of.
        listening: the socket on which it is served; None: one on any free port of loopback.
    """

    def __init__(
        self,
        backend: Backend,
        folder: Path,
        name: str,
        tokens: Mapping[str, User] | None = None,
        listening: socket.socket | None = None,
    ) -> None:
        admin = secrets.token_urlsafe(32)
        super().__init__(backend, {**(tokens or {}), admin: None})
        authority = Authority(folder / "pki", f"dra-conformance {name}")
        pair = authority.issue_certificate("front", names=("localhost", "127.0.0.1"))
        self._socket = listening or listen()
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        self.kubeconfig = folder / "kubeconfig"
        self._certificate = authority.certificate
        self._name = name
        self.write_kubeconfig(self.kubeconfig, "admin", admin)
        config = uvicorn.Config(
            self,
            loop="asyncio",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # not for half a request of a client that is killed
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nobody stands between
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_END_SECONDS,
        )
        config.load()
        config.ssl = _Context(ssl.PROTOCOL_TLS_SERVER)
        config.ssl.load_cert_chain(pair.certificate, pair.key)
        # To a client that would rather speak HTTP/2 this says at once that it is not spoken here.
        config.ssl.set_alpn_protocols(["http/1.1"])
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="front", daemon=True
        )
        self._thread.start()

    def write_kubeconfig(self, path: Path, user: str, token: str) -> None:
        """Write a kubeconfig that only its owner may read, for the user with a token."""
        write_kubeconfig(
            path, cluster=self._name, server=self.url, ca=self._certificate, user=user, token=token
        )

    @property
    def connections(self) -> list[Connection]:
        """The connections that are open."""
        return list(self._server.server_state.connections)  # type: ignore[arg-type]

    def close(self) -> None:
        self.backend.history.close()
        self._server.should_exit = True
        self._thread.join()
