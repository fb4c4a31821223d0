"""The controllers that DRA depends on, each one a function from the store's state to changes.

They run in turn until nothing changes any more; none of them waits or keeps state that could not
be lost.
"""

from __future__ import annotations

from typing import Protocol


class Controller(Protocol):
    """A part of the control plane, or a kubelet."""

    watches: frozenset[str]
    """Kinds whose changes may give it work; it also runs whenever time has passed."""

    def sync(self) -> None:
        """Bring the cluster closer to what is wanted. Called again until nothing changes."""
        ...
