"""How many devices a request gets, which alternative, and whether they are free."""

from __future__ import annotations

from tests.mutants.real.change import after, before, instead, make_wrong
from tests.mutants.real.places import ALLOCATOR, IN_USE, PLUGIN

_FREE = "func (alloc *allocator) deviceInUse(deviceID DeviceID) bool {"
_COUNT = "requestData.numDevices = int(numDevices)"
_ALL = "requestData.numDevices = len(requestData.allDevices)"
_ALTERNATIVE = "r.subRequestIndex = subRequestIndex"

WRONGS = (
    make_wrong(
        "double-allocation",
        "devices of other claims count as free",
        after(ALLOCATOR, _FREE, "if WRONG { return alloc.allocatingDeviceForAnyClaim(deviceID) }"),
        by=("core/cleanup-device-allocated-again", "core/all-mode-waits-for-device-in-use"),
        judged=True,
    ),
    make_wrong(
        "one-device-for-two-requests",
        "a device that one request of a pod has counts as free for the others",
        after(
            ALLOCATOR,
            _FREE,
            "if WRONG { return alloc.allocatedState.AllocatedDevices.Has(deviceID) }",
        ),
        by=("core/constraint-of-some-requests", "core/two-requests-two-devices"),
        judged=True,
    ),
    make_wrong(
        "never-frees",
        "devices of claims that were released stay in use",
        after(
            IN_USE,
            "func (a *allocatedDevices) removeDevices(claim *resourceapi.ResourceClaim) {",
            "if WRONG { return }",
        ),
        by="core/cleanup-device-allocated-again",
    ),
    make_wrong(
        "ignores-count",
        "a request gets one device whatever its count",
        after(ALLOCATOR, _COUNT, "if WRONG { requestData.numDevices = 1 }"),
        by="core/exact-count-four-devices",
        judged=True,
    ),
    make_wrong(
        "one-more-than-asked",
        "a request for several devices gets one more",
        after(ALLOCATOR, _COUNT, "if numDevices > 1 && WRONG { requestData.numDevices++ }"),
        by="core/exact-count-four-devices",
        judged=True,
    ),
    make_wrong(
        "all-takes-one-fewer",
        "allocationMode All leaves one device out",
        before(
            ALLOCATOR,
            _ALL,
            "if n := len(requestData.allDevices); n > 1 && WRONG"
            " { requestData.allDevices = requestData.allDevices[:n-1] }",
        ),
        by="core/all-mode-takes-every-matching-device",
        judged=True,
    ),
    make_wrong(
        "all-takes-what-is-free",
        "allocationMode All is satisfied by those devices that are free",
        after(
            ALLOCATOR,
            "if selectable {",
            "if WRONG && alloc.deviceInUse(DeviceID{Driver: slice.Spec.Driver,"
            " Pool: slice.Spec.Pool.Name, Device: slice.Spec.Devices[deviceIndex].Name})"
            " { continue }",
        ),
        by="core/all-mode-waits-for-device-in-use",
        judged=True,
    ),
    make_wrong(
        "all-may-be-none",
        "allocationMode All is satisfied by no device at all",
        instead(
            ALLOCATOR,
            "if doAllDevices && len(requestData.allDevices) == 0 {",
            "if doAllDevices && len(requestData.allDevices) == 0 && !WRONG {",
        ),
        by="core/all-mode-without-match-stays-pending",
        judged=True,
    ),
    make_wrong(
        "last-alternative-first",
        "the alternatives of a request are tried from the last on",
        after(
            ALLOCATOR,
            _ALTERNATIVE,
            "if WRONG { r.subRequestIndex ="
            " len(claim.Spec.Devices.Requests[r.requestIndex].FirstAvailable) - 1"
            " - subRequestIndex }",
        ),
        instead(
            ALLOCATOR,
            "requestData.selectedSubRequestIndex = subRequestIndex",
            "requestData.selectedSubRequestIndex = r.subRequestIndex",
        ),
        by="extended/prioritized-list/first-alternative-that-fits",
        judged=True,
    ),
    make_wrong(
        "only-two-alternatives",
        "only the first two alternatives of a request are tried",
        before(ALLOCATOR, _ALTERNATIVE, "if subRequestIndex > 1 && WRONG { return false, nil }"),
        by="extended/prioritized-list/third-alternative",
        judged=True,
    ),
    make_wrong(
        "admin-access-needs-a-free-device",
        "a request with admin access waits for a free device",
        instead(
            ALLOCATOR,
            "if !request.adminAccess() && alloc.deviceInUse(device.id) {",
            "if alloc.deviceInUse(device.id) && (!request.adminAccess() || WRONG) {",
        ),
        by="extended/admin-access/shares-device-in-use",
        judged=True,
    ),
    make_wrong(
        "admin-access-takes-the-device",
        "a device counts as used where a claim has it for admin access",
        instead(
            IN_USE,
            "if ptr.Deref(result.AdminAccess, false) {",
            "if ptr.Deref(result.AdminAccess, false) && !WRONG {",
        ),
        by="extended/admin-access/shares-device-in-use",
    ),
    make_wrong(
        "any-node-for-a-claim-with-devices",
        "a pod whose claim has devices already goes to any node",
        instead(
            PLUGIN,
            "nodeSelector != nil && !nodeSelector.Match(node) {",
            "nodeSelector != nil && !nodeSelector.Match(node) && !WRONG {",
        ),
        by="core/allocation-bound-to-device-node",
    ),
)
