"""One request to an API server and its answer, bounded in time and size as a whole.

A timeout of a socket limits each read, so a server that sends a byte now and then holds a client
for as long as it likes, and nothing limits how much it sends. Here the time for everything between
the first byte sent and the last one read is limited, and the number of bytes. urllib3 offers
neither; the place where both can be had is the file that ``http.client`` reads a response from.
"""

from __future__ import annotations

import http.client
import io
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_BYTES = 256 << 20
"""Longest answer. A list of 20 000 pods is about 200 MiB."""

_PREFIX = re.compile(r"^(?:<[^>]*>|HTTPS?Connection(?:Pool)?\([^)]*\)): ")
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: to connect, without any byte, and for the whole of an exchange."""

    connect: float
    quiet: float
    whole: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that was read to its end."""

    status: int
    reason: str
    headers: Mapping[str, str]
    data: bytes

    def retry_after(self) -> float:
        """Seconds after which the server wants to be asked again; 0 where it does not say.

        A date (RFC 9110, 10.2.3) counts as not said: API servers send seconds.
        """
        try:
            asked = float(self.headers.get("Retry-After", 0))
        except ValueError:
            return 0.0
        return asked if 0 <= asked < float("inf") else 0.0


class ExchangeError(Exception):
    """The answer was too long, or took too long."""


class _Clock(threading.local):
    until: float | None = None


_clock = _Clock()


def exchange(
    client: Any,
    method: str,
    url: str,
    headers: dict[str, str],
    body: Any = None,
    *,
    limits: Limits,
    max_bytes: int | None = None,
) -> Answer:
    """Make a request and read its answer.

    Args:
        client: an ``ApiClient`` that `bound` was called with.
        headers: with authentication.
        max_bytes: longest body; None is `MAX_BYTES`.

    Raises:
        ExchangeError: the answer was too long, or took too long.
        Exception: whatever the client library and what lies under it raise.
    """
    until = time.monotonic() + limits.whole
    longest = MAX_BYTES if max_bytes is None else max_bytes
    _clock.until = until
    try:
        response = _call(client, method, url, headers, body, limits)
        try:
            data = _read(response, longest)
        except BaseException:
            response.close()
            raise
        response.release_conn()
    except ExchangeError:
        raise
    except Exception:
        if time.monotonic() >= until:
            raise ExchangeError(f"the answer was not complete after {limits.whole:g} s") from None
        raise
    finally:
        _clock.until = None
    return Answer(response.status, response.reason or "", response.headers, data)


def open_stream(client: Any, url: str, headers: dict[str, str], *, limits: Limits) -> Any:
    """Open a watch: a response of urllib3, unread. Only until it begins its time is limited.

    Raises:
        Exception: whatever the client library and what lies under it raise.
    """
    _clock.until = time.monotonic() + limits.whole
    try:
        return _call(client, "GET", url, headers, None, limits)
    finally:
        _clock.until = None


def bound(client: Any) -> Any:
    """Make the connections of an ``ApiClient`` heed the limits; returns it."""
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class PlainConnection(HTTPConnection):
        response_class = _Response

    class SecureConnection(HTTPSConnection):
        response_class = _Response

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    manager = client.rest_client.pool_manager
    if type(manager).__name__ != "SOCKSProxyManager":  # it needs connections of its own
        manager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return client


def reason_of(error: BaseException) -> str:
    """One line that says what went wrong, without the objects that libraries put around it."""
    text = str(getattr(error, "reason", None) or error)
    text = _PREFIX.sub("", " ".join(text.split()))
    return text or type(error).__name__


def _call(
    client: Any, method: str, url: str, headers: dict[str, str], body: Any, limits: Limits
) -> Any:
    return client.call_api(
        method,
        url,
        header_params=headers,
        body=body,
        _request_timeout=(limits.connect, limits.quiet),
    ).response


def _read(response: Any, longest: int) -> bytes:
    # No compression was offered; not to undo any keeps a small answer from becoming a huge one.
    pieces: list[bytes] = []
    size = 0
    for piece in response.stream(_PIECE, decode_content=False):
        size += len(piece)
        if size > longest:
            raise ExchangeError(f"the answer is longer than {longest >> 20} MiB")
        pieces.append(piece)
    return b"".join(pieces)


class _Response(http.client.HTTPResponse):
    """A response whose every read ends when the time for the whole exchange is over."""

    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_LimitedFile(sock))


class _LimitedFile(io.RawIOBase):
    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._quiet = sock.gettimeout()
        self._file = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        until = _clock.until
        if until is None:
            found: int | None = self._file.readinto(buffer)
            return found
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left if self._quiet is None else min(self._quiet, left))
        try:
            found = self._file.readinto(buffer)
        finally:
            self._sock.settimeout(self._quiet)
        return found

    def close(self) -> None:
        self._file.close()
        super().close()
