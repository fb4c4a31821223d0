"""The rules: what is a correct allocation of devices to ResourceClaims.

This package answers as the structured allocator of Kubernetes (k8s.io/dynamic-resource-allocation,
package structured) answers, without Kubernetes: it reads plain v1 API objects and returns
AllocationResults. It imports nothing but the standard library and its own CEL engine, so that
others can use it alone, and does no I/O but for the tables of that engine's parser, which it keeps
in the user's cache.

Where to start: `reference_allocator.allocator.Allocator` (the decision),
`reference_allocator.snapshot.Snapshot` (all that a decision depends on, as a file),
`reference_allocator.checks.check` (is this allocation right?),
`reference_allocator.explain.explain` (why is there none?).
"""
