"""Keeps credentials out of whatever is written into reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from conformance.kubeapi.redaction import HIDDEN, redact

__all__ = ["HIDDEN", "redact", "without_noise"]

_NAMED_VALUE = re.compile(r"(?i)token|password|passwd|secret|credential|api[_-]?key")


def without_noise(value: Any) -> Any:
    """A Kubernetes object for people: no managed fields, no applied copy, no values of secrets.

    Literal values of environment variables whose names speak of credentials are left out too.
    """
    if isinstance(value, Mapping):
        if "value" in value and _NAMED_VALUE.search(str(value.get("name", ""))):
            value = {**value, "value": HIDDEN}
        return {
            name: without_noise(part)
            for name, part in value.items()
            if name not in ("managedFields", "kubectl.kubernetes.io/last-applied-configuration")
        }
    if isinstance(value, list):
        return [without_noise(part) for part in value]
    return redact(value) if isinstance(value, str) else value
