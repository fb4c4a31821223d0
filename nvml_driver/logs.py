"""Formats logs for people (klog's text) and for machines (JSON): ``--logging-format``.

Names and meaning of the options are those of Kubernetes components (k8s.io/component-base/logs).
"""

from __future__ import annotations

import json
import logging
import sys
import time
from enum import StrEnum


class Format(StrEnum):
    """The ways in which log lines can look."""

    TEXT = "text"
    JSON = "json"


_LETTERS = {logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}


class TextFormatter(logging.Formatter):
    """Formats as klog: ``I1121 10:57:40.123456   4711 core.py:210] message``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and a traceback below it if there is one."""
        moment = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        letter = _LETTERS.get(record.levelno, "F")
        caller = f"{record.filename}:{record.lineno}"
        text = f"{letter}{moment}.{micros:06d} {record.process:7d} {caller}] {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormatter(logging.Formatter):
    """Formats one object on each line, with the keys of component-base's JSON format."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object as a line, with the traceback as ``err``."""
        entry: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            entry["err"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def configure_logging(verbosity: int, style: Format = Format.TEXT) -> None:
    """Log to standard error: from verbosity 1 information, from 4 debugging, as is klog's habit."""
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity else logging.WARNING
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style is Format.JSON else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.getLogger("urllib3").setLevel(max(level, logging.INFO))
