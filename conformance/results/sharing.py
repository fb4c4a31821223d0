"""Equal parts of a result file's snapshots are kept once.

Each decision of a run has a snapshot of the whole cluster, and from one to the next only a few of
its objects differ. Of a cluster of 50 nodes with 8 GPUs each a result file has 270 MB, nearly all
of them repetitions. So what is counted is not what the file has, but what is kept of it.
"""

from __future__ import annotations

import marshal
import sys
from hashlib import blake2b
from typing import Any, Final

from kube.base.strictjson import BoundsError

SNAPSHOTS: Final = ("decisions", "undecided")
"""The fields of a line in which parts are shared. What the events of a run copy is elsewhere: these
have a mapping for each decision, and the values in it as they are."""

MAX_KEPT: Final = 256 << 20
"""Bytes of memory that all that is kept takes; that of the shipped scenarios takes 10 MB."""

_SMALLEST = 256  # Bytes. The table's entry takes as much, so less is not worth one.
_ENTRY = 256  # Bytes that an entry of the table takes.
_LEVELS = 8  # From a snapshot down to the fields of a device; each costs another digest.


class Sharing:
    """Keeps one of equal parts, over all lines that are given to it; nobody may change them."""

    def __init__(self, most: int = MAX_KEPT) -> None:
        self._most = most
        self._kept = 0
        self._parts: dict[bytes, Any] = {}

    def share(self, line: dict[str, Any]) -> None:
        """Replace each part of a line's snapshots by an equal one that is kept already.

        Raises BoundsError: what is kept, of this line and those before it, takes too much memory.
        """
        for name, value in line.items():
            if name in SNAPSHOTS and isinstance(value, list):
                self._share_in(value)
            else:
                self._count(value)

    def _share_in(self, decisions: list[Any]) -> None:
        self._count(decisions, within=False)
        for decision in decisions:
            if not isinstance(decision, dict):
                self._count(decision)
                continue
            self._count(decision, within=False)
            for name, part in decision.items():
                decision[name] = self._one_of(part, _LEVELS)

    def _one_of(self, part: Any, levels: int) -> Any:
        if not isinstance(part, dict | list):
            self._count(part)
            return part
        # Unlike JSON it distinguishes true from 1 and 1 from 1.0 at the speed of a copy.
        packed = marshal.dumps(part, 0)
        if len(packed) < _SMALLEST or levels == 0:
            self._count(part)
            return part
        digest = blake2b(packed, digest_size=32).digest()
        del packed
        if digest in self._parts:
            return self._parts[digest]
        if isinstance(part, dict):
            for name, value in part.items():
                part[name] = self._one_of(value, levels - 1)
        else:
            part[:] = [self._one_of(value, levels - 1) for value in part]
        self._count(part, within=False)
        self._kept += _ENTRY
        self._parts[digest] = part
        return part

    def _count(self, value: Any, *, within: bool = True) -> None:
        """Add what a value takes, and all ``within`` it; a key counts wherever it is used."""
        if value is None or value is True or value is False:
            return
        self._kept += sys.getsizeof(value)
        if isinstance(value, dict):
            self._kept += sum(map(sys.getsizeof, value))
        if self._kept > self._most:
            raise BoundsError(
                f"what differs in it takes more than {self._most >> 20} MiB of memory"
            )
        if within and isinstance(value, dict | list):
            for part in value.values() if isinstance(value, dict) else value:
                self._count(part)
