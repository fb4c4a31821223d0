"""The reference target: a deterministic model of a Kubernetes cluster for DRA, in this process.

The API server's rules, the controllers, scheduler and kubelet are modelled after Kubernetes; what
devices a claim gets is decided by ``reference_allocator``, what a container gets by
``nvml_driver``. Time is virtual, so nothing waits.
"""

from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget

__all__ = ["ReferenceOptions", "ReferenceTarget"]
