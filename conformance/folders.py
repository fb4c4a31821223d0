"""Where this program keeps what outlives it: its state and its cache (XDG base directories)."""

from __future__ import annotations

from pathlib import Path

from platformdirs import PlatformDirs

_DIRS = PlatformDirs("dra-conformance", appauthor=False)


def state_folder() -> Path:
    """Clusters that were started and what is known of them, below ``$XDG_STATE_HOME``."""
    return _DIRS.user_state_path


def cache_folder() -> Path:
    """What can be built again, below ``$XDG_CACHE_HOME``."""
    return _DIRS.user_cache_path
