"""Keeps credentials out of whatever is written into reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "[left out]"

_PATTERNS = (
    # A JSON web token, as service accounts have, wherever it stands.
    re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    re.compile(r"(?i)(?<=bearer )[\w.~+/=-]{8,}"),
    re.compile(
        r"(?i)(?<![\w-])[\w-]*(?:token|password|passwd|secret|api[_-]?key|client-key-data)"
        r"\"?\s*[:=]\s*\"?(?P<value>[^\s\"',;]{4,})"
    ),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
)
_NAMED_VALUE = re.compile(r"(?i)token|password|passwd|secret|credential|api[_-]?key")


def redact(text: str) -> str:
    """The text without anything that looks like a credential."""
    for pattern in _PATTERNS:
        text = pattern.sub(_hide, text)
    return text


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


def _hide(match: re.Match[str]) -> str:
    if "value" in match.re.groupindex:
        start = match.start("value") - match.start()
        return match[0][:start] + HIDDEN
    return HIDDEN
