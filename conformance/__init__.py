"""Conformance and end-to-end tests for Kubernetes Dynamic Resource Allocation (DRA)."""

from importlib import metadata

try:
    __version__ = metadata.version("dra-conformance")
except metadata.PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"
