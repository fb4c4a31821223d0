"""Clients that want to keep others from being served: slow ones, without and with a token."""

from __future__ import annotations

import json
import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
import urllib3

from conformance.targets.reference.serving import ServedReference
from kube.base.errors import UsageError
from kube.base.strictjson import BoundsError, check_bounds
from kube.values import User
from kubesim.front.server import Connection, Front
from tests.kubesim.front.conftest import CLAIMS, Client, claim


def connect(front: Front, first: bytes) -> ssl.SSLSocket:
    """A connection on which something was sent."""
    context = ssl.create_default_context(cafile=str(front.kubeconfig.parent / "pki" / "ca.crt"))
    port = int(front.url.rpartition(":")[2])
    opened = socket.create_connection(("127.0.0.1", port), timeout=20)
    secure = context.wrap_socket(opened, server_hostname="localhost")
    with suppress(OSError):  # who is refused before all is sent reads why
        secure.sendall(first)
    return secure


def test_a_client_that_offers_http_2_as_well_is_told_to_speak_http_1_1(front: Front) -> None:
    context = ssl.create_default_context(cafile=str(front.kubeconfig.parent / "pki" / "ca.crt"))
    context.set_alpn_protocols(["h2", "http/1.1"])
    port = int(front.url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as opened,
        context.wrap_socket(opened, server_hostname="localhost") as secure,
    ):
        assert secure.selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT"])
def test_plain_http_is_told_that_this_is_https(front: Front, client: Client, method: str) -> None:
    """In the words of kube-apiserver 1.37.2, which says them with HTTP/1.0, too."""
    answer = urllib3.request(
        method, front.url.replace("https", "http") + "/version", timeout=20.0, retries=False
    )
    text = "" if method == "HEAD" else "Client sent an HTTP request to an HTTPS server.\n"
    assert (answer.status, answer.data.decode()) == (400, text)
    assert client.send("GET", "/version").status == 200


