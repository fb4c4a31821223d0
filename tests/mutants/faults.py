"""Deliberate defects of the reference, so that the suite itself can be tested.

A conformance suite that passes everything is worthless. Each fault breaks one rule at one place;
a scenario that is about this rule must fail on a reference that has the fault.
"""

from __future__ import annotations

from enum import Enum


class Fault(Enum):
    """One deliberate defect: the member's value says in one line what goes wrong."""

    ACCEPT_INVALID_POD_CLAIM = "the API server does not check pod.spec.resourceClaims"
    ADMIN_ACCESS_ANYWHERE = "the API server allows admin access in every namespace"
    ADMIN_ACCESS_NEEDS_FREE_DEVICE = "a request with admin access waits for a free device"
    ALL_MAY_BE_NONE = "allocationMode All is satisfied by no device at all"
    ALL_TAKES_ONE = "allocationMode All takes one device"
    ANY_NODE = "the scheduler takes devices that are on another node"
    BINDS_AT_ONCE = "pods are bound without waiting for binding conditions of their devices"
    CLAIMS_OUTLIVE_PODS = "claims that were made for a pod are not deleted with it"
    CLAIM_CONFIG_FIRST = "the allocation lists a claim's configuration before its class's"
    DOUBLE_ALLOCATION = "the scheduler does not see which devices are in use"
    EVICTS_AT_ONCE = "pods are evicted before the time for which they tolerate a taint is over"
    FIRST_CONTAINER_ONLY = "only the first container of a pod sees devices of its claims"
    FORGETS_RESERVATION = "the scheduler allocates without adding the pod to reservedFor"
    IGNORES_BINDING_FAILURE = "a device that cannot be made ready is waited for, not given up"
    IGNORES_CONSUMED_CAPACITY = "the scheduler does not see how much of a capacity is consumed"
    IGNORES_COUNT = "the scheduler takes one device whatever the count"
    IGNORES_COUNTERS = "the scheduler does not look at shared counters"
    IGNORES_DEVICE_PLUGINS = (
        "extended resources come from devices even where a node has them itself"
    )
    IGNORES_DEVICE_TAINTS = "the scheduler ignores taints of devices"
    IGNORES_EXTENDED_RESOURCES = "the scheduler looks for no class behind an extended resource"
    IGNORES_NODE_RESOURCES = "devices do not count against the CPU and memory of their node"
    IGNORES_REQUEST_POLICY = "the scheduler consumes what was asked for, whatever the policy says"
    IGNORES_TAINT_RULES = "the scheduler does not apply DeviceTaintRules"
    IGNORES_TOLERATIONS = "the scheduler does not see the tolerations of requests"
    IGNORES_UNKNOWN_FIELDS = "the API server drops unknown fields without a word"
    IGNORE_MATCH_ATTRIBUTE = "the scheduler ignores the constraints of a claim"
    IGNORE_SELECTORS = "the scheduler ignores CEL selectors of claims and classes"
    KEEPS_DEVICE_STATUS = "what drivers reported stays in a claim that was released"
    LAST_ALTERNATIVE_FIRST = "the scheduler tries the alternatives of a request from the last on"
    LEAKS_TO_OTHER_PODS = "a pod without a claim sees the devices of other pods on its node"
    LEAK_CDI = "unprepare leaves the claim prepared and its CDI spec behind"
    LOSES_CAPACITY = "devices written in v1beta2 lose their capacity when they are stored"
    LOSES_ADMIN_ACCESS = "the allocation does not say that it is for admin access"
    LOSES_CONFIG = "the scheduler does not copy opaque configuration into the allocation"
    MISSES_LIFTED_TAINT = "a deleted DeviceTaintRule does not make the scheduler try again"
    MISSES_NEW_CLAIM = "a pod whose claim did not exist is never looked at again"
    MISSES_NEW_CLASS = "a new DeviceClass does not make the scheduler try again"
    MISSES_NEW_SLICE = "a new ResourceSlice does not make the scheduler try again"
    MISSES_NEW_TEMPLATE = "a pod whose claim template did not exist never gets a claim"
    MISSES_RELEASE = "a released device does not make the scheduler try again"
    NEVER_RELEASE = "the claim controller does not release a claim when its pods are done"
    NO_DRY_RUN = "a DeviceTaintRule with the effect None does not say whom it would evict"
    NO_EVICTION = "pods stay on devices that get a NoExecute taint"
    NO_FINALIZER = "the scheduler allocates without the delete-protection finalizer"
    NO_NODE_SELECTOR = "the allocation does not say on which node its devices are"
    NO_OWNER_REFERENCE = "generated claims have no owner reference"
    NO_POD_CLAIM_ANNOTATION = "generated claims lack the pod-claim-name annotation"
    NO_REQUEST_DEFAULTS = "the API server does not fill in allocationMode and count"
    NO_SHARING = "a claim that is reserved for one pod is refused to all others"
    ONE_DEVICE_FOR_ALL_REQUESTS = "all requests of a claim get the same device"
    OTHER_NAMESPACE = "a missing claim is taken from another namespace"
    RELEASES_TOO_EARLY = "a claim is released as soon as one of its pods is done"
    REQUEST_FILTER_IGNORED = "a container that names one request sees all devices of the claim"
    RETURNS_STORED_FORM = "objects are read in their stored form whatever version was asked for"
    SAYS_NO_REASON = "the scheduler does not say why a pod is not scheduled"
    SEES_ALL_CLAIMS = "every container of a pod sees all devices of the pod"
    SELECTORS_SEE_NO_ATTRIBUTES = "the scheduler evaluates selectors without attributes of devices"
    SERVES_RETIRED_VERSIONS = "the API server still takes resource.k8s.io/v1alpha2"
    SHARES_NODE_RESOURCES = "a claim for a part of the node's own resources is used by several pods"
    SHARES_TEMPLATE_CLAIM = "pods that use the same template share one generated claim"
    TEMPLATE_LOSES_SELECTORS = "claims made from a template lack its selectors"
    WRONG_DEVICE_IN_CONTAINER = "a container gets another device than the one allocated"
    WRONG_VERSION_CONVERSION = "v1beta1 requests lose their selectors when they are stored"

    @property
    def title(self) -> str:
        """The name in the kill matrix and of tests, for example ``double-allocation``."""
        return self.name.lower().replace("_", "-")
