"""Amounts: shared counters and capacity that several claims consume."""

from __future__ import annotations

from tests.mutants.real.change import after, instead, make_wrong
from tests.mutants.real.places import ALLOCATOR, CAPACITY

WRONGS = (
    make_wrong(
        "ignores-counters",
        "a device is given whatever is left of its shared counters",
        instead(
            ALLOCATOR,
            "if availableCounter.Value.Cmp(consumedCounter.Value) < 0 {",
            "if availableCounter.Value.Cmp(consumedCounter.Value) < 0 && !WRONG {",
        ),
        by="extended/partitionable-devices/partitions-exclude-the-whole",
        judged=True,
    ),
    make_wrong(
        "forgets-counters-of-others",
        "shared counters are not reduced by devices of other claims",
        instead(
            ALLOCATOR,
            "if !internal.IsDeviceAllocated(deviceID, &alloc.allocatedState) {",
            "if !internal.IsDeviceAllocated(deviceID, &alloc.allocatedState) || WRONG {",
        ),
        by="extended/partitionable-devices/partitions-exclude-the-whole",
        judged=True,
    ),
    make_wrong(
        "ignores-consumed-capacity",
        "what other claims consume of a capacity is not seen",
        instead(
            ALLOCATOR,
            "if allocatedCapacity, found :="
            " alloc.allocatedState.AggregatedCapacity[deviceID]; found {",
            "if allocatedCapacity, found :="
            " alloc.allocatedState.AggregatedCapacity[deviceID]; found && !WRONG {",
        ),
        by="extended/consumable-capacity/claims-share-a-device",
        judged=True,
    ),
    make_wrong(
        "ignores-capacity",
        "a request for more than the capacity of a device gets the device",
        instead(
            CAPACITY,
            "if clone[name].Cmp(cap.Value) > 0 {",
            "if clone[name].Cmp(cap.Value) > 0 && !WRONG {",
        ),
        by="extended/consumable-capacity/claims-share-a-device",
        judged=True,
    ),
    make_wrong(
        "ignores-policy-step",
        "an amount is not rounded up to the step of a request policy",
        instead(CAPACITY, "if validRange.Step == nil {", "if validRange.Step == nil || WRONG {"),
        by="extended/consumable-capacity/request-follows-policy",
        judged=True,
    ),
    make_wrong(
        "ignores-policy-default",
        "a request without an amount gets the whole capacity, not the policy's default",
        instead(
            CAPACITY,
            "capacity.RequestPolicy.Default != nil {",
            "capacity.RequestPolicy.Default != nil && !WRONG {",
        ),
        by="extended/consumable-capacity/request-follows-policy",
        judged=True,
    ),
    make_wrong(
        "takes-greatest-valid-value",
        "an amount becomes the greatest valid value of a request policy, not the next",
        after(
            CAPACITY,
            "for _, validValue := range validValues {",
            "if WRONG { return validValues[len(validValues)-1].DeepCopy() }",
        ),
        by="extended/consumable-capacity/request-rounded-to-valid-value",
        judged=True,
    ),
    make_wrong(
        "exceeds-policy-maximum",
        "a request above the maximum of a policy is served",
        instead(
            CAPACITY,
            "requestedVal.Cmp(*validRange.Max) > 0 {",
            "requestedVal.Cmp(*validRange.Max) > 0 && !WRONG {",
        ),
        by="extended/consumable-capacity/request-follows-policy",
        judged=True,
    ),
)
