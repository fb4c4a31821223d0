"""Connections to one API server, each request bounded in time and size.

A socket's timeout limits each read, so a server that sends a byte now and then would hold a client
for as long as it likes, and nothing limits how much it sends. So a timer cuts the connection of a
request that takes too long, and an answer is read up to a size. `Transport.abandon` cuts them all:
when a server is given up, whoever waits for its answer hears of it at once.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from conformance.kubeapi.errors import reason_of
from conformance.kubeapi.kubeconfig import ClientConfig
from conformance.kubeapi.tls import tls_context

MAX_BYTES = 256 << 20
"""Longest answer. A list of 20 000 pods is about 200 MiB."""

_CONNECTIONS = 128
"""Kept open: one watch per kind of many scenarios at once."""

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: to connect, without any byte, and for the whole of a request and its answer.

    A watch has no end of its own: only its head has to come in time.
    """

    connect: float = 5.0
    quiet: float = 30.0
    whole: float = 60.0
    watch_quiet: float = 100.0  # a bookmark comes about once a minute


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


class LimitError(Exception):
    """The answer was too long, or took too long, or is not waited for any more."""


class Transport:
    """HTTP to one API server; TLS and proxy as its kubeconfig says. Safe for threads.

    Args:
        config: the server.
        certificate: fields of the user with the client's certificate (see `tls_context`).
        limits: of each request.

    Raises:
        KubeconfigError: the certificates or the proxy cannot be used.
    """

    def __init__(
        self, config: ClientConfig, certificate: Mapping[str, str], limits: Limits
    ) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._busy: set[_Guard] = set()
        self._abandoned = False
        self._pool = _pool(config, certificate)
        self._pool.pool_classes_by_scheme = self._pool_classes()

    def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        quiet: float | None = None,
    ) -> Answer:
        """Make a request and read its answer.

        Args:
            quiet: seconds without any byte, where not those of the limits.

        Raises:
            LimitError: the answer was longer than `MAX_BYTES`, or took too long.
            Exception: whatever urllib3 and what lies under it raise.
        """
        until = time.monotonic() + self._limits.whole
        response = self._send(method, url, headers, body, quiet or self._limits.quiet)
        try:
            with self._guard(response.shutdown, until - time.monotonic()):
                data = _read(response, MAX_BYTES)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return Answer(response.status, response.reason or "", response.headers, data)

    def open(self, url: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """Open a watch: its response, of which only the head is read.

        Raises:
            LimitError: the head took too long.
            Exception: whatever urllib3 and what lies under it raise.
        """
        return self._send("GET", url, headers, None, self._limits.watch_quiet)

    def abandon(self) -> None:
        """Cut every request that is under way or to come. Watches end when they are stopped."""
        with self._lock:
            self._abandoned = True
            busy = list(self._busy)
        for guard in busy:
            guard.cut("the server has been given up")

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._pool.clear()

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, quiet: float
    ) -> urllib3.BaseHTTPResponse:
        return self._pool.urlopen(
            method,
            url,
            body=body,
            headers=headers,
            preload_content=False,
            redirect=False,
            retries=False,
            timeout=urllib3.Timeout(connect=self._limits.connect, read=quiet),
        )

    @contextlib.contextmanager
    def _guard(self, stop: Callable[[], object], seconds: float) -> Iterator[None]:
        """Have ``stop`` called when the time is over, or the server is given up.

        Raises:
            LimitError: it was called.
        """
        guard = _Guard(stop, seconds, f"the answer was not complete after {self._limits.whole:g} s")
        with self._lock:
            self._busy.add(guard)
            abandoned = self._abandoned
        if abandoned:
            guard.cut("the server has been given up")
        try:
            yield
        except Exception:
            if guard.why:
                raise LimitError(guard.why) from None
            raise
        finally:
            guard.end()
            with self._lock:
                self._busy.discard(guard)
        if guard.why:  # a body without a length ends so, as if it were complete
            raise LimitError(guard.why)

    def _pool_classes(self) -> dict[str, Any]:
        """urllib3's classes, with connections that wait for a response's head under guard."""

        def guarded(connection: Any) -> contextlib.AbstractContextManager[None]:
            sock = connection.sock
            return self._guard(lambda: sock.shutdown(socket.SHUT_RD), self._limits.whole)

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


class _Guard:
    """Cuts one connection, when its time is over or before; ``why`` is why, "" as long as not."""

    def __init__(self, stop: Callable[[], object], seconds: float, late: str) -> None:
        self.why = ""
        self._stop = stop
        self._timer = threading.Timer(max(0.0, seconds), self.cut, [late])
        self._timer.daemon = True
        self._timer.start()

    def cut(self, why: str) -> None:
        self.why = why
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # if it has ended already
            self._stop()

    def end(self) -> None:
        self._timer.cancel()


def _read(response: urllib3.BaseHTTPResponse, longest: int) -> bytes:
    # No compression was offered; not to undo any keeps a small answer from becoming a huge one.
    pieces: list[bytes] = []
    size = 0
    for piece in response.stream(_PIECE, decode_content=False):
        size += len(piece)
        if size > longest:
            raise LimitError(f"the answer is longer than {longest >> 20} MiB")
        pieces.append(piece)
    return b"".join(pieces)


def _pool(
    config: ClientConfig, certificate: Mapping[str, str]
) -> urllib3.PoolManager | urllib3.ProxyManager:
    server = config.cluster["server"]
    options: dict[str, Any] = {"num_pools": 4, "maxsize": _CONNECTIONS}
    if server.startswith("https:"):
        options["ssl_context"] = tls_context(config, certificate)
        if config.cluster.get("insecure-skip-tls-verify"):
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
            options["cert_reqs"] = "CERT_NONE"
        if name := config.cluster.get("tls-server-name"):
            options |= {"server_hostname": name, "assert_hostname": name}
    proxy = config.cluster.get("proxy-url") or _proxy_of(server, getproxies())
    if not proxy:
        return urllib3.PoolManager(**options)
    try:
        if proxy.startswith("socks"):
            from urllib3.contrib.socks import SOCKSProxyManager

            return SOCKSProxyManager(proxy, **options)
        return urllib3.ProxyManager(proxy, **options)
    except ImportError:
        raise config.wrong(f"the proxy {proxy} needs the package PySocks: install it") from None
    except ValueError as error:
        raise config.wrong(f"the proxy {proxy} cannot be used: {reason_of(error)}") from None


def _proxy_of(server: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for this server, None for none (as Go's net/http).

    Args:
        proxies: scheme -> proxy, and ``no`` -> the hosts without one: names, domains, addresses
            or networks, joined by commas.
    """
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return None
    for entry in (part.strip().lower() for part in proxies.get("no", "").split(",")):
        if entry == "*" or (entry and _covers(entry, host, parts.port, address)):
            return None
    return proxies.get(parts.scheme)


def _covers(entry: str, host: str, port: int | None, address: Any) -> bool:
    if address is not None:
        with contextlib.suppress(ValueError):
            return address in ipaddress.ip_network(entry, strict=False)
    domain = entry.removeprefix("*").removeprefix(".")
    return host == domain or host.endswith(f".{domain}") or entry == f"{host}:{port}"
