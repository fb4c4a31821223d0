"""Digests of documents, and of sets of scenarios: ``sha256:`` and 64 hexadecimal digits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Protocol


class Identified(Protocol):
    """Something with a public id and the digest of its document."""

    @property
    def id(self) -> str: ...

    @property
    def digest(self) -> str: ...


def document_digest(document: Any) -> str:
    """The digest of a JSON value: its keys sorted, without white space, non-ASCII escaped."""
    return text_digest(json.dumps(document, sort_keys=True, separators=(",", ":")))


def set_digest(items: Iterable[Identified]) -> str:
    """The digest of the sorted lines ``<id> <digest>`` of a set of scenarios."""
    return text_digest("".join(sorted(f"{item.id} {item.digest}\n" for item in items)))


def text_digest(text: str) -> str:
    """The digest of a text; what UTF-8 cannot hold counts as ``?``."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
