"""The Kubernetes Events that tell why a scenario failed, out of its diagnostics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conformance.engine.result import ScenarioResult

MAX_EVENTS = 3
"""The latest that are shown; the diagnostics have all."""


def warnings_of(row: ScenarioResult) -> list[str]:
    """The last warnings of the scenario's namespace, the latest first.

    Each as ``FailedScheduling, Pod pod0 (default-scheduler): message``; what the scenario's own
    message quotes is left out, and so is what only repeats.
    """
    try:
        events = json.loads(row.diagnostics.get("events.json", "[]"))
    except (ValueError, RecursionError):
        return []
    found = list(dict.fromkeys(_told(events, row.message)))
    return found[: -MAX_EVENTS - 1 : -1]


def _told(events: Any, known: str) -> Iterator[str]:
    listed = events if isinstance(events, list) else []
    warnings = [item for item in listed if isinstance(item, dict) and item.get("type") == "Warning"]
    for item in sorted(warnings, key=_time):
        message = str(item.get("message") or "")
        if message.strip() and message.strip() not in known:
            about = item.get("involvedObject") or item.get("regarding")
            named = f"{about.get('kind')} {about.get('name')}" if isinstance(about, dict) else "?"
            source = item.get("reportingComponent") or "?"
            yield f"{item.get('reason')}, {named} ({source}): {message}"


def _time(event: dict[str, Any]) -> str:
    """When it was last seen; RFC 3339 in UTC sorts as text, to the second."""
    series = event.get("series")
    latest = series.get("lastObservedTime") if isinstance(series, dict) else None
    return str(latest or event.get("lastTimestamp") or event.get("eventTime") or "")
