"""Requests to one API server: plain JSON in and out, repeated only where that is safe.

The official client provides authentication, TLS and a pool of connections; its thousands of typed
models would only stand between the scenarios and the wire, so requests are made on its
``ApiClient`` directly. A request that got no answer is repeated for a while with growing pauses (an
API server that restarts is away for some seconds) unless it may have been carried out.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from conformance import __version__
from conformance.errors import TargetError
from conformance.kubeapi.apiclient import api_client
from conformance.kubeapi.errors import BUSY, PASSING, KubeconfigError, UnsureError, api_error
from conformance.kubeapi.exchange import (
    MAX_BYTES,
    Answer,
    Limits,
    exchange,
    open_stream,
    reason_of,
)
from conformance.redaction import redact_log
from conformance.text import one_line

PATIENCE = 30.0
"""Seconds for which an unanswered request is repeated before it is an error."""

MERGE_PATCH = "application/merge-patch+json"
LIMITS = Limits(connect=5.0, quiet=30.0, whole=60.0)
_WATCH = Limits(connect=5.0, quiet=100.0, whole=100.0)  # a bookmark comes about once a minute


_REFUSAL = 1 << 20  # bytes of a refusal of a watch that are looked at


class Connection:
    """One API server, reached through one context of a kubeconfig file. Safe for threads.

    Raises:
        KubeconfigError: the file or the context is wrong (on construction).
    """

    def __init__(self, kubeconfig: Path, context: str) -> None:
        self._api = api_client(kubeconfig, context)
        self.server: str = self._api.configuration.host
        self.where = f"{self.server} (context {context!r} of {kubeconfig})"
        self._closing = threading.Event()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        agent: str = "",
        patience: float = PATIENCE,
    ) -> Any:
        """Make a request; the answer's JSON.

        Raises:
            ApiError: the server refused.
            UnsureError: a POST may have been carried out, but its answer got lost.
            TargetError: no answer, or only 429 or 5xx, for ``patience`` seconds; or one that is no
                object, too long or too slow.
        """
        text = self.text(
            method,
            path,
            query,
            body,
            content_type=content_type,
            accept=accept,
            agent=agent,
            patience=patience,
        )
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self.strange(method, path, "something that is not JSON, or no object")
        return found

    def text(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        agent: str = "",
        patience: float = PATIENCE,
    ) -> bytes:
        """As `request`, for answers that are not JSON (logs, metrics)."""
        repeatable = method != "POST"
        deadline = time.monotonic() + patience
        pause = 0.05
        while True:
            try:
                answer = self._call(method, path, query, body, content_type, accept, agent)
            except TargetError:
                raise  # credentials were not renewed
            except Exception as error:  # noqa: BLE001 - see failures: wrapped here, once
                if time.monotonic() + pause > deadline or not (repeatable or _unsent(error)):
                    raise self._no_answer(method, path, error, sent=not _unsent(error)) from None
            else:
                if 200 <= answer.status < 300:
                    return answer.data
                failure = api_error(answer.status, answer.data, answer.reason)
                retry = answer.status in (PASSING if repeatable else BUSY)
                if not retry:
                    raise failure
                if time.monotonic() + pause > deadline:
                    if answer.status == 500:
                        raise failure
                    raise TargetError(
                        f"{self.where} answered {method} {path} with {failure.code} for "
                        f"{patience:g} s: {failure}; see the API server's log"
                    )
                left = deadline - time.monotonic()
                pause = max(pause, min(answer.retry_after(), left))
            if self._closing.wait(pause):
                raise TargetError(f"{self.where}: the target was closed during {method} {path}")
            pause = min(pause * 2, 1.0)

    def stream(self, path: str, query: Mapping[str, str], agent: str = "") -> Stream:
        """Open a watch: JSON documents, one for each line, as they come.

        Raises:
            ApiError: the server refused.
            TargetError: no answer.
        """
        headers = self._headers("application/json", agent)
        try:
            self._authenticate(headers, "GET", path)
            response = open_stream(self._api, self._url(path, query), headers, limits=_WATCH)
            if response.status == 200:
                return Stream(response)
            data = response.read(_REFUSAL, decode_content=False)
            response.close()
        except TargetError:
            raise
        except Exception as error:  # noqa: BLE001 - see failures: wrapped here, once
            raise self._no_answer("watch", path, error) from None
        raise api_error(response.status, data, response.reason or "")

    def strange(self, method: str, path: str, what: str) -> TargetError:
        """The error for an answer that no API server gives."""
        return TargetError(
            f"{self.where} answered {method} {path} with {what}; is this the address of an API "
            "server?"
        )

    def close(self) -> None:
        """Release the connections; whatever waits for a repetition ends with `TargetError`."""
        self._closing.set()
        self._api.close()

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        accept: str,
        agent: str,
    ) -> Answer:
        headers = self._headers(accept, agent)
        if body is not None:
            headers["Content-Type"] = content_type
        self._authenticate(headers, method, path)
        url = self._url(path, query)
        return exchange(self._api, method, url, headers, body, limits=LIMITS)

    def _headers(self, accept: str, agent: str) -> dict[str, str]:
        made_by = f"dra-conformance/{__version__}" + (f" ({agent})" if agent else "")
        return {"Accept": accept, "User-Agent": made_by}

    def _authenticate(self, headers: dict[str, str], method: str, path: str) -> None:
        try:
            self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
        except KubeconfigError as error:
            raise TargetError(str(error)) from None

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return self.server + path + ("?" + urlencode(query) if query else "")

    def _no_answer(
        self, method: str, path: str, error: Exception, *, sent: bool = False
    ) -> TargetError:
        unsure = sent and method == "POST"
        aside = " (it may have been carried out)" if unsure else ""
        return (UnsureError if unsure else TargetError)(
            f"no answer from the API server {self.where} to {method} {path}{aside}: "
            f"{one_line(redact_log(reason_of(error)))}; check that it runs and can be reached from "
            "this machine"
        )


class Stream:
    """An open watch. Read by one thread, stopped by any."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def __iter__(self) -> Generator[dict[str, Any], None, None]:
        """The documents until the server ends the watch.

        Raises:
            TargetError: the connection broke; never what lies under it.
        """
        rest = b""
        try:
            for chunk in self._response.stream(amt=None):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
                if len(rest) > MAX_BYTES:
                    raise ValueError(f"a line is longer than {MAX_BYTES >> 20} MiB")
        except Exception as error:  # noqa: BLE001 - what a cut connection raises is not one type
            raise TargetError(f"the watch was cut: {reason_of(error)}") from None
        finally:
            self._response.close()
            self._response.release_conn()

    def stop(self) -> None:
        """Make the reading thread come to the end of the stream now."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # if it has ended already
            self._response.shutdown()


def _unsent(error: Exception) -> bool:
    """Whether no byte of the request can have reached the server."""
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    return isinstance(error, ConnectTimeoutError | NewConnectionError)
