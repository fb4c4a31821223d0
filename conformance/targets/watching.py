"""A watch that a scenario has opened: what it has brought, in the order in which it came."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from conformance.errors import TargetError

Event = tuple[str, Mapping[str, Any]]
"""``ADDED``, ``MODIFIED`` or ``DELETED``, and the object."""


class Watching:
    """Keeps what it hears; safe for threads."""

    def __init__(self, stop: Callable[[], None] = lambda: None) -> None:
        """Use ``Scope.watch``.

        Args:
            stop: ends the watch.
        """
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._lists = 0
        self.stop = stop

    def hear(self, change: str, obj: Mapping[str, Any]) -> None:
        """See ``kubeapi.informer.Listener``: one list, and then the changes since."""
        with self._lock:
            if change == "LISTED":
                self._lists += 1
            elif change != "TROUBLE":
                self._events.append((change, obj))

    def events(self) -> list[Event]:
        """All that came so far.

        Raises:
            TargetError: something may have happened that no event told.
        """
        with self._lock:
            if self._lists > 1:
                raise TargetError(
                    "the API server has forgotten where a watch was (410 Gone), so what the watch"
                    " did not bring meanwhile is not known"
                )
            return list(self._events)
