"""Where the data is of which clusters are built: in the checkout, else inside the wheel.

The wheel carries the Go modules of the local cluster and the configurations of kind under
``localkube/_data``.
"""

from __future__ import annotations

from pathlib import Path

from kube.base.folders import data_folder

_PACKAGE = Path(__file__).resolve().parent


def local_cluster_modules_dir() -> Path:
    """Return the directory with one Go module for each part of the local cluster."""
    return data_folder(_PACKAGE, "local-cluster", "ci/local-cluster")


def kind_dir() -> Path:
    """Return the directory with the Go module and the configurations of kind."""
    return data_folder(_PACKAGE, "kind", "ci/kind")
