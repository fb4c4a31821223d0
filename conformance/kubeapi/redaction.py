"""Keeps credentials and control characters out of whatever is shown or written down."""

from __future__ import annotations

import re

HIDDEN = "[left out]"

_PATTERNS = (
    # A JSON web token, as service accounts have, wherever it stands.
    re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),
    re.compile(r"(?i)(?<=bearer )[\w.~+/=-]{8,}"),
    re.compile(
        r"(?i)(?<![\w-])[\w-]*(?:token|password|passwd|secret|api[_-]?key|client-key-data)"
        r"\"?\s*[:=]\s*\"?(?!\[left out\])(?P<value>[^\s\"',;]{4,})"
    ),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
)


def redact(text: str) -> str:
    """The text without anything that looks like a credential."""
    for pattern in _PATTERNS:
        text = pattern.sub(_hide, text)
    return text


def one_line(text: object, longest: int = 300) -> str:
    """What somebody else said, as one line that a terminal can show: nothing but printable."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return shown if len(shown) <= longest else shown[:longest] + "..."


def _hide(match: re.Match[str]) -> str:
    if "value" in match.re.groupindex:
        start = match.start("value") - match.start()
        return match[0][:start] + HIDDEN
    return HIDDEN
