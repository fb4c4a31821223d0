"""Where the suite's files are: its data, and what it keeps of the user's.

Data is beside the packages in a checkout, inside the wheel otherwise: the wheel carries
``scenarios/`` and the parts of ``ci/`` that a user needs (Go modules of the local cluster, kind
configurations) under ``conformance/_data``. What outlives a run is in the XDG base directories.
"""

from __future__ import annotations

from pathlib import Path

from platformdirs import PlatformDirs

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED = _PACKAGE / "_data"
_CHECKOUT = _PACKAGE.parent
_OUTLIVING = PlatformDirs("dra-conformance", appauthor=False)


def scenarios_dir() -> Path:
    """The directory of the shipped scenarios, driver profiles and registries."""
    return _find("scenarios", "scenarios")


def local_cluster_modules_dir() -> Path:
    """The directory with one Go module for each part of the local cluster."""
    return _find("local-cluster", "ci/local-cluster")


def kind_dir() -> Path:
    return _find("kind", "ci/kind")


def state_folder() -> Path:
    """Clusters that were started and what is known of them, below ``$XDG_STATE_HOME``."""
    return _OUTLIVING.user_state_path


def cache_folder() -> Path:
    """What can be built again, below ``$XDG_CACHE_HOME``."""
    return _OUTLIVING.user_cache_path


def _find(packaged: str, in_checkout: str) -> Path:
    inside = _PACKAGED / packaged
    return inside if inside.is_dir() else _CHECKOUT / in_checkout
