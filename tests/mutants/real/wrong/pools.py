"""ResourceSlices to pools: generations, completeness, and the nodes that a device serves."""

from __future__ import annotations

from tests.mutants.real.change import after, before, instead, make_wrong
from tests.mutants.real.places import ALLOCATOR, POOLS

WRONGS = (
    make_wrong(
        "uses-old-generation",
        "of two generations of a pool the older one is used",
        before(
            POOLS,
            "if slice.Spec.Pool.Generation < slicesForPool[0].Spec.Pool.Generation {",
            "if known := slicesForPool[0].Spec.Pool.Generation;"
            " slice.Spec.Pool.Generation != known && WRONG {\n"
            "if slice.Spec.Pool.Generation < known"
            " { pools[id] = []*draapi.ResourceSlice{&slice} }\n"
            "return nil\n}",
        ),
        by="core/old-generation-is-not-used",
        judged=True,
    ),
    make_wrong(
        "uses-incomplete-pool",
        "devices of a pool are used before all of its slices are there",
        before(POOLS, "if !isComplete {", "if !isComplete && WRONG { isComplete = true }"),
        by="core/incomplete-pool-is-not-used",
        judged=True,
    ),
    make_wrong(
        "ignores-node-selector-of-slice",
        "devices of a slice with a nodeSelector are used on every node",
        instead(
            POOLS, "return selector.Match(node), nil", "return selector.Match(node) || WRONG, nil"
        ),
        by="core/node-selector-slice-serves-matching-nodes",
        judged=True,
    ),
    make_wrong(
        "ignores-node-of-slice",
        "devices of a slice with a nodeName are used on every node",
        instead(
            POOLS,
            "node != nil && node.Name == nodeNameToMatch, nil",
            "node != nil && (node.Name == nodeNameToMatch || WRONG), nil",
        ),
        after(
            ALLOCATOR,
            "slicesForNode := slices.Concat(alloc.slicesOnNode[node.Name], alloc.slicesShared)",
            "if WRONG { slicesForNode = alloc.allSlices }",
        ),
        by="core/allocation-bound-to-device-node",
        judged=True,
    ),
    make_wrong(
        "ignores-node-of-device",
        "devices that name their nodes one by one are used on every node",
        before(
            ALLOCATOR,
            "matches, err := NodeMatches(alloc.node, ptr.Deref(device.NodeName,",
            "if WRONG { alloc.deviceMatchesRequest[matchKey] = true; return true, nil }",
        ),
        by="extended/partitionable-devices/devices-of-one-slice-on-several-nodes",
        judged=True,
    ),
    make_wrong(
        "only-first-slice",
        "only the first slice of a pool is looked at",
        after(
            POOLS,
            "sortSlicesByName(slices)",
            "if len(slices) > 1 && len(slices[0].Spec.SharedCounters) == 0 && WRONG"
            " { slices = slices[:1] }",
        ),
        by="core/pool-of-two-slices",
        judged=True,
    ),
)
