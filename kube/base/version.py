"""Which version of the distribution this is."""

from __future__ import annotations

from functools import cache


@cache
def installed_version() -> str:
    """Return the version in the metadata of ``dra-conformance``; ``0.0.0``: not installed."""
    from importlib import metadata  # takes long, and few ask

    try:
        return metadata.version("dra-conformance")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "0.0.0"
