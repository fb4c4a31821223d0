"""Conformance and end-to-end tests for Kubernetes Dynamic Resource Allocation (DRA)."""


def __getattr__(name: str) -> str:
    """``__version__``, read from the package's metadata when somebody asks: that takes long."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    try:
        version = metadata.version("dra-conformance")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        version = "0.0.0"
    globals()["__version__"] = version
    return version
