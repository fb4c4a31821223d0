"""However a server goes away, no connection to it is left for the garbage collector to close."""

from __future__ import annotations

import contextlib
import gc
import socket
import ssl
import struct
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from kube.base.errors import TargetError
from kube.connection import Connection
from kube.errors import ApiError
from localkube.api import LocalApi
from tests.kube.test_tls import kubeconfig

OK = b"HTTP/1.1 200 OK\r\n"
WATCH = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"

ANSWERS = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"nonsense\r\n\r\n", id="no HTTP"),
    pytest.param(OK + b"Content-Length: 9\r\n\r\n{}", id="cut body"),
    pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{}", id="cut chunk"),
    pytest.param(OK + b"\r\n{}", id="no length"),
    pytest.param(OK + b"Content-Length: 2\r\n\r\n{}", id="complete"),
    pytest.param(
        OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}", id="complete and closed"
    ),
    pytest.param(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\n{}", id="refused, cut"),
    pytest.param(WATCH, id="cut watch"),
]


@contextlib.contextmanager
def none_unclosed() -> Iterator[None]:
    """Nothing within may leave a socket to the garbage collector."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(one.message) for one in caught] == []


@contextlib.contextmanager
def answering(context: ssl.SSLContext, answer: bytes) -> Iterator[int]:
    """The port of a server that answers each request with these bytes, and hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                raw, _ = listener.accept()
                with (
                    contextlib.suppress(OSError),
                    context.wrap_socket(raw, server_side=True) as one,
                ):
                    one.recv(65536)
                    one.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_a_connection_that_is_reset_before_tls_begins_is_closed() -> None:
    """`tests/conftest.py` sees to it where Python does not."""
    with none_unclosed(), socket.create_server(("127.0.0.1", 0)) as listener:
        raw = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
        with pytest.raises(ConnectionResetError):
            ssl.create_default_context().wrap_socket(raw, server_hostname="localhost")


@pytest.mark.parametrize("answer", ANSWERS)
def test_clients_close_what_they_opened(tmp_path: Path, answer: bytes) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    ca = tmp_path / "pki" / "ca.crt"
    ca.parent.mkdir()
    authority.cert_pem.write_to_path(ca)
    with answering(context, answer) as port, none_unclosed():
        LocalApi("127.0.0.1", port, ca.parent).text("/healthz")
        path = kubeconfig(tmp_path / "config", port, **{"certificate-authority": str(ca)})
        connection = Connection.open(path, "rude")
        with contextlib.suppress(TargetError, ApiError):
            connection.request("GET", "/version", patience=0)
        with contextlib.suppress(TargetError, ApiError):
            list(connection.stream("/api/v1/pods", {"watch": "true"}))
        connection.close()
