"""Signals that end a run in order: what was made is removed, and what had run is reported."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""What CI systems cancel with, and what comes when a terminal or an ssh session is closed."""


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let these signals raise KeyboardInterrupt, as Ctrl-C does. Only in the main thread.

    One that is ignored (``nohup``) stays so.
    """
    handlers_before = {number: signal.getsignal(number) for number in ENDING}
    try:
        for number, handler in handlers_before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
