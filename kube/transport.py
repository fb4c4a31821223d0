"""Connections to one API server, each request bounded in time and size.

A socket's timeout limits each read, so a server that sends a byte now and then would hold a client
for as long as it likes, and nothing limits how much it sends. So the connection of a request that
takes too long is cut (`limits.Guards`), and an answer is read up to a size. `Transport.abandon`
cuts them all: when a server is given up, whatever waits for its answer fails at once.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from kube.base.errors import TargetError
from kube.errors import reason_of
from kube.limits import Guards, LimitError, Limits

MAX_BYTES = 256 << 20  # Longest answer. A list of 20 000 pods is about 200 MiB.

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that was read to its end."""

    status: int
    reason: str
    headers: Mapping[str, str]
    data: bytes

    def retry_after(self) -> float:
        """Return seconds to wait before the next request by the server's wish; 0 without one.

        A date (RFC 9110, 10.2.3) counts as not said: API servers send seconds.
        """
        try:
            seconds = float(self.headers.get("Retry-After", 0))
        except ValueError:
            return 0.0
        return seconds if 0 <= seconds < float("inf") else 0.0


class Transport:
    """The requests of an ``ApiClient``, bounded in time and size. Safe for threads.

    Args:
        client: of the official package; its pool is given connections that heed the limits.
        limits: of each request.
    """

    def __init__(self, client: Any, limits: Limits) -> None:
        self._client = client
        self._limits = limits
        self._guards = Guards(f"the answer was not complete after {limits.whole:g} s")
        manager = client.rest_client.pool_manager
        if type(manager).__name__ != "SOCKSProxyManager":  # it needs connections of its own
            manager.pool_classes_by_scheme = self._pool_classes()

    def exchange(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        body: Any = None,
        quiet: float | None = None,
    ) -> Answer:
        """Make a request and read its answer.

        ``quiet``: seconds without any byte, where not those of the limits.

        Raises:
            LimitError: the answer was longer than `MAX_BYTES`, or took too long.
            Exception: whatever the client and what lies under it raise.
        """
        until = time.monotonic() + self._limits.whole
        response = self._send(method, url, headers, body, quiet or self._limits.quiet)
        try:
            with self._guards.guard(response.shutdown, until):
                data = _read(response, MAX_BYTES)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return Answer(response.status, response.reason or "", response.headers, data)

    def open(self, url: str, headers: dict[str, str]) -> Any:
        """Open a watch: its response, of which only the head is read.

        Raises:
            LimitError: the head took too long.
            Exception: whatever the client and what lies under it raise.
        """
        return self._send("GET", url, headers, None, self._limits.watch_quiet)

    def abandon(self) -> None:
        """Cut every request in flight, and each further one. Watches end when they are stopped."""
        self._guards.abandon()

    def close(self) -> None:
        """Close the connections that are not in use; the client's own ``close`` keeps them."""
        self._client.rest_client.pool_manager.clear()
        self._client.close()
        self._guards.close()

    def _send(self, method: str, url: str, headers: dict[str, str], body: Any, quiet: float) -> Any:
        self._client.update_params_for_auth(headers, [], ["BearerToken"], url, method, None)
        timeout = (self._limits.connect, quiet)
        return self._client.call_api(
            method, url, header_params=headers, body=body, _request_timeout=timeout
        ).response

    def _pool_classes(self) -> dict[str, Any]:
        """urllib3's classes, with connections that wait for a response's head under guard."""

        def guarded(connection: Any) -> contextlib.AbstractContextManager[None]:
            sock = connection.sock
            until = time.monotonic() + self._limits.whole
            return self._guards.guard(lambda: sock.shutdown(socket.SHUT_RD), until)

        class Plain(HTTPConnection):
            def getresponse(self) -> Any:
                with guarded(self):
                    return super().getresponse()

        class Secure(HTTPSConnection):
            def getresponse(self) -> Any:
                with guarded(self):
                    return super().getresponse()

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(HTTPSConnectionPool):
            ConnectionCls = Secure

        return {"http": PlainPool, "https": SecurePool}


class Stream:
    """An open watch. Read by one thread, stopped by any."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def __iter__(self) -> Generator[dict[str, Any], None, None]:
        """Yield the documents until the server ends the watch. Raises TargetError."""
        incomplete_line = b""
        try:
            for chunk in self._response.stream(amt=None):
                *lines, incomplete_line = (incomplete_line + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
                if len(incomplete_line) > MAX_BYTES:
                    raise ValueError(f"a line is longer than {MAX_BYTES >> 20} MiB")
        except Exception as error:  # noqa: BLE001 - what a cut connection raises is not one type
            raise TargetError(f"the watch was cut: {reason_of(error)}") from None
        finally:
            self._response.close()
            self._response.release_conn()

    def stop(self) -> None:
        """End the stream for the thread that reads it."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # if it has ended already
            self._response.shutdown()


def _read(response: Any, longest: int) -> bytes:
    # No compression was offered; not to undo any keeps a small answer from becoming a huge one.
    pieces: list[bytes] = []
    size = 0
    for piece in response.stream(_PIECE, decode_content=False):
        size += len(piece)
        if size > longest:
            raise LimitError(f"the answer is longer than {longest >> 20} MiB")
        pieces.append(piece)
    return b"".join(pieces)
