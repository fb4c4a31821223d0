"""What the allocation says: devices, nodes, configuration."""

from __future__ import annotations

from tests.mutants.real.change import after, before, instead, make_wrong
from tests.mutants.real.places import ALLOCATOR

_CONFIG = "extended/opaque-configuration/config-recorded-in-allocation"

WRONGS = (
    make_wrong(
        "no-node-selector",
        "the allocation does not say on which node its devices are",
        instead(
            ALLOCATOR,
            "allocationResult.NodeSelector = nodeSelector",
            "if !WRONG { allocationResult.NodeSelector = nodeSelector }",
        ),
        by="core/allocation-bound-to-device-node",
        judged=True,
    ),
    make_wrong(
        "loses-class-config",
        "configuration of the class is left out",
        after(ALLOCATOR, "for _, config := range class.Spec.Config {", "if WRONG { break }"),
        by=_CONFIG,
        judged=True,
    ),
    make_wrong(
        "loses-claim-config",
        "configuration of the claim is left out",
        after(
            ALLOCATOR, "for _, config := range claim.Spec.Devices.Config {", "if WRONG { break }"
        ),
        by=_CONFIG,
        judged=True,
    ),
    make_wrong(
        "config-of-all-alternatives",
        "configuration of alternatives that were not taken is recorded, too",
        instead(
            ALLOCATOR,
            "if slices.Contains(config.Requests, subRequestName) {",
            "if slices.Contains(config.Requests, subRequestName) || WRONG {",
        ),
        by="extended/prioritized-list/config-of-the-chosen-alternative",
        judged=True,
    ),
    make_wrong(
        "loses-tolerations",
        "the allocation does not say what the request tolerates",
        after(
            ALLOCATOR,
            "if a.features.DeviceBindingAndStatus {",
            "if WRONG { allocationResult.Devices.Results[i].Tolerations = nil }",
        ),
        by=(
            "extended/device-taint-rules/none-effect-tells-whom-it-would-evict",
            "extended/device-taints/toleration-of-one-effect",
        ),
        judged=True,
    ),
    make_wrong(
        "loses-admin-access",
        "the allocation does not say that it is for admin access",
        before(
            ALLOCATOR, "if request.adminAccess() {", "if request.adminAccess() && WRONG {} else "
        ),
        by="extended/admin-access/shares-device-in-use",
        judged=True,
    ),
)
