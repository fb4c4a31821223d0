"""The errors of requests: the one place that wraps those of the client and the libraries.

The client library lets urllib3's, the socket's and its own exceptions through. Above this module
there are only `ApiError` (the server refused: a result that a scenario may expect) and
`TargetError` (there was no answer, or none that says anything about the scenario).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kube.base.errors import TargetError, TargetGoneError, UsageError
from kube.base.text import one_line

BUSY = frozenset({429, 503})
"""The server did not look at the request: repeating it is safe, whatever it was."""

PASSING = frozenset({429, 500, 502, 503, 504})
"""Status codes that say nothing about the object, and are likely to pass."""

UNAUTHORIZED = 401  # The server does not know who asks, and did not look at the request.

_PREFIX = re.compile(r"^(?:<[^>]*>|HTTPS?Connection(?:Pool)?\([^)]*\)): ")


@dataclass(frozen=True, slots=True)
class Cause:
    """One of the ``details.causes`` of a Status: the field path and what is wrong there."""

    field: str
    reason: str
    message: str


class ApiError(Exception):
    """The API server refused a request (``metav1.Status`` with status Failure).

    Attributes:
        code: HTTP status, for example 422.
        reason: ``Status.reason``, for example ``Invalid``, ``NotFound``, ``Conflict``.
        message: ``Status.message``.
        causes: ``Status.details.causes``.
        details: all else of ``Status.details``, such as ``name`` and ``kind``; None without any.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        causes: Sequence[Cause] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
        self.details = details


class KubeconfigError(UsageError):
    """A kubeconfig file, or its context, cannot be used. The message says what to do."""


class UnsureError(TargetError):
    """A creation got no answer: it may have been carried out or not."""


def api_error(code: int, body: bytes, http_reason: str = "") -> ApiError:
    """Return the refusal in a response: its ``metav1.Status``, or whatever stood in its place."""
    try:
        status: Any = json.loads(body)
    except (ValueError, RecursionError):
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = body.decode("utf-8", "replace").strip()
        return ApiError(code, http_reason.replace(" ", ""), text[:500] or f"HTTP {code}")
    return of_status(status, code)


def of_status(status: dict[str, Any], code: int = 0) -> ApiError:
    """Return the refusal in a ``metav1.Status``, as responses and watches carry it."""
    details = status.get("details")
    listed_causes = details.get("causes") if isinstance(details, dict) else None
    causes = [
        Cause(*(str(cause.get(name) or "") for name in ("field", "reason", "message")))
        for cause in (listed_causes if isinstance(listed_causes, list) else ())
        if isinstance(cause, dict)
    ]
    status_code = status.get("code")
    return ApiError(
        status_code if isinstance(status_code, int) and status_code else code,
        str(status.get("reason") or ""),
        str(status.get("message") or ""),
        causes,
    )


def not_served(api_version: str, kind: str) -> ApiError:
    """Return the refusal of a kind that no served group and version has."""
    return ApiError(404, "NotFound", f'no matches for kind "{kind}" in version "{api_version}"')


def reason_of(error: BaseException) -> str:
    """Return one line that says what went wrong, without what libraries put around it."""
    text = str(getattr(error, "reason", None) or error)
    text = _PREFIX.sub("", " ".join(text.split()))
    return text or type(error).__name__


_TLS_REMEDIES = (
    ("hostname mismatch", "use a server address that its certificate names, or tls-server-name"),
    ("ip address mismatch", "use a server address that its certificate names, or tls-server-name"),
    ("has expired", "renew the server's certificate, or correct this machine's clock"),
    ("not yet valid", "correct this machine's clock"),
    (
        "certificate_verify_failed",
        "its certificate has another signer: correct the kubeconfig's certificate-authority",
    ),
    ("wrong_version_number", "this port does not speak TLS: is it an http:// address?"),
    ("record_layer_failure", "this port does not speak TLS: is it an http:// address?"),
)


def tls_remedy(error: BaseException) -> str | None:
    """Return what a user can do about a failure of TLS; None where it is another failure."""
    text = f"{type(error).__name__} {reason_of(error)}".lower()
    if "ssl" not in text:
        return None
    return next(
        (remedy for sign, remedy in _TLS_REMEDIES if sign in text),
        "check the certificates of the kubeconfig and of the server",
    )


def make_unavailable_error(
    where: str, method: str, path: str, failure: ApiError, patience: float
) -> ApiError | TargetError:
    """Return the error of a request refused with 401, 429 or 5xx for ``patience`` seconds."""
    if failure.code == 500:
        return failure
    if failure.code == UNAUTHORIZED:
        return TargetGoneError(
            f"{where} no longer accepts the credentials that it had accepted (401 for "
            f"{patience:g} s): they have expired or were revoked; take new ones, and go on "
            "with --resume"
        )
    return TargetError(
        f"{where} is overloaded or not available: it answered {method} {path} with "
        f"{failure.code} for {patience:g} s: {_redact_line(str(failure))}; see the API "
        "server's log"
    )


def _redact_line(text: str) -> str:
    from kube.base.redaction import redact_log  # patterns that take longer than a request

    return one_line(redact_log(text))


def no_answer(
    where: str, method: str, path: str, error: Exception, *, sent: bool = False
) -> TargetError:
    """Return the error of a request without an answer; a POST that was sent may have been done."""
    unsure = sent and method == "POST"
    aside = " (it may have been carried out)" if unsure else ""
    advice = tls_remedy(error) or "check that it runs and can be reached from this machine"
    return (UnsureError if unsure else TargetError)(
        f"no answer from the API server {where} to {method} {path}{aside}: "
        f"{_redact_line(reason_of(error))}; {advice}"
    )
