"""Requests to one API server: plain JSON in and out, repeated only where that is safe.

The official client provides TLS, proxies and a pool of connections; its typed models are not used,
because a scenario must see what is on the wire. A request without an answer is repeated for a while
with growing pauses (an API server that restarts is away for some seconds), unless it may have been
carried out.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack
from urllib.parse import urlencode

from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from kube.base.errors import TargetError
from kube.base.version import installed_version
from kube.errors import (
    BUSY,
    PASSING,
    UNAUTHORIZED,
    KubeconfigError,
    api_error,
    make_unavailable_error,
    no_answer,
    tls_remedy,
)
from kube.kubeconfig import ClientConfig, load_config
from kube.limits import Limits
from kube.transport import Answer, Stream, Transport

_LOG = logging.getLogger(__name__)

PATIENCE = 30.0  # Seconds for which an unanswered request is repeated before it is an error.

APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
"""What ``kubectl get`` asks for: rows with the columns that it prints."""
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

LIMITS = Limits()

_JSON = "application/json"
_REFUSAL = 1 << 20  # bytes of a refusal of a watch that are looked at


class RequestOptions(TypedDict, total=False):
    """How a request differs from most.

    Attributes:
        content_type: of the body; JSON.
        accept: what the answer may be; JSON.
        patience: seconds for which it is repeated; `PATIENCE`.
    """

    content_type: str
    accept: str
    agent: str
    headers: Mapping[str, str]
    patience: float


class Connection:
    """One API server, as one user. Safe for threads.

    ``config``: a context of a kubeconfig file, or what stands for one.

    ``last_answer``: when the server last answered (``time.monotonic``), but for 5xx; 0 for never.

    Raises:
        KubeconfigError: the kubeconfig's credentials or certificates cannot be used.
        TargetError: the user's credential plugin failed.
    """

    def __init__(self, config: ClientConfig, *, keep: bool = True) -> None:
        # A second to import, so only when a cluster is really used.
        from kube.client import api_client

        self._transport = Transport(api_client(config), LIMITS)
        self._keep = keep
        self._closing = threading.Event()
        self._abandoned: Callable[[], TargetError] | None = None
        self._accepted = False
        self.last_answer = 0.0
        self.server: str = config.cluster["server"]
        self.where = f"{self.server} ({config})" if config.context else self.server

    @classmethod
    def open(cls, kubeconfig: Path, context: str) -> Connection:
        """Return the server of a kubeconfig file's context; raises as the constructor does."""
        return cls(load_config(kubeconfig, context))

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        **options: Unpack[RequestOptions],
    ) -> Any:
        """Make a request; the answer's JSON.

        Raises:
            ApiError: the server refused.
            UnsureError: a POST may have been carried out, but its answer got lost.
            TargetError: no answer, or only 429 or 5xx, for ``patience`` seconds; or one that is not
                an object, too long or too slow.
            TargetGoneError: for as long the server has refused credentials that it had accepted.
        """
        text = self.read_text(method, path, query, body, **options)
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self.make_unexpected_error(
                method, path, "with something that is not a JSON object"
            )
        return answer

    def read_text(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        **options: Unpack[RequestOptions],
    ) -> bytes:
        """As `request`, for answers that are not JSON (logs, metrics)."""
        patience = options.get("patience", PATIENCE)
        repeatable = method != "POST"
        deadline = time.monotonic() + patience
        pause = 0.05
        while True:
            self._check_open(method, path)
            try:
                answer = self._exchange(method, path, query, body, options)
            except (KubeconfigError, TargetError) as error:  # credentials were not renewed
                raise TargetError(str(error)) from None
            except Exception as error:  # noqa: BLE001 - urllib3's, ssl's and http.client's alike
                self._check_open(method, path)
                unsent = isinstance(error, ConnectTimeoutError | NewConnectionError)
                # A server that never answered is a wrong address, and not one that restarts.
                hopeless = not self.last_answer or tls_remedy(error) is not None
                if hopeless or not (repeatable or unsent) or time.monotonic() + pause > deadline:
                    raise no_answer(self.where, method, path, error, sent=not unsent) from None
                _LOG.info("%s %s: retry in %.2f s: %s", method, path, pause, error)
            else:
                if 200 <= answer.status < 300:
                    self._accepted = True
                    return answer.data
                failure = api_error(answer.status, answer.data, answer.reason)
                # An API server that has just started does not know all service accounts yet.
                expired = answer.status == UNAUTHORIZED and self._accepted
                if not expired and answer.status not in (PASSING if repeatable else BUSY):
                    raise failure
                if time.monotonic() + pause > deadline:
                    raise make_unavailable_error(self.where, method, path, failure, patience)
                seconds = deadline - time.monotonic()
                pause = max(pause, min(answer.retry_after(), seconds))
                _LOG.info("%s %s: retry in %.2f s: %s", method, path, pause, failure)
            self._closing.wait(pause)
            pause = min(pause * 2, 1.0)

    def stream(self, path: str, query: Mapping[str, str], agent: str = "") -> Stream:
        """Open a watch: JSON documents, one for each line, as they come.

        Raises ApiError: the server refused; TargetError: no answer.
        """
        self._check_open("watch", path)
        headers = self._headers({"agent": agent})
        try:
            response = self._transport.open(self._url(path, query), headers)
            if response.status == 200:
                return Stream(response)
            with response:  # closed however reading it ends
                data = response.read(_REFUSAL, decode_content=False)
        except (KubeconfigError, TargetError) as error:
            raise TargetError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - urllib3's, ssl's and http.client's alike
            self._check_open("watch", path)
            raise no_answer(self.where, "watch", path, error) from None
        raise api_error(response.status, data, response.reason or "")

    def is_answering(self, seconds: float) -> bool:
        """Return whether the server answers now, and not that it is unavailable.

        Asked once, of a path that every user may read by default; a refusal is an answer.
        """
        answer = self._ask("/readyz", seconds)
        return answer is not None and answer.status < 500

    def poll(self, path: str, seconds: float) -> bytes | None:
        """Body of a GET that is answered with 200, None without one. Asked once."""
        answer = self._ask(path, seconds)
        return answer.data if answer is not None and answer.status == 200 else None

    def _ask(self, path: str, seconds: float) -> Answer | None:
        try:
            return self._exchange("GET", path, options={"accept": "*/*"}, quiet=seconds)
        except Exception:  # noqa: BLE001 - whatever it is, there was no answer
            return None

    def make_unexpected_error(self, method: str, path: str, what: str) -> TargetError:
        """Return the error for an answer that no API server gives."""
        return TargetError(
            f"{self.where} answered {method} {path} {what}; is this the address of an API server?"
        )

    def abandon(self, error: Callable[[], TargetError]) -> None:
        """End every request in flight, and each further one, with the error that this returns."""
        self._abandoned = error
        self._closing.set()
        self._transport.abandon()

    def close(self) -> None:
        """Release the connections; whatever waits for a repetition ends with `TargetError`."""
        self._closing.set()
        self._transport.close()

    def _check_open(self, method: str, path: str) -> None:
        if self._abandoned is not None:
            raise self._abandoned()
        if self._closing.is_set():
            raise TargetError(f"{self.where}: the connection was closed during {method} {path}")

    def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        options: RequestOptions | None = None,
        quiet: float | None = None,
    ) -> Answer:
        headers = self._headers(options or {})
        if body is not None:
            headers["Content-Type"] = (options or {}).get("content_type", _JSON)
        answer = self._transport.exchange(method, self._url(path, query), headers, body, quiet)
        if answer.status < 500:
            self.last_answer = time.monotonic()
        return answer

    def _headers(self, options: RequestOptions) -> dict[str, str]:
        agent = options.get("agent", "")
        made_by = f"dra-conformance/{installed_version()}" + (f" ({agent})" if agent else "")
        headers = {"Accept": options.get("accept", _JSON), "User-Agent": made_by}
        headers |= options.get("headers", {})
        return headers if self._keep else {**headers, "Connection": "close"}

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return self.server + path + ("?" + urlencode(query) if query else "")
