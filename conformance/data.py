"""Where the suite's data files are: beside the packages in a checkout, inside the wheel otherwise.

The wheel carries ``scenarios/`` and the parts of ``ci/`` that a user needs (Go modules of the local
cluster, kind configurations) under ``conformance/_data``.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED = _PACKAGE / "_data"
_CHECKOUT = _PACKAGE.parent


def scenarios_dir() -> Path:
    """The directory of the shipped scenarios, driver profiles and registries."""
    return _find("scenarios", "scenarios")


def local_cluster_modules_dir() -> Path:
    """The directory with one Go module for each part of the local cluster."""
    return _find("local-cluster", "ci/local-cluster")


def kind_dir() -> Path:
    """The directory with the kind configurations."""
    return _find("kind", "ci/kind")


def _find(packaged: str, in_checkout: str) -> Path:
    inside = _PACKAGED / packaged
    return inside if inside.is_dir() else _CHECKOUT / in_checkout
