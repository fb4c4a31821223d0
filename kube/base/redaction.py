"""Take credentials out of whatever is shown or written down.

Diagnostics are texts that other components wrote (logs, events, objects), and may hold credentials.
Every reporter passes what it writes through :func:`redact` or :func:`redact_json`, and what quotes
a log or a server through :func:`redact_log`. All of them are idempotent, so that passing twice does
no harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

REDACTED = "<redacted>"

# Whole names, with anything before: `token`, `id-token`, `bearerToken`, `client-key-data`.
# Not `tokenExpirationSeconds`, not `secretName`: these are no credentials.
_SENSITIVE = (
    r"(?:token|passw(?:or)?d|secret|api[-_]?key|private[-_]?key|client-key-data"
    r"|client-certificate-data|aws_secret_access_key)"
)
_NAME = re.compile(_SENSITIVE, re.IGNORECASE)
_KEY_NAME = re.compile(rf".*{_SENSITIVE}", re.IGNORECASE | re.DOTALL)

# The look-behind and the bound keep the search linear in long words.
_KEY = rf"[\w.-]{{0,64}}?{_SENSITIVE}(?![\w-])"
_WORD = rf"(?<![\w.-]){_KEY}"

# Every pattern below contains one of these; most strings contain none.
_TRIGGERS = ("token", "passw", "secret", "key", "certificate", "bearer", "basic", "eyj", "://")
_TRIGGER = re.compile("|".join(_TRIGGERS), re.IGNORECASE)
_PEM = re.compile(
    r"-----BEGIN (?P<what>[A-Z0-9 ]{0,40}PRIVATE KEY)-----.*?(?:-----END (?P=what)-----|\Z)",
    re.DOTALL,
)
_JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*")
_AUTHORIZATION = re.compile(r"(?i)\b(?P<scheme>bearer|basic)(?P<gap>[ \t]+)[A-Za-z0-9._~+/=-]{8,}")
_USER_INFO = re.compile(
    r"(?P<scheme>\b[a-z][a-z0-9+.-]{1,15}://)[^\s/@:'\"<>]{1,256}:[^\s/@]{1,256}@"
)
_QUOTED = re.compile(
    # JSON and Python's repr: key and value are in quotes.
    rf"(?is)(?P<key>(?P<quote>[\"']){_WORD}(?P=quote)\s{{0,8}}:\s{{0,8}})"
    r"(?P<open>[\"'])(?:\\.|(?!(?P=open))[^\\])*(?P<close>(?P=open)|\\?\Z)"
)
_ESCAPED = re.compile(
    # JSON inside a JSON string.
    rf"(?is)(?P<key>\\\"{_WORD}\\\"\s{{0,8}}:\s{{0,8}})"
    r"(?P<open>\\\")(?:(?!\\\").)*(?P<close>\\\"|\Z)"
)
_LINE = re.compile(
    # YAML and NAME=value at the start of a line; a block scalar takes its indented lines along.
    rf"(?im)^(?P<indent>[ \t]*)(?P<key>(?:- )?{_WORD}[ \t]*[:=][ \t]*)"
    r"(?P<value>[|>][-+0-9]*[ \t]*(?:\n(?P=indent)[ \t]+.*)+|[^\s{\[].*)$"
)
_INLINE = re.compile(
    # --token=x, ?token=x, {token: x}: the name follows a mark that no prose has before a word.
    # token=x: no prose has a mark like this inside a word; == is a comparison.
    rf"(?i)(?P<key>(?:--|[?&{{,][ \t]*){_KEY}(?:=|[ \t]+(?=[^-\s])|:[ \t]*)|{_WORD}=(?!=))"
    r"(?P<value>[^\s,}&\"'{\[]+)"
)

_ANYWHERE = re.compile(
    # token: x in the middle of a line, with or without quotes. Prose has this as well.
    rf"(?i)(?P<key>{_WORD}\"?\s{{0,8}}[:=]\s{{0,8}}\"?)(?!{REDACTED})[^\s\"',;]{{4,}}"
)
_NAMED_VALUE = re.compile(rf"(?i){_SENSITIVE}|credential")

_SHORT = 256  # Characters. A report of 300 scenarios has 670 000 strings, of which 7 000 differ.


def redact(text: str) -> str:
    """Return the text without bearer tokens, JWTs, private keys and the values of sensitive keys.

    Characters that are no Unicode text (lone surrogates) become ``?``, so that the result can
    always be written as UTF-8.
    """
    return _redact_short(text) if len(text) <= _SHORT else _redact(text)


@lru_cache(maxsize=1 << 14)
def _redact_short(text: str) -> str:
    return _redact(text)


def _redact(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")
    if not _has_trigger(text):
        return text
    text = _PEM.sub(REDACTED, text)
    if "eyJ" in text:
        text = _JWT.sub(REDACTED, text)
    text = _AUTHORIZATION.sub(rf"\g<scheme>\g<gap>{REDACTED}", text)
    if "://" in text:
        text = _USER_INFO.sub(rf"\g<scheme>{REDACTED}@", text)
    if not _NAME.search(text):
        return text
    text = _QUOTED.sub(rf"\g<key>\g<open>{REDACTED}\g<close>", text)
    text = _ESCAPED.sub(rf"\g<key>\g<open>{REDACTED}\g<close>", text)
    text = _LINE.sub(rf"\g<indent>\g<key>{REDACTED}", text)
    return _INLINE.sub(rf"\g<key>{REDACTED}", text)


def _has_trigger(text: str) -> bool:
    if not text.isascii():
        return _TRIGGER.search(text) is not None
    lowered = text.lower()  # ten times as fast as the pattern, in texts of many megabytes
    return any(word in lowered for word in _TRIGGERS)


def redact_json(value: Any) -> Any:
    """Return a copy of a JSON value, :func:`redact` applied to every string in it.

    A string under a sensitive key (``token``, ``password``, ...) is replaced as a whole.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {
            redact(str(key)): (
                REDACTED
                if isinstance(item, str) and item and _KEY_NAME.fullmatch(str(key))
                else redact_json(item)
            )
            for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [redact_json(item) for item in value]
    return value


_INDENTED = 1 << 20
"""Characters of JSON that are indented; nested deeply, they would come to a hundred times more."""


def redacted_text(value: Any, indent: int) -> str:
    """A redacted JSON value as text with sorted keys, indented where it is not too long for it."""
    redacted = redact_json(value)
    text = json.dumps(redacted, sort_keys=True)
    return text if len(text) > _INDENTED else json.dumps(redacted, indent=indent, sort_keys=True)


def redact_log(text: str) -> str:
    """:func:`redact`, and everything after ``token:`` and the like, wherever in a line it stands.

    For what another program wrote: a log, the answer of a server. In the suite's own sentences this
    would hit prose.
    """
    return _ANYWHERE.sub(rf"\g<key>{REDACTED}", redact(text))


def redact_object(value: Any) -> Any:
    """Return a Kubernetes object for people: no managed fields, no applied copy, no credentials.

    Literal values of environment variables whose names speak of credentials are left out too.
    """
    if isinstance(value, Mapping):
        if "value" in value and _NAMED_VALUE.search(str(value.get("name", ""))):
            value = {**value, "value": REDACTED}
        return {
            name: redact_object(item)
            for name, item in value.items()
            if name not in ("managedFields", "kubectl.kubernetes.io/last-applied-configuration")
        }
    if isinstance(value, list):
        return [redact_object(item) for item in value]
    return redact_log(value) if isinstance(value, str) else value
