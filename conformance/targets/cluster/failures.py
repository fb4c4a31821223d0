"""What went wrong with a request, in the suite's own words: the one place that wraps.

The client library lets urllib3's, the socket's and its own exceptions through. Above this module
there are only `ApiError` (the server refused: a result that a scenario may expect) and
`TargetError` (there was no answer, or none that says anything about the scenario).
"""

from __future__ import annotations

import json
from typing import Any

from conformance.targets.base import ApiError, Cause, TargetError

BUSY = frozenset({429, 503})
"""The server did not look at the request: repeating it is safe, whatever it was."""

PASSING = frozenset({429, 500, 502, 503, 504})
"""Says nothing about the object that was asked for; likely to go away by itself."""


class UnsureError(TargetError):
    """A creation got no answer: it may have been carried out or not."""


def api_error(code: int, body: bytes, http_reason: str = "") -> ApiError:
    """The refusal in a response: its ``metav1.Status``, or whatever stood in its place."""
    try:
        status: Any = json.loads(body)
    except (ValueError, RecursionError):
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = body.decode("utf-8", "replace").strip()
        return ApiError(code, http_reason.replace(" ", ""), text[:500] or f"HTTP {code}")
    return of_status(status, code)


def of_status(status: dict[str, Any], code: int = 0) -> ApiError:
    """The refusal in a ``metav1.Status``, as responses and watches carry it."""
    details = status.get("details")
    found = details.get("causes") if isinstance(details, dict) else None
    causes = [
        Cause(*(str(cause.get(name) or "") for name in ("field", "reason", "message")))
        for cause in (found if isinstance(found, list) else ())
        if isinstance(cause, dict)
    ]
    said = status.get("code")
    return ApiError(
        said if isinstance(said, int) and said else code,
        str(status.get("reason") or ""),
        str(status.get("message") or ""),
        causes,
    )


def not_served(api_version: str, kind: str) -> ApiError:
    """The refusal of a kind that no served group and version has."""
    return ApiError(404, "NotFound", f'no matches for kind "{kind}" in version "{api_version}"')
