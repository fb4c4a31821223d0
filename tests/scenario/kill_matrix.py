"""Which scenarios each deliberate defect of the reference must fail, and the page that says so.

For each fault the scenarios that are *about* the broken rule are listed; others may fail too.
`python -m tests.scenario.kill_matrix > docs/kill-matrix.md` writes the page.
"""

from __future__ import annotations

from typing import Final

from tests.mutants.faults import Fault

EXTENDED_RESOURCE: Final = "extended/extended-resource"
OPAQUE: Final = "extended/opaque-configuration"
ADMIN: Final = "extended/admin-access"
BINDING: Final = "extended/device-binding-conditions"
CAPACITY: Final = "extended/consumable-capacity"
MESSAGES: Final = "extended/messages/what-kubernetes-says"
NODE_RESOURCES: Final = "extended/node-allocatable-resources"
PARTITIONS: Final = "extended/partitionable-devices"
STATUS: Final = "extended/device-status"
TAINTS: Final = "extended/device-taints"
TAINT_RULES: Final = "extended/device-taint-rules"

GATES: Final = {"DRANodeAllocatableResources": True}
"""Gates of the reference beside its defaults: what scenarios about alpha features need."""

ABOUT: Final[dict[Fault, set[str]]] = {
    Fault.ACCEPT_INVALID_POD_CLAIM: {
        "core/pod-claim-with-both-sources-rejected",
        "core/pod-claim-without-source-rejected",
        MESSAGES,
    },
    Fault.ADMIN_ACCESS_ANYWHERE: {f"{ADMIN}/refused-without-namespace-label"},
    Fault.ADMIN_ACCESS_NEEDS_FREE_DEVICE: {f"{ADMIN}/shares-device-in-use"},
    Fault.ALL_MAY_BE_NONE: {
        "core/all-mode-waits-for-device-in-use",
        "core/all-mode-without-match-stays-pending",
    },
    Fault.ALL_TAKES_ONE: {"core/all-mode-takes-every-matching-device"},
    Fault.ANY_NODE: {"core/allocation-bound-to-device-node"},
    Fault.BINDS_AT_ONCE: {
        f"{BINDING}/failed-device-is-given-up",
        f"{BINDING}/pod-bound-once-device-ready",
    },
    Fault.CLAIMS_OUTLIVE_PODS: {
        "core/cleanup-generated-claim-deleted",
        f"{EXTENDED_RESOURCE}/claim-deleted-with-pod",
    },
    Fault.CLAIM_CONFIG_FIRST: {f"{OPAQUE}/config-recorded-in-allocation"},
    Fault.DOUBLE_ALLOCATION: {
        "core/all-mode-waits-for-device-in-use",
        "core/cleanup-device-allocated-again",
        "core/cleanup-waiting-pod-gets-freed-device",
        "core/match-attribute-separate-roots-stays-pending",
        "core/template-gives-each-pod-a-device",
    },
    Fault.EVICTS_AT_ONCE: {f"{TAINT_RULES}/toleration-seconds-delay-eviction"},
    Fault.FIRST_CONTAINER_ONLY: {
        "core/generated-claim-containers-share-device",
        "core/job-separate-and-shared-claims",
    },
    Fault.FORGETS_RESERVATION: {
        "core/generated-claim-reserved-for-pod",
        "core/shared-claim-pods-see-same-device",
    },
    Fault.IGNORES_BINDING_FAILURE: {f"{BINDING}/failed-device-is-given-up"},
    Fault.IGNORES_CONSUMED_CAPACITY: {f"{CAPACITY}/claims-share-a-device"},
    Fault.IGNORES_COUNT: {
        "core/exact-count-above-inventory-stays-pending",
        "core/exact-count-four-devices",
    },
    Fault.IGNORES_COUNTERS: {f"{PARTITIONS}/partitions-exclude-the-whole"},
    Fault.IGNORES_DEVICE_PLUGINS: {f"{EXTENDED_RESOURCE}/device-plugin-serves-its-own-node"},
    Fault.IGNORES_DEVICE_TAINTS: {
        f"{TAINTS}/noschedule-taint-keeps-pods-away",
        f"{TAINTS}/toleration-allows-tainted-device",
        f"{TAINT_RULES}/noschedule-rule-withholds-device",
    },
    Fault.IGNORES_EXTENDED_RESOURCES: {f"{EXTENDED_RESOURCE}/limits-satisfied-by-dra"},
    Fault.IGNORES_NODE_RESOURCES: {f"{NODE_RESOURCES}/devices-count-against-the-node"},
    Fault.IGNORES_REQUEST_POLICY: {f"{CAPACITY}/request-follows-policy"},
    Fault.IGNORES_TAINT_RULES: {f"{TAINT_RULES}/noschedule-rule-withholds-device"},
    Fault.IGNORES_TOLERATIONS: {
        f"{TAINTS}/toleration-allows-tainted-device",
        f"{TAINT_RULES}/noexecute-rule-evicts-pod",
    },
    Fault.IGNORES_UNKNOWN_FIELDS: {
        "core/retired-claim-fields-refused-in-v1",
        "core/retired-flat-request-refused-in-v1",
        "core/retired-pod-claim-source-refused",
    },
    Fault.IGNORE_MATCH_ATTRIBUTE: {
        "core/match-attribute-across-requests",
        "core/match-attribute-picks-common-root",
        "core/match-attribute-separate-roots-stays-pending",
        f"{CAPACITY}/distinct-attribute-separates-devices",
    },
    Fault.IGNORE_SELECTORS: {
        "core/all-mode-takes-every-matching-device",
        "core/all-mode-without-match-stays-pending",
        "core/api-version-v1-manifests-allocated",
        "core/api-version-v1beta1-manifests-allocated",
        "core/api-version-v1beta2-manifests-allocated",
        "core/cel-selector-without-match-stays-pending",
        "core/cel-semver-picks-newer-device",
        "core/cel-semver-unreachable-stays-pending",
    },
    Fault.KEEPS_DEVICE_STATUS: {f"{STATUS}/report-goes-with-the-allocation"},
    Fault.LAST_ALTERNATIVE_FIRST: {"extended/prioritized-list/first-alternative-that-fits"},
    Fault.LEAKS_TO_OTHER_PODS: {"core/isolation-pod-without-claim"},
    Fault.LEAK_CDI: {"core/cleanup-cdi-spec-removed"},
    Fault.LOSES_ADMIN_ACCESS: {f"{ADMIN}/shares-device-in-use"},
    Fault.LOSES_CAPACITY: {"core/api-version-v1beta2-manifests-allocated"},
    Fault.LOSES_CONFIG: {
        f"{OPAQUE}/claim-config-reaches-container",
        f"{OPAQUE}/class-config-reaches-container",
        f"{OPAQUE}/config-recorded-in-allocation",
    },
    Fault.MISSES_LIFTED_TAINT: {f"{TAINT_RULES}/noschedule-rule-withholds-device"},
    Fault.MISSES_NEW_CLAIM: {
        "core/isolation-claim-of-other-namespace",
        "core/late-claim-starts-waiting-pod",
    },
    Fault.MISSES_NEW_CLASS: {"core/late-class-starts-waiting-pod"},
    Fault.MISSES_NEW_SLICE: {"core/late-slice-starts-waiting-pod"},
    Fault.MISSES_NEW_TEMPLATE: {"core/late-template-starts-waiting-pod"},
    Fault.MISSES_RELEASE: {
        "core/all-mode-waits-for-device-in-use",
        "core/cleanup-device-allocated-again",
        "core/cleanup-waiting-pod-gets-freed-device",
        "core/match-attribute-separate-roots-stays-pending",
    },
    Fault.NEVER_RELEASE: {
        "core/cleanup-claim-used-again",
        "core/job-separate-and-shared-claims",
        "core/shared-claim-released-after-last-pod",
    },
    Fault.NO_DRY_RUN: {f"{TAINT_RULES}/none-effect-tells-whom-it-would-evict"},
    Fault.NO_EVICTION: {f"{TAINT_RULES}/noexecute-rule-evicts-pod"},
    Fault.NO_FINALIZER: {
        "core/cleanup-claim-in-use-is-protected",
        "core/generated-claim-reserved-for-pod",
    },
    Fault.NO_NODE_SELECTOR: {
        "core/allocation-bound-to-device-node",
        "core/generated-claim-reserved-for-pod",
    },
    Fault.NO_OWNER_REFERENCE: {
        "core/cleanup-generated-claim-deleted",
        "core/generated-claim-belongs-to-pod",
    },
    Fault.NO_POD_CLAIM_ANNOTATION: {"core/generated-claim-belongs-to-pod"},
    Fault.NO_REQUEST_DEFAULTS: {
        "core/api-version-v1-manifests-allocated",
        "core/api-version-v1beta1-manifests-allocated",
        "core/api-version-v1beta2-manifests-allocated",
        "core/api-versions-claims-stored-alike",
    },
    Fault.NO_SHARING: {
        "core/shared-claim-pods-see-same-device",
        "core/shared-claim-released-after-last-pod",
    },
    Fault.ONE_DEVICE_FOR_ALL_REQUESTS: {
        "core/container-sees-only-its-request",
        "core/exact-count-four-devices",
        "core/two-requests-two-devices",
    },
    Fault.OTHER_NAMESPACE: {"core/isolation-claim-of-other-namespace"},
    Fault.RELEASES_TOO_EARLY: {"core/shared-claim-released-after-last-pod"},
    Fault.REQUEST_FILTER_IGNORED: {"core/container-sees-only-its-request"},
    Fault.RETURNS_STORED_FORM: {
        "core/api-version-v1beta1-manifests-allocated",
        "core/api-versions-claims-stored-alike",
    },
    Fault.SAYS_NO_REASON: {
        "core/all-mode-without-match-stays-pending",
        "core/cel-selector-without-match-stays-pending",
        "core/cel-semver-unreachable-stays-pending",
        "core/exact-count-above-inventory-stays-pending",
        "core/late-class-starts-waiting-pod",
        MESSAGES,
    },
    Fault.SEES_ALL_CLAIMS: {
        "core/isolation-container-without-claim",
        "core/job-separate-and-shared-claims",
        f"{EXTENDED_RESOURCE}/limits-satisfied-by-dra",
    },
    Fault.SELECTORS_SEE_NO_ATTRIBUTES: {
        "core/cel-selector-picks-matching-device",
        "core/cel-semver-picks-newer-device",
    },
    Fault.SERVES_RETIRED_VERSIONS: {
        "core/retired-claim-parameters-refused",
        "core/retired-resourceclass-refused",
        "core/retired-template-parametersref-refused",
    },
    Fault.SHARES_NODE_RESOURCES: {f"{NODE_RESOURCES}/mapped-claim-is-not-shared"},
    Fault.SHARES_TEMPLATE_CLAIM: {
        "core/job-separate-and-shared-claims",
        "core/template-gives-each-pod-a-device",
    },
    Fault.TEMPLATE_LOSES_SELECTORS: {
        "core/api-version-v1-manifests-allocated",
        "core/api-version-v1beta1-manifests-allocated",
        "core/api-version-v1beta2-manifests-allocated",
    },
    Fault.WRONG_DEVICE_IN_CONTAINER: {
        "core/cleanup-claim-used-again",
        "core/generated-claim-containers-share-device",
        "core/shared-claim-pods-see-same-device",
        "core/two-requests-two-devices",
    },
    Fault.WRONG_VERSION_CONVERSION: {
        "core/api-version-v1beta1-manifests-allocated",
        "core/api-versions-claims-stored-alike",
    },
}

_HEAD: Final = """\
# Kill matrix

A suite that passes everything is worthless, so the suite itself is tested: the reference can be
given a deliberate defect, and the scenarios that are about the broken rule must then fail. Every
shipped scenario is in this table at least once. Other scenarios may fail beside those listed.

Generated: `python -m tests.scenario.kill_matrix > docs/kill-matrix.md`. Whether it is true is
checked by tests/scenario/test_kill_matrix.py.

| defect | what goes wrong | scenarios that must fail |
|---|---|---|
"""


def page() -> str:
    """The page docs/kill-matrix.md."""
    rows = []
    for fault, about in sorted(ABOUT.items(), key=lambda item: item[0].title):
        links = [f"[{name.rpartition('/')[2]}](../scenarios/{name}.yaml)" for name in sorted(about)]
        rows.append(f"| {fault.title} | {fault.value} | {', '.join(links)} |\n")
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    print(page(), end="")
