"""Conformance and end-to-end tests for Kubernetes Dynamic Resource Allocation (DRA)."""


def __getattr__(name: str) -> str:
    """``__version__``, read from the package's metadata when somebody asks: that takes long."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kube.base.version import installed_version

    return installed_version()
