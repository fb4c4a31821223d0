"""The Go files that are changed. The allocator is the one that 1.37 uses with its default gates."""

from __future__ import annotations

_ALLOCATORS = "dra/structured/internal/incubating"
ALLOCATOR = f"{_ALLOCATORS}/allocator_incubating.go"
CAPACITY = f"{_ALLOCATORS}/consumable_capacity.go"
CONSTRAINT = f"{_ALLOCATORS}/constraint.go"
POOLS = f"{_ALLOCATORS}/pools_incubating.go"
TOLERATION = "dra/resourceclaim/devicetoleration.go"
TAINT_RULES = "dra/resourceslice/tracker/tracker.go"

_PLUGIN = "kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
PLUGIN = f"{_PLUGIN}/dynamicresources.go"
IN_USE = f"{_PLUGIN}/allocateddevices.go"
EXTENDED = f"{_PLUGIN}/extendeddynamicresources.go"
