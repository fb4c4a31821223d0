"""A Kubernetes in this process, with Dynamic Resource Allocation: no cluster, no waiting.

API server, scheduler, controllers and kubelets are modelled after Kubernetes 1.34 to 1.37; what
devices a claim gets is decided by `reference_allocator`. Time is virtual, so nothing waits, and two
runs are the same. A DRA driver is given as a `NodeDriver`; containers run no process.

`World` is such a cluster, `RealTime` and `Front` serve one to kubectl and any client, as
``python -m kubesim serve`` does. README.md has an example.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesim.front.server import Front
    from kubesim.front.serving import RealTime
    from kubesim.nodes.containers import ContainerRuntime
    from kubesim.nodes.driver import DriverError, NodeDriver, PreparedDevice
    from kubesim.nodes.node import Node
    from kubesim.world import World

__all__ = [
    "ContainerRuntime",
    "DriverError",
    "Front",
    "Node",
    "NodeDriver",
    "PreparedDevice",
    "RealTime",
    "World",
]

_HOMES = {
    "ContainerRuntime": "kubesim.nodes.containers",
    "DriverError": "kubesim.nodes.driver",
    "Front": "kubesim.front.server",
    "Node": "kubesim.nodes.node",
    "NodeDriver": "kubesim.nodes.driver",
    "PreparedDevice": "kubesim.nodes.driver",
    "RealTime": "kubesim.front.serving",
    "World": "kubesim.world",
}


def __getattr__(name: str) -> Any:
    """What `__all__` names, imported when somebody asks: validation alone needs no web server."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
