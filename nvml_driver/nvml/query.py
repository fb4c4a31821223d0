"""Queries to NVML: what it cannot answer is left out and logged, and a lost GPU is noticed.

Old drivers miss functions, consumer cards do not support some, new cards answer with numbers that
nobody knows yet. None of this is a reason not to publish the device.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import pynvml

from nvml_driver.model.inventory import Attribute, AttributeType
from nvml_driver.nvml.sysfs import MAX_TEXT

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_SPACE = uuid.UUID("6c1f5a0e-3f0d-4b1e-9a57-0d6f3f2b7c11")
LOST = (
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_GPU_NOT_FOUND,
)
"""Errors after which nothing more can be asked of a GPU."""


class GpuUnusableError(Exception):
    """This GPU cannot be published at all; the message says why."""


def ask(
    who: str, what: str, function: Callable[..., _T], *arguments: Any, level: int = logging.INFO
) -> _T | None:
    """What NVML answers about the driver or a GPU; None if it cannot say.

    ``who`` and ``what`` (the attribute) are for the log, at ``level``: lower for what many GPUs
    lack.

    Raises:
        GpuUnusableError: the GPU is lost, so that nothing more can be asked.
    """
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        if arguments and error.value in LOST:
            raise GpuUnusableError(str(error)) from None
        _LOG.log(level, "%s is published without %s: %s", who, what, error)
    except (UnicodeDecodeError, ValueError) as error:
        _LOG.warning("%s is published without %s: NVML's answer is not text: %s", who, what, error)
    return None


def put(
    attributes: dict[str, Attribute],
    who: str,
    name: str,
    kind: AttributeType,
    value: str | None,
    raw: object,
) -> None:
    """Add an attribute if its value is one that the API takes."""
    if value is None or not 0 < len(value) <= MAX_TEXT:
        _LOG.warning("%s is published without %s: NVML's %r cannot be used", who, name, raw)
    else:
        attributes[name] = Attribute(kind, value)


def version(text: str) -> str | None:
    """A semantic version of what NVML writes with leading zeros or too few parts.

    ``580.95.05`` becomes ``580.95.5``, ``7.5`` becomes ``7.5.0``; else None.
    """
    parts = text.split(".")
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return ".".join(str(int(part)) for part in [*parts, "0", "0"][:3])


def salted(raw: str, salt: str | None) -> str:
    """A UUID that differs from that of another salt; ``raw`` itself for None.

    For simulated GPUs: two nodes that show one profile do not show the same GPU. What comes before
    the first dash (``GPU``, ``MIG``) stays.
    """
    if salt is None:
        return raw
    return f"{raw.partition('-')[0]}-{uuid.uuid5(_SPACE, f'{salt}/{raw}')}"
