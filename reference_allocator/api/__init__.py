"""The API objects that an allocation reads, as frozen values.

Only what the allocator decides on is read; `raw` keeps the object as it came, for CEL and for
results, which copy parts of it. Unknown fields are ignored, as the Go types ignore them: a newer
API server may send more. Every error names its path (`reference_allocator.api.reading.InputError`).

Source of the shapes: k8s.io/api/resource/v1 (types.go), k8s.io/api/core/v1 for nodes.
"""

from reference_allocator.api.claims import (
    AllocatedDevice,
    CapacityRequests,
    ClaimConfig,
    Constraint,
    DerivedAttribute,
    DeviceClass,
    DeviceRequest,
    RequestSpec,
    ResourceClaim,
    Toleration,
)
from reference_allocator.api.nodes import Node, NodeSelector, NodeSelectorTerm, Requirement
from reference_allocator.api.slices import (
    Attribute,
    CounterConsumption,
    Device,
    DeviceCapacity,
    DeviceId,
    PoolId,
    RequestPolicy,
    ResourceSlice,
    Taint,
    ValidRange,
)

__all__ = [
    "AllocatedDevice",
    "Attribute",
    "CapacityRequests",
    "ClaimConfig",
    "Constraint",
    "CounterConsumption",
    "DerivedAttribute",
    "Device",
    "DeviceCapacity",
    "DeviceClass",
    "DeviceId",
    "DeviceRequest",
    "Node",
    "NodeSelector",
    "NodeSelectorTerm",
    "PoolId",
    "RequestPolicy",
    "RequestSpec",
    "Requirement",
    "ResourceClaim",
    "ResourceSlice",
    "Taint",
    "Toleration",
    "ValidRange",
]
