"""Where programs of this repository keep what outlives a run, and where their data is."""

from __future__ import annotations

from pathlib import Path

from platformdirs import PlatformDirs

_OUTLIVING = PlatformDirs("dra-conformance", appauthor=False)


def state_folder() -> Path:
    """Return clusters that were started and what is known of them, below ``$XDG_STATE_HOME``."""
    return _OUTLIVING.user_state_path


def cache_folder() -> Path:
    """Return what can be built again, below ``$XDG_CACHE_HOME``."""
    return _OUTLIVING.user_cache_path


def data_folder(package: Path, packaged: str, in_checkout: str) -> Path:
    """Return a folder of data: in the wheel, below a package's ``_data``; else in the checkout.

    Args:
        package: the folder of the package that has the data.
        packaged: name of the data's folder below ``_data``.
        in_checkout: its path in the checkout, relative to the checkout's root.
    """
    inside = package / "_data" / packaged
    return inside if inside.is_dir() else package.parent / in_checkout
