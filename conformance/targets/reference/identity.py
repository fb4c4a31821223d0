"""Uids and generated names: looking random, as the API server's do, and the same in every run.

Each depends only on the seed, the object's kind, namespace and name, and how often that name was
used before, so that scenarios that run side by side cannot change each other's.
"""

from __future__ import annotations

import hashlib
import uuid

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What names are generated from (k8s.io/apimachinery/pkg/util/rand): no vowels, no words."""

_SUFFIX_LENGTH = 5
_MAX_BASE = 63 - _SUFFIX_LENGTH


class Identity:
    """Source of uids and name suffixes."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._uses: dict[tuple[str, ...], int] = {}

    def uid(self, kind: str, namespace: str, name: str) -> str:
        """A version 4 uid for a new object; another one for each incarnation of a name."""
        return str(uuid.UUID(bytes=self._digest("uid", kind, namespace, name)[:16], version=4))

    def generate_name(self, kind: str, namespace: str, base: str) -> str:
        """``generateName`` plus five characters, cut to 63 characters as the API server does."""
        digest = self._digest("name", kind, namespace, base)
        suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])
        return base[:_MAX_BASE] + suffix

    def _digest(self, *key: str) -> bytes:
        count = self._uses.get(key, 0)
        self._uses[key] = count + 1
        text = "\0".join((str(self._seed), *key, str(count)))
        return hashlib.sha256(text.encode()).digest()
