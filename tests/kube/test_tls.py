"""A failure of TLS is told with what to do about TLS."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from kube.base.errors import TargetError, UsageError
from kube.connection import Connection
from tests.kube.rude_server import write_kubeconfig


class Version(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(context: ssl.SSLContext | None) -> Iterator[int]:
    server = Quiet(("127.0.0.1", 0), Version)
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def tls(
    authority: trustme.CA, *, address: str = "127.0.0.1", until: dt.datetime | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(address, not_after=until).configure_cert(context)
    return context


def kubeconfig(path: Path, port: int, **cluster: object) -> Path:
    write_kubeconfig(path, f"https://127.0.0.1:{port}")
    config = yaml.safe_load(path.read_text())
    config["clusters"][0]["cluster"] |= {
        name.replace("_", "-"): value for name, value in cluster.items()
    }
    path.write_text(yaml.safe_dump(config))
    return path


def ask(path: Path) -> str:
    """What is said when the server cannot be asked."""
    connection = Connection.open(path, "rude")
    with contextlib.closing(connection), pytest.raises(TargetError) as caught:
        connection.request("GET", "/version")
    assert "can be reached from this machine" not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def ours(tmp_path: Path) -> trustme.CA:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ours.crt")
    return authority


def test_a_server_of_the_kubeconfigs_authority_is_trusted(tmp_path: Path, ours: trustme.CA) -> None:
    ca = base64.b64encode(ours.cert_pem.bytes()).decode()
    with serving(tls(ours)) as port:
        path = kubeconfig(tmp_path / "config", port, certificate_authority_data=ca)
        with contextlib.closing(Connection.open(path, "rude")) as connection:
            assert connection.request("GET", "/version") == {}


@pytest.mark.parametrize(
    ("authority", "certificate", "remedy"),
    [
        ("other.crt", {}, "correct the kubeconfig's certificate-authority"),
        ("ours.crt", {"address": "192.0.2.1"}, "tls-server-name"),
        ("ours.crt", {"until": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}, "renew the server's"),
        ("ours.crt", None, "does not speak TLS"),
    ],
    ids=["authority", "name", "expired", "plain"],
)
def test_what_is_wrong_is_reported_with_what_to_correct(
    tmp_path: Path, ours: trustme.CA, authority: str, certificate: Any, remedy: str
) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.crt")
    with serving(None if certificate is None else tls(ours, **certificate)) as port:
        path = kubeconfig(tmp_path / "config", port, certificate_authority=authority)
        assert remedy in ask(path)


@pytest.mark.parametrize("data", ["AAAAA", base64.b64encode(b"not PEM").decode()])
def test_an_authority_that_is_no_certificate_is_a_usage_error(tmp_path: Path, data: str) -> None:
    path = kubeconfig(tmp_path / "config", 1, certificate_authority_data=data)
    with pytest.raises(UsageError, match="certificates of context 'rude' cannot be used"):
        Connection.open(path, "rude")