def test_who_speaks_neither_is_cut_off(front: Front, client: Client) -> None:
    port = int(front.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as neither:
        neither.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
        assert b"HTTP" not in neither.recv(100)
    assert client.send("GET", "/version").status == 200


def test_a_watch_goes_on_behind_the_end_of_its_token(front: Front, client: Client) -> None:
    """As with kube-apiserver 1.37.2 and a token whose service account is deleted."""
    tokens = cast("dict[str, User | None]", front._tokens)
    client.token, admin = "its-token", client.token
    tokens["its-token"] = None
    events = client.stream(f"{CLAIMS}?watch=1&timeoutSeconds=5")
    client.token = admin
    client.send("POST", CLAIMS, claim("before"))
    assert next(events)[1]["metadata"]["name"] == "before"
    del tokens["its-token"]
    assert client.send("GET", CLAIMS, authorization="Bearer its-token").status == 401
    client.send("POST", CLAIMS, claim("behind"))
    assert next(events)[1]["metadata"]["name"] == "behind"


def ended(connection: ssl.SSLSocket) -> bool:
    """Whether the server has ended the connection, or does so before the socket's timeout."""
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def read_version(connection: ssl.SSLSocket) -> bytes:
    """The whole answer to a request for the version."""
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(1000)
    return answer


BEGUN = b"GET /version HTTP/1.1\r\nX: "


def test_headers_must_come_in_time(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "header_seconds", 0.5)
    with connect(front, BEGUN) as slow:
        slow.settimeout(0.1)
        began = time.monotonic()
        while not ended(slow):
            assert time.monotonic() < began + 15
            with suppress(OSError):
                slow.sendall(b"a")  # a byte now and then does not help


def test_also_those_of_a_later_request(
    front: Front, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "header_seconds", 0.5)
    request = f"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n\r\n"
    with connect(front, request.encode()) as kept:
        assert read_version(kept).startswith(b"HTTP/1.1 200")
        time.sleep(1)
        kept.sendall(request.encode())  # an idle connection is kept for longer
        assert read_version(kept).startswith(b"HTTP/1.1 200")
        kept.sendall(BEGUN)
        assert ended(kept)


def test_of_too_many_that_send_no_headers_the_oldest_goes(
    front: Front, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "max_waiting", 3)
    slow = [connect(front, BEGUN) for _ in range(5)]
    try:
        assert ended(slow[0])
        assert client.send("GET", "/version").status == 200
        slow[-1].settimeout(0.2)
        assert not ended(slow[-1])
    finally:
        for one in slow:
            one.close()


@pytest.mark.parametrize("length", [b"Content-Length: 100000000000", b"Transfer-Encoding: chunked"])
def test_a_body_must_come_in_time(
    front: Front, client: Client, monkeypatch: pytest.MonkeyPatch, length: bytes
) -> None:
    monkeypatch.setattr(Front, "body_seconds", 0.5)
    head = f"POST {CLAIMS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
    with connect(front, head.encode() + length + b"\r\n\r\n") as slow:
        assert slow.recv(1000).startswith(b"HTTP/1.1 504")


def read_answer(connection: ssl.SSLSocket) -> tuple[bytes, bytes]:
    """The status line and the body of an answer after which the server ends the connection."""
    answer = b""
    with suppress(ConnectionError, ssl.SSLError):
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.splitlines()[0], body


@pytest.mark.parametrize(
    ("request_bytes", "status", "text"),
    [
        (b"\x16\x03\x01 hello\r\n\r\n", b"400", b"400 Bad Request"),
        (b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"400", b"400 Bad Request"),
        (b"Transfer-Encoding: gzip\r\n\r\n{}", b"501", b"Unsupported transfer encoding"),
        (b"X: " + b"x" * 66_000, b"431", b"431 Request Header Fields Too Large"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"401", b"Unauthorized"),  # HTTP/2 unasked
    ],
    ids=["no HTTP", "two lengths", "unknown encoding", "long header", "HTTP/2"],
)
def test_what_is_no_request_is_refused_as_a_real_server_does(
    front: Front, client: Client, request_bytes: bytes, status: bytes, text: bytes
) -> None:
    """Seen with kube-apiserver 1.37.1; it takes longer headers."""
    head = f"POST {CLAIMS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
    is_header = request_bytes[:1].isalpha() and not request_bytes.startswith(b"PRI")
    with connect(front, (head.encode() if is_header else b"") + request_bytes) as hostile:
        line, body = read_answer(hostile)
    assert line.split()[1] == status
    assert text in body
    assert client.send("GET", "/version").status == 200


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunks"])
def test_a_huge_body_is_refused_before_it_is_there(
    front: Front, client: Client, is_chunked: bool
) -> None:
    head = f"POST {CLAIMS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
    head += "Content-Type: application/json\r\nConnection: close\r\n"
    head += (
        "Transfer-Encoding: chunked\r\n\r\n" if is_chunked else "Content-Length: 104857600\r\n\r\n"
    )
    part = b"x" * (1 << 20)
    with connect(front, head.encode()) as hostile:
        sent_parts = 0
        with suppress(OSError):
            while sent_parts < 100:
                hostile.sendall(b"100000\r\n%b\r\n" % part if is_chunked else part)
                sent_parts += 1
        line, body = read_answer(hostile)
    assert sent_parts < 50
    assert line.split()[1] == b"413"
    assert b"Request entity too large: limit is 3145728" in body


def test_half_a_request_changes_nothing(front: Front, client: Client) -> None:
    body = json.dumps(claim("half")).encode()
    head = f"POST {CLAIMS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body) + 1}\r\n\r\n"
    connect(front, head.encode() + body).close()
    assert client.send("POST", CLAIMS, claim("whole")).status == 201
    assert [item["metadata"]["name"] for item in client.send("GET", CLAIMS).json()["items"]] == [
        "whole"
    ]


def test_a_deep_body_is_refused_at_once() -> None:
    deep = b"[" * 1_000_000 + b"]" * 1_000_000
    begin = time.thread_time()
    with pytest.raises(BoundsError, match="nested deeper"):
        check_bounds(deep)
    assert time.thread_time() - begin < 0.3  # other clients wait meanwhile; it was a second


@pytest.mark.parametrize("kind", ["link", "all may write", "file"])
@pytest.mark.parametrize("part", ["dra-conformance", "dra-conformance/reference", "name"])
def test_a_folder_that_others_may_have_made_gets_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, kind: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / ("dra-conformance/reference/test" if part == "name" else part)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        (tmp_path / "theirs").mkdir()
        folder.symlink_to(tmp_path / "theirs")
    elif kind == "file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(UsageError, match=r"must be a folder of this user's"):
        ServedReference("test").down()
    assert not list(tmp_path.glob("theirs/*"))
