"""How long a request may take, and what cuts the connection of one that takes longer."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_GIVEN_UP = "the server has been given up"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: to connect, without any byte, and for the whole of a request and its answer.

    A watch has no end of its own: only its head has to come in time.
    """

    connect: float = 5.0
    quiet: float = 30.0
    whole: float = 60.0
    watch_quiet: float = 100.0  # a bookmark comes about once a minute


class LimitError(Exception):
    """The answer was too long, or took too long, or is not waited for any more."""


class Guards:
    """The requests in flight, and one thread that cuts those that exceed their time.

    One thread, because a timer for each request would start a thread for each. It starts with the
    first request, and ends when it looks and finds none. Safe for threads.

    ``late``: what the error says of a request whose time is over.
    """

    def __init__(self, late: str) -> None:
        self._late = late
        self._changed = threading.Condition()
        self._busy: set[_Guard] = set()
        self._looks: float | None = None  # when the thread looks next; None: there is no thread
        self._abandoned = False

    @contextlib.contextmanager
    def guard(self, stop: Callable[[], object], until: float) -> Iterator[None]:
        """Call ``stop`` at a time of the monotonic clock, or when the server is given up.

        Raises LimitError: it was called.
        """
        guard = _Guard(stop, until)
        self._add(guard)
        try:
            yield
        except Exception:
            if guard.why:
                raise LimitError(guard.why) from None
            raise
        finally:
            with self._changed:
                self._busy.discard(guard)
        if guard.why:  # a body without a length ends so, as if it were complete
            raise LimitError(guard.why)

    def abandon(self) -> None:
        """Cut every request in flight, and each further one."""
        with self._changed:
            self._abandoned = True
            busy = list(self._busy)
        for guard in busy:
            guard.cut(_GIVEN_UP)

    def close(self) -> None:
        """End the thread now if nothing is in flight, rather than at its next check."""
        with self._changed:
            self._changed.notify()

    def _add(self, guard: _Guard) -> None:
        with self._changed:
            self._busy.add(guard)
            if self._looks is None:
                threading.Thread(target=self._look, name="request limits", daemon=True).start()
                self._looks = guard.until
            elif guard.until < self._looks:
                self._changed.notify()
            abandoned = self._abandoned
        if abandoned:
            guard.cut(_GIVEN_UP)

    def _look(self) -> None:
        while True:
            now = time.monotonic()
            with self._changed:
                late = [guard for guard in self._busy if guard.until <= now]
                self._busy.difference_update(late)
                if not late:
                    self._looks = min((guard.until for guard in self._busy), default=None)
                    if self._looks is None:
                        return
                    self._changed.wait(self._looks - now)
            for guard in late:
                guard.cut(self._late)


class _Guard:
    """Cuts one connection; ``why`` is why it did, "" as long as it did not."""

    def __init__(self, stop: Callable[[], object], until: float) -> None:
        self.why = ""
        self.until = until
        self._stop = stop

    def cut(self, why: str) -> None:
        self.why = why
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # if it has ended already
            self._stop()
