"""The debug log of a run: what it waits for and what it sends, for a run that hangs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kube.base.redaction import redact_log

DEBUG_LOG = "debug.log"  # Name of the file in the folder of the reports.

_LOGGERS = ("conformance", "nvml_driver")


class _Redacted(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact_log(super().format(record))


@contextmanager
def debug_log(file: Path | None) -> Iterator[None]:
    """Print warnings on standard error, and append everything to a file if one is given.

    Raises OSError: the file cannot be opened.
    """
    console = logging.StreamHandler()
    console.setLevel(logging.WARNING)
    console.setFormatter(_Redacted("%(levelname)s: %(message)s"))
    handlers: list[logging.Handler] = [console]
    if file is not None:
        handlers.append(logging.FileHandler(file, encoding="utf-8"))
        handlers[-1].setFormatter(
            _Redacted("%(asctime)s %(levelname)s [%(threadName)s] %(name)s: %(message)s")
        )
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG if file is not None else logging.WARNING)
        for handler in handlers:
            logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
            for handler in handlers:
                logger.removeHandler(handler)
        for handler in handlers:
            handler.close()
