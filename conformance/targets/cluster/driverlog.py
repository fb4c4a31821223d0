"""Reads from the log of our own driver what a kubelet asked it, and what it answered.

Nothing else on a cluster tells which claims a driver was asked for: kubelets only count calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kube.components import role_of
from kube.observations import DriverCall

_LINE: Final = re.compile(
    r"\] (?P<operation>prepare|unprepare)(?P<done>d?) claim (?P<namespace>[^/ ]+)/(?P<claim>\S+)"
    r" \(uid [^)]+\)(?:: (?P<text>.*))?"
)
"""What `nvml_driver.kubelet.service.ClaimWork` logs: ``prepared claim NAMESPACE/NAME (uid UID):
DEVICES``, or ``prepare claim NAMESPACE/NAME (uid UID): ERROR``."""


def read_driver_calls(logs: Mapping[str, Path], namespace: str) -> list[DriverCall] | None:
    """Return the calls for a namespace's claims, each node's in their order.

    None where no log has a line of our own driver: another one logs in its own words.
    """
    calls: list[DriverCall] | None = None
    for component in sorted(logs):
        if role_of(component) == "driver":
            for matched in _matches(logs[component]):
                calls = [] if calls is None else calls
                if matched["namespace"] == namespace:
                    error = "" if matched["done"] else matched["text"] or ""
                    calls.append(DriverCall(matched["claim"], matched["operation"], error))
    return calls


def _matches(log: Path) -> Iterator[re.Match[str]]:
    """Yield the lines of a log that tell of a claim; none of a log that cannot be read."""
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            yield from filter(None, map(_LINE.search, lines))
    except OSError:
        return
