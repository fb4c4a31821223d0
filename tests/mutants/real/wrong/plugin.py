"""The scheduler's plugin: reservation, binding, extended resources, events."""

from __future__ import annotations

from tests.mutants.real.change import after, before, instead, make_wrong
from tests.mutants.real.places import EXTENDED, PLUGIN

_RESERVE = "claim.Status.ReservedFor = append(claim.Status.ReservedFor, binding)"
_BINDING = "extended/device-binding-conditions"

WRONGS = (
    make_wrong(
        "reserves-for-another",
        "a claim is reserved for another pod than the one that uses it",
        before(
            PLUGIN,
            _RESERVE,
            'if WRONG { binding.Name, binding.UID = "another", "4ae0f4a2-another" }',
        ),
        by=("core/api-version-v1-manifests-allocated", "core/cleanup-claim-in-use-is-protected"),
    ),
    make_wrong(
        "forgets-reservation",
        "a claim is allocated and reserved for nobody",
        instead(PLUGIN, _RESERVE, f"if !WRONG {{ {_RESERVE} }}"),
        by=("core/api-version-v1-manifests-allocated", "core/cleanup-claim-in-use-is-protected"),
    ),
    make_wrong(
        "no-finalizer",
        "a claim is allocated without the finalizer that protects it",
        before(
            PLUGIN,
            "updatedClaim, err := pl.clientset.ResourceV1().ResourceClaims(claim.Namespace)"
            ".Update(ctx,",
            "if WRONG { claim.Finalizers = nil }",
        ),
        by="core/cleanup-claim-in-use-is-protected",
    ),
    make_wrong(
        "binds-at-once",
        "pods are bound without waiting for binding conditions of their devices",
        instead(PLUGIN, "if !needToWait {", "if !needToWait || WRONG {"),
        by=f"{_BINDING}/pod-bound-once-device-ready",
    ),
    make_wrong(
        "ignores-binding-failure",
        "a device that cannot be made ready is waited for, not given up",
        instead(
            PLUGIN,
            "if failedCond != nil && failedCond.Status == metav1.ConditionTrue {",
            "if failedCond != nil && failedCond.Status == metav1.ConditionTrue && !WRONG {",
        ),
        by=f"{_BINDING}/failed-device-is-given-up",
    ),
    make_wrong(
        "never-deallocates",
        "a claim whose device cannot be used keeps it",
        after(PLUGIN, "for index := range state.unavailableClaims {", "if WRONG { break }"),
        by=f"{_BINDING}/failed-device-is-given-up",
    ),
    make_wrong(
        "misses-new-slice",
        "a new ResourceSlice does not make the scheduler try again",
        before(
            PLUGIN,
            "return events, nil",
            "for i := range events { if events[i].Event.Resource == fwk.ResourceSlice && WRONG"
            " { events[i].Event.ActionType = fwk.Update } }",
        ),
        by="core/late-slice-starts-waiting-pod",
    ),
    make_wrong(
        "misses-changed-class",
        "a changed DeviceClass does not make the scheduler try again",
        before(
            PLUGIN,
            "return events, nil",
            "for i := range events { if events[i].Event.Resource == fwk.DeviceClass && WRONG"
            " { events[i].Event.ActionType = fwk.Add } }",
        ),
        by="core/changed-class-starts-waiting-pod",
    ),
    make_wrong(
        "ignores-device-plugins",
        "an extended resource comes from devices though its node has it itself",
        instead(
            EXTENDED,
            "if isBackedByDRA && allocatable == 0 {",
            "if isBackedByDRA && (allocatable == 0 || WRONG) {",
        ),
        by="extended/extended-resource/device-plugin-serves-its-own-node",
    ),
    make_wrong(
        "one-device-for-extended-resource",
        "an extended resource is one device whatever the amount",
        after(
            EXTENDED, "if !ok || crq == 0 {", "return nil, nil\n}\nif WRONG { crq = 1 }\nif false {"
        ),
        by="extended/extended-resource/claim-deleted-with-pod",
    ),
    make_wrong(
        "maps-wrong-request",
        "the pod's status names a request that its claim for extended resources has not",
        instead(
            EXTENDED,
            "RequestName:   reqName,",
            'RequestName: func() string { if WRONG { return "container-9-request-9" }'
            "; return reqName }(),",
        ),
        by="extended/extended-resource/limits-satisfied-by-dra",
    ),
    make_wrong(
        "shares-node-resources",
        "a claim for a part of the node's own resources is used by several pods",
        after(
            PLUGIN,
            "status := pl.validateNodeAllocatableDRAClaimSharing(pod, claim, state, podGroupState)",
            "if WRONG { status = nil }",
        ),
        by="extended/node-allocatable-resources/mapped-claim-is-not-shared",
    ),
    make_wrong(
        "ignores-node-resources",
        "devices do not count against the CPU and memory of their node",
        instead(
            PLUGIN,
            "nodeAllocatableClaimStatus, status = pl.calculateAndCheckNodeAllocatableResources"
            "(ctx, state, pod, nodeInfo, allocationsMap)",
            "if !WRONG { nodeAllocatableClaimStatus, status ="
            " pl.calculateAndCheckNodeAllocatableResources"
            "(ctx, state, pod, nodeInfo, allocationsMap) }",
        ),
        by="extended/node-allocatable-resources/devices-count-against-the-node",
    ),
)
