"""A server on loopback that does not behave as one should: a test says what it sends."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

Behaviour = Callable[[socket.socket, threading.Event], None]
"""Called with the connection after a request has come; ends when the event is set."""

SECONDS = 20  # that a test's server goes on at most, should nothing end it


@contextlib.contextmanager
def rude_server(behave: Behaviour) -> Iterator[str]:
    """The address of a server that treats each connection so."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    threads = []

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            behave(connection, ended)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=serve, args=(connection,), daemon=True)
                threads.append(thread)
                thread.start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in [acceptor, *threads]:
            thread.join(5)


def trickle(head: bytes) -> Behaviour:
    """Send this and then a byte every 50 ms."""

    def behave(connection: socket.socket, ended: threading.Event) -> None:
        connection.sendall(head)
        for _ in range(SECONDS * 20):
            if ended.wait(0.05):
                return
            connection.sendall(b" ")

    return behave


def flood(connection: socket.socket, ended: threading.Event) -> None:
    """Send a body without an end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not ended.is_set():
        connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def write_kubeconfig(path: Path, server: object, user: object = None) -> Path:
    """A kubeconfig with one context, ``rude``."""
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {"token": "tok"} if user is None else user}],
                "contexts": [{"name": "rude", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return path
