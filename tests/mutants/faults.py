"""Deliberate defects of the reference, so that the suite itself can be tested.

A conformance suite that passes everything is worthless. Each fault breaks one rule at one place;
a scenario that is about this rule must fail on a reference that has the fault.
"""

from __future__ import annotations

from enum import Enum


class Fault(Enum):
    """One deliberate defect: the member's value says in one line what goes wrong."""

    ACCEPTS_POD_CLAIM_WITHOUT_SOURCE = "a pod may name a claim without saying which"
    ACCEPTS_POD_CLAIM_WITH_TWO_SOURCES = "a pod may name a claim and a template for the same entry"
    ACCEPT_INVALID_POD_CLAIM = "the API server does not check pod.spec.resourceClaims"
    ADMIN_ACCESS_ANYWHERE = "the API server allows admin access in every namespace"
    ADMIN_ACCESS_CONSUMES_CAPACITY = "admin access consumes capacity of devices that are shared"
    ADMIN_ACCESS_CONSUMES_COUNTERS = "admin access consumes counters"
    ADMIN_ACCESS_NEEDS_FREE_DEVICE = "a request with admin access waits for a free device"
    ADMIN_ACCESS_REACHES_NO_CONTAINER = (
        "containers do not get devices that they have admin access to"
    )
    ADMIN_ACCESS_TAKES_DEVICE = "a device counts as used where a claim has it for admin access"
    ADMIN_ACCESS_TOLERATES_TAINTS = "a request with admin access gets tainted devices"
    ADMIN_ACCESS_TO_ALL_NEEDS_FREE_DEVICES = (
        "a request with admin access to all devices waits until all are free"
    )
    ALLOCATES_CLAIMS_ONE_BY_ONE = (
        "a pod that cannot run keeps the devices that some of its claims could get"
    )
    ALLOCATES_WITHOUT_POD = "a claim is allocated though no pod uses it"
    ALL_GROWS_WITH_ITS_POOL = (
        "a device that is added later belongs to a claim that has all of its pool"
    )
    ALL_IGNORES_CAPACITY_REQUESTS = (
        "allocationMode All takes devices whatever capacity is left of them"
    )
    ALL_IS_LEFT_OUT_BESIDE_OTHERS = "allocationMode All is ignored beside another request"
    ALL_IS_TRIED_ON_THE_FIRST_NODE = (
        "allocationMode All is tried on the first node with devices only"
    )
    ALL_MAY_BE_NONE = "allocationMode All is satisfied by no device at all"
    ALL_MAY_BE_NONE_IF_NOTHING_MATCHES = "allocationMode All is satisfied where no device matches"
    ALL_SKIPS_TAINTED_DEVICES = (
        "allocationMode All is satisfied by those devices that have no taint"
    )
    ALL_TAKES_ONE = "allocationMode All takes one device"
    ALL_TAKES_WHAT_IS_FREE = "allocationMode All is satisfied by those devices that are free"
    ALTERNATIVES_LOSE_CAPACITY = "how much capacity an alternative asks for is ignored"
    ALTERNATIVES_LOSE_COUNT = "an alternative of a request gets one device whatever its count"
    ALTERNATIVES_LOSE_MODE = "an alternative for all devices gets one"
    ALTERNATIVES_LOSE_TOLERATIONS = "tolerations of alternatives are ignored"
    ALTERNATIVES_REACH_NO_CONTAINER = (
        "a container that names a request does not get the device of its alternative"
    )
    ANY_NODE = "the scheduler takes devices that are on another node"
    APPLIES_OVER_CHANGES_OF_OTHERS = "fields that others have changed are applied over"
    APPLIES_WITHOUT_MEMORY = "fields that a manager applies no more stay"
    AUTHORIZES_EVERY_ACCOUNT = "an account may do everything, whatever its rules say"
    AUTHORIZES_EVERY_BINDING = "who may write a claim's status may change its allocation"
    AUTHORIZES_EVERY_DRIVER = "a driver that may report may report on devices of others"
    AUTHORIZES_EVERY_NODE = "a driver that may report on its node may report on every node"
    BINDS_AT_ONCE = "pods are bound without waiting for binding conditions of their devices"
    BINDS_TWICE = "a pod can be bound once more"
    CEL_ERRORS_ARE_NO_MATCH = "a selector that fails on a device counts as one that does not match"
    CHANGES_ALLOCATIONS = "the allocation of a claim in use can be changed"
    CHANGES_CLAIMS = "what a claim asks for can be changed"
    CHANGES_TEMPLATES = "what a template asks for can be changed"
    CLAIMS_OUTLIVE_NAMESPACES = "claims are not released when their namespace is deleted"
    CLAIMS_OUTLIVE_PODS = "claims that were made for a pod are not deleted with it"
    CLAIMS_OF_ONE_NAME_ARE_ONE = (
        "of claims with one name in several namespaces the scheduler sees only one"
    )
    CLAIM_CONFIG_FIRST = "the allocation lists a claim's configuration before its class's"
    CLASSES_WITHOUT_SELECTORS_ARE_EMPTY = "a class without selectors admits no device"
    CLASS_SELECTORS_SEE_NO_ATTRIBUTES = (
        "selectors of classes are ignored where they read attributes"
    )
    COMPARES_NODES_BY_ALLOCATED_CLAIMS = (
        "a pod with an allocated and a new claim waits where several nodes have devices for it"
    )
    COMPARES_VERSIONS_AS_TEXT = "selectors compare versions as text"
    CONFIG_OF_ALL_ALTERNATIVES = "configuration for alternatives that were not taken is copied, too"
    CONSTRAINTS_ARE_TRIED_IN_THE_FIRST_POOL = (
        "claims with constraints have no other choice than the first pool of a node"
    )
    CONSTRAINTS_IGNORE_VERSIONS = "constraints on attributes that are versions are ignored"
    CONSTRAINTS_HOLD_FOR_ALL_REQUESTS = "a constraint is applied to requests that it does not list"
    CONSTRAINTS_HOLD_WITHIN_REQUESTS_ONLY = "a constraint does not reach over several requests"
    CONSTRAINTS_SPARE_ALL = "constraints are ignored with allocationMode All"
    CONSTRAINTS_SPARE_ALTERNATIVES = "matchAttribute is ignored where a request has alternatives"
    CONTAINERS_WITHOUT_CLAIM_SEE_ALL = (
        "a container that names no claim sees what the others of its pod see"
    )
    COUNTERS_ARE_CUT_TO_WHAT_THERE_IS = (
        "a device that consumes more of a counter than there is gets all of it"
    )
    COUNTERS_END_WITH_TAINTS = (
        "the scheduler ignores the counters of a pool once a device of it has had a taint"
    )
    COUNT_IS_A_MAXIMUM = "a request for more devices than a node has gets those that are there"
    CUTS_REQUESTS_TO_32_DEVICES = "a request for more than 32 devices gets 32"
    CUTS_REQUESTS_TO_POLICY_MAXIMUM = "a request above the maximum of a policy gets the maximum"
    DELETES_ALL_OF_A_KIND = "a deletion by label takes all objects of the kind"
    DELETES_CLAIMS_AT_RESTARTS = (
        "a generated claim is deleted when a container of its pod starts again"
    )
    DELETES_CLAIMS_IN_USE = "a claim that is deleted is gone at once, though pods use it"
    DAEMON_SETS_RUN_ONCE = "a DaemonSet runs on one of the nodes that suit"
    DELETES_TEMPLATES_WITH_PODS = "a template is deleted with the pods that use it"
    DEPLOYMENTS_KEEP_THEIR_PODS = "a Deployment that is scaled to 0 is left as it is"
    DERIVED_LISTS_ARE_NOTHING = "derived attributes that are lists have no value"
    DEVICES_STAY_ON_THEIR_FIRST_NODE = "that a device names another node now is not noticed"
    DEVICES_WITH_CONDITIONS_GO_FIRST = (
        "devices with binding conditions are taken before those without"
    )
    DISTINCT_ACROSS_REQUESTS_ONLY = "distinctAttribute is ignored among the devices of one request"
    DISTINCT_SPARES_ALTERNATIVES = "distinctAttribute is ignored where a request has alternatives"
    DISTINCT_SPARES_SHARES = "distinctAttribute is ignored where requests ask for capacity"
    DOUBLE_ALLOCATION = "the scheduler does not see which devices are in use"
    DRIVER_CONFIGURES_ALL_DEVICES = (
        "configuration for one request is applied to all devices of the claim"
    )
    DRIVER_DEFAULTS_CONFIG = "the driver applies a configuration as if its values were the defaults"
    DRIVER_GIVES_FIRST_DEVICES = "the driver gives one device to two claims: the first that it has"
    DRIVER_GIVES_OTHERS_WHEN_ASKED_AGAIN = (
        "asked again to prepare a claim, the driver gives it other devices"
    )
    DRIVER_IGNORES_CLAIM_CONFIG = "the driver does not apply configuration of claims"
    DRIVER_IGNORES_CLASS_CONFIG = "the driver does not apply configuration of classes"
    DRIVER_KEEPS_OLD_DEVICES = "a claim that is allocated anew gets the devices that it had before"
    DRIVER_LOSES_ITS_MEMORY = "the driver forgets when it is restarted what it has prepared"
    DRIVER_NEVER_UNPREPARES_NOR_LOOKS = (
        "unprepare does nothing, and prepare gives devices that another claim has"
    )
    DRIVER_OFFERS_UNHEALTHY_DEVICES = "a device that was found unhealthy is given to new pods"
    DRIVER_PREPARES_DEVICES_IN_USE = "the driver prepares a device that another claim has"
    DRIVER_PUBLISHES_ONCE = "slices that the kubelet has deleted are not published again"
    DRIVER_REFUSES_PREPARED_CLAIMS = (
        "the driver refuses to prepare a claim that is prepared already"
    )
    DRIVER_REFUSES_UNKNOWN_CLAIMS = "to unprepare a claim that is not prepared is an error"
    DRIVER_PREPARES_A_CLAIM_ONCE = (
        "the driver refuses to prepare a claim again that it has unprepared"
    )
    EACH_SHARE_CONSUMES_COUNTERS = "each share of a device consumes its counters once more"
    EMPTY_KEY_TOLERATES_NOTHING = "a toleration without a key covers no taint"
    EVICTS_AT_ONCE = "pods are evicted before the time for which they tolerate a taint is over"
    EVICTS_BY_NAMED_CLAIMS_ONLY = (
        "a NoExecute taint evicts no pod whose device came by an extended resource"
    )
    EVICTS_BY_RULES_ONLY = "a NoExecute taint that a driver publishes evicts nobody"
    EVICTS_FOR_NOSCHEDULE = "pods are evicted from devices that get a NoSchedule taint"
    EVICTS_WHO_TOLERATES_FOR_EVER = (
        "pods are evicted though their claims tolerate the taint without end"
    )
    EXTENDED_CLAIMS_OUTLIVE_PODS = (
        "claims that were made for extended resources are not deleted with their pods"
    )
    FAILED_PODS_KEEP_CLAIMS = "a pod that failed keeps its claims until it is deleted"
    FINISHED_PODS_KEEP_CLAIMS = "a pod that has ended keeps its claims until it is deleted"
    FIRST_CONTAINER_ONLY = "only the first container of a pod sees devices of its claims"
    FORGETS_DEVICES_WITHOUT_SLICE = (
        "a device counts as free after its slice was deleted, though a claim has it"
    )
    FORGETS_FORCE_DELETED_PODS = "claims of pods that were deleted by force stay prepared"
    FORGETS_NODE_RESOURCES_OF_OTHERS = "what devices of other pods take of a node is not counted"
    FORCED_PODS_KEEP_CLAIMS = "a pod that is deleted by force while it ends keeps its reservations"
    FORGETS_RESERVATION = "the scheduler allocates without adding the pod to reservedFor"
    FORGETS_WITHDRAWN_DEVICES = (
        "a device in use that was withdrawn and is published again counts as free"
    )
    FREES_DEVICES_WITH_FIRST_CLAIM = (
        "a device that two claims have counts as free when one of them is released"
    )
    FREES_DEVICES_WITH_FIRST_POD = (
        "the devices of a shared claim count as free when the first of its pods is done"
    )
    FREES_DEVICES_WITH_FIRST_SHARE = (
        "when a share of a device is released, its other shares are not counted any more"
    )
    FREES_DEVICES_WITH_MONITOR = "a device counts as free when admin access to it ends"
    GENERATED_CLAIM_FOR_ONE_CONTAINER = (
        "only the first container that names a generated claim sees its devices"
    )
    HEALTH_IS_SHOWN_TO_THE_FIRST_POD = (
        "of pods that share a device, only the first shows that it got unhealthy"
    )
    HEALTH_IS_THE_WORST_OF_THE_NODE = "pods show the health of the worst device of their node"
    HEALTH_NEVER_COMES_BACK = "a pod goes on showing its device as unhealthy when it is healthy"
    HEALTH_OUTLIVES_DRIVERS = "pods go on showing what a driver said before it stopped"
    HEALTH_OF_ALL_REQUESTS = "a container shows the health of devices for requests of others"
    HEALTH_WITHOUT_REQUESTS = "health is shown under the name of the claim, without its request"
    IGNORES_BINDING_FAILURE = "a device that cannot be made ready is waited for, not given up"
    IGNORES_CAPACITY_REQUESTS = "the scheduler does not see how much capacity a request asks for"
    IGNORES_CAPACITY_REQUESTS_FOR_WHOLE_DEVICES = (
        "a device that is not shared may be smaller than what a request asks for"
    )
    IGNORES_CONSUMED_CAPACITY = "the scheduler does not see how much of a capacity is consumed"
    IGNORES_COUNT = "the scheduler takes one device whatever the count"
    IGNORES_COUNTERS = "the scheduler does not look at shared counters"
    IGNORES_DERIVED_ATTRIBUTES = "the scheduler ignores derived attributes"
    IGNORES_DEVICE_PLUGINS = (
        "extended resources come from devices even where a node has them itself"
    )
    IGNORES_DEVICE_TAINTS = "the scheduler ignores taints of devices"
    IGNORES_DISTINCT_ATTRIBUTE = "the scheduler ignores distinctAttribute"
    IGNORES_EVICTIONS = "a pod whose eviction is asked for stays"
    IGNORES_EXTENDED_RESOURCES = "the scheduler looks for no class behind an extended resource"
    IGNORES_FIELD_SELECTORS = "a field selector is ignored"
    IGNORES_IMPLICIT_EXTENDED_RESOURCES = (
        "a class cannot be asked for as a resource by its own name"
    )
    IGNORES_NETWORK_DEVICES = "devices that are for all nodes are never allocated"
    IGNORES_NODES_PER_DEVICE = "devices that name their nodes one by one are used on every node"
    IGNORES_NODE_OF_ALLOCATED_CLAIMS = (
        "a pod goes to a node on which its allocated claim cannot be used"
    )
    IGNORES_NODE_RESOURCES = "devices do not count against the CPU and memory of their node"
    IGNORES_NODE_SELECTORS_OF_SLICES = (
        "devices of slices with a node selector are used on every node"
    )
    IGNORES_NODE_SELECTORS_PER_DEVICE = (
        "devices with a node selector of their own are used on every node"
    )
    IGNORES_POLICY_DEFAULT = "a request without an amount does not get the policy's default"
    IGNORES_POLICY_MAXIMUM = "the maximum of a request policy is not kept"
    IGNORES_POLICY_STEP = "an amount is not rounded up to the step of a request policy"
    IGNORES_REQUEST_POLICY = "the scheduler consumes what was asked for, whatever the policy says"
    IGNORES_SLICES_WITH_NODES_PER_DEVICE = (
        "devices that name their nodes one by one are never allocated"
    )
    IGNORES_SLICES_WITH_NODE_SELECTOR = "devices of slices with a node selector are never allocated"
    IGNORES_TAINT_RULES = "the scheduler does not apply DeviceTaintRules"
    IGNORES_TOLERATIONS = "the scheduler does not see the tolerations of requests"
    IGNORES_TOLERATION_EFFECT = "a toleration covers taints of every effect"
    IGNORES_TOLERATION_KEY = "a toleration covers taints of every key"
    IGNORES_TOLERATION_VALUE = "a toleration covers taints of every value"
    IGNORES_UNKNOWN_COUNTERS = "a counter that a device consumes and nobody publishes is ignored"
    IGNORES_UNKNOWN_FIELDS_OF_CLAIMS = (
        "fields that are unknown in the spec of a claim are dropped without a word"
    )
    IGNORES_COMPATIBILITY_GROUPS = "devices of different compatibility groups are used together"
    IGNORES_DECLARED_FEATURES = (
        "devices that skip node operations are used on nodes that do not know of it"
    )
    IGNORES_UNKNOWN_FIELDS_OF_POD_CLAIMS = (
        "fields that are unknown in the claims of a pod are dropped without a word"
    )
    IGNORES_UNKNOWN_FIELDS_OF_REQUESTS = (
        "fields that are unknown in requests are dropped without a word"
    )
    IGNORES_VALID_VALUES = "an amount is not rounded up to the valid values of a request policy"
    IGNORES_PRECONDITIONS = "what is deleted need not be what its deletion says"
    IGNORES_VERSIONS_OF_STATUS = "a status is written though the object has changed meanwhile"
    IGNORES_VERSIONS = "an object is replaced though it has changed meanwhile"
    IGNORE_MATCH_ATTRIBUTE = "the scheduler ignores the constraints of a claim"
    IGNORE_SELECTORS = "the scheduler ignores CEL selectors of claims and classes"
    INIT_CONTAINERS_KEEP_EXTENDED_DEVICES = (
        "an init container keeps its extended resources for the life of the pod"
    )
    INIT_CONTAINERS_SEE_NOTHING = "init containers get no devices"
    INVALID_POOLS_STOP_ALL = "while one pool is invalid no device of any pool is allocated"
    KEEPS_COUNTERS_OF_REFUSED_DEVICES = "a device left out by a constraint consumes counters"
    KEEPS_DEVICE_STATUS = "what drivers reported stays in a claim that was released"
    KEEPS_FIELDS_OF_DISABLED_FEATURES = "fields of slices are kept though their feature is off"
    KEEPS_FIRST_ALTERNATIVE = (
        "the alternative that suits one request first is not given up for the next request"
    )
    KEEPS_FIRST_CHOICE_OF_CLAIMS = (
        "what a pod's first claim gets is not given up for the next claim"
    )
    KEEPS_FIRST_CHOICE_OF_REQUESTS = (
        "what a claim's first request gets is not given up for the next request"
    )
    KEEPS_FIRST_CHOICE_WITH_COUNTERS = (
        "a choice that consumes counters is not given up for the next request"
    )
    KEEPS_LISTS_NARROWED = (
        "a device that was tried and given up narrows what lists must have in common"
    )
    KUBELET_ENDS_UNHEALTHY_CONTAINERS = "a container ends when its device gets unhealthy"
    KUBELET_UNPREPARES_WITH_THE_FIRST_POD = (
        "a claim is unprepared when the first of its pods is gone"
    )
    KUBELET_NEVER_UNPREPARES = "the kubelet does not unprepare claims of pods that are gone"
    KUBELET_WAITS_FOR_ENTRIES_WITHOUT_CLAIM = (
        "the kubelet does not start a pod whose entry needs no claim"
    )
    LAST_ALTERNATIVE_FIRST = "the scheduler tries the alternatives of a request from the last on"
    LATER_ALTERNATIVES_LOSE_MODE = "an alternative for all devices gets one if it is not the first"
    LEAKS_TO_OTHER_PODS = "a pod without a claim sees the devices of other pods on its node"
    LEAK_CDI = "unprepare leaves the claim prepared and its CDI spec behind"
    LEAVES_CDI_SPEC = "unprepare leaves the CDI spec of the claim behind"
    LEAVES_UNUSED_CLAIMS_UNPREPARED = "a claim that no container names is not prepared"
    LIMITS_ARE_ONE_LESS = "lists of a claim that are as long as they may be are refused"
    LISTS_NEED_NOT_DIFFER = "distinctAttribute is ignored for lists"
    LOSES_ADMIN_ACCESS = "the allocation does not say that it is for admin access"
    LOSES_ALTERNATIVES_OF_V1BETA2 = "claims written in v1beta2 lose all alternatives but the first"
    LOSES_CAPACITY = "devices written in v1beta2 lose their capacity when they are stored"
    LOSES_CAPACITY_OF_V1BETA1 = (
        "devices written in v1beta1 lose their capacity when they are stored"
    )
    LOSES_CHOSEN_ALTERNATIVE = "the allocation does not say which alternative was taken"
    LOSES_CONFIG = "the scheduler does not copy opaque configuration into the allocation"
    LOSES_CONSUMED_CAPACITY = "the allocation does not say how much capacity is consumed"
    LOSES_SCHEDULING_GATES = "scheduling gates of pods are dropped"
    LOSES_SHARE_ID = "the allocation of a part of a device has no share ID"
    LOSES_TOLERATIONS = "the allocation does not say which taints the request tolerates"
    MISSES_ADDED_SLICE = "of slices the scheduler notices changes, but no new ones"
    MISSES_CHANGED_CLASS = "a changed DeviceClass does not make the scheduler try again"
    MISSES_CHANGED_NODE = "a changed node does not make the scheduler try again"
    MISSES_CHANGED_RULES = "a DeviceTaintRule that was changed evicts nobody"
    MISSES_CHANGED_SLICE = "a changed ResourceSlice does not make the scheduler try again"
    MISSES_LIFTED_TAINT = "a deleted DeviceTaintRule does not make the scheduler try again"
    MISSES_NEW_CLAIM = "a pod whose claim did not exist is never looked at again"
    MISSES_NEW_CLASS = "a new DeviceClass does not make the scheduler try again"
    MISSES_NEW_SLICE = "a new ResourceSlice does not make the scheduler try again"
    MISSES_CLAIMS_OF_A_BURST = "of many pods that come at once, only four get claims from templates"
    MISSES_NEW_TEMPLATE = "a pod whose claim template did not exist never gets a claim"
    MISSES_RELEASE = "a released device does not make the scheduler try again"
    MISTAKES_RULES_OF_V1BETA2 = "taint rules of v1beta2 are stored with another selector"
    MIXES_UP_COUNTERS_OF_POOLS = "counters of one name in two pools are one counter"
    MIXES_UP_EXTENDED_RESOURCES = (
        "a container with an extended resource sees the devices of the others, too"
    )
    MIXES_UP_REQUESTS = "a container that names one request sees the devices of the others"
    MOVES_SLICES = "a slice can be given another driver, pool or node"
    NAMES_DEVICES_WITHOUT_POOL = (
        "a device in use makes those of its name in other pools count as used"
    )
    NEVER_BINDS_READY_PODS = "pods are not bound though their devices report that they are ready"
    NEVER_RELEASE = "the claim controller does not release a claim when its pods are done"
    NEVER_RESERVES_FOR_BOUND_PODS = "a pod that was bound by hand never gets a claim reserved"
    NEVER_SHARES_DEVICES = "a device that allows several allocations is given to one claim only"
    NEVER_TAKES_ALL_WITH_COUNTERS = "allocationMode All never takes devices with counters"
    NODE_SELECTOR_OF_FIRST_NODE = (
        "the allocation names the first node of the cluster, not that of its devices"
    )
    NOEXECUTE_ADMITS_PODS = "new pods get devices with a NoExecute taint"
    NONE_KEEPS_PODS_AWAY = "a taint with the effect None keeps new pods away"
    NO_DEVICES_AFTER_RESTART = "a container that is started again gets no devices"
    NO_DEVICES_FOR_EXTENDED_RESOURCES = (
        "containers do not see the devices behind extended resources"
    )
    NO_DRY_RUN = "a DeviceTaintRule with the effect None does not say whom it would evict"
    NO_EVICTION = "pods stay on devices that get a NoExecute taint"
    NO_FINALIZER = "the scheduler allocates without the delete-protection finalizer"
    NO_NODE_SELECTOR = "the allocation does not say on which node its devices are"
    NO_OWNER_REFERENCE = "generated claims have no owner reference"
    NO_POD_CLAIM_ANNOTATION = "generated claims lack the pod-claim-name annotation"
    NO_POOLS_OVER_SEVERAL_NODES = "pools with slices for several nodes are never used"
    NO_REQUEST_DEFAULTS = "the API server does not fill in allocationMode and count"
    NO_SHARING = "a claim that is reserved for one pod is refused to all others"
    ONE_DEVICE_FOR_ALL_REQUESTS = "all requests of a claim get the same device"
    ONE_DEVICE_FOR_EXTENDED_RESOURCES = "an extended resource is one device whatever the amount"
    ONE_DEVICE_MORE_THAN_ASKED = "a request for a handful of devices gets one more"
    ONE_DEVICE_PER_CLAIM = "a container sees only one device of each claim that it names"
    ONLY_FIRST_ALTERNATIVE = "only the first alternative of a request is tried"
    ONLY_FIRST_CLASS_SELECTOR = "only the first selector of a class is evaluated"
    ONLY_FIRST_CONSTRAINT = "only the first constraint of a claim is kept"
    ONLY_FIRST_COUNTER = "of the counters that a device consumes only the first is looked at"
    ONLY_FIRST_COUNTER_SET = (
        "of the counter sets that a device consumes from only the first is looked at"
    )
    ONLY_FIRST_SELECTOR = "only the first selector of a request is evaluated"
    ONLY_FIRST_SLICE = "only the first slice of a pool is looked at"
    ONLY_FIRST_TAINT = "only the first taint of a device is looked at"
    ONLY_FIRST_ALTERNATIVES_COUNT = (
        "a claim waits if it would have too many devices with its first alternatives"
    )
    ONLY_TWO_ALTERNATIVES = "only the first two alternatives of a request are tried"
    ORPHANED_PODS_STAY = "pods of a node that was deleted stay"
    OTHER_NAMESPACE = "a missing claim is taken from another namespace"
    PODS_OUTLIVE_JOBS = "pods are not deleted with their Job"
    PREFERS_NO_ALTERNATIVE = "a node is taken though another one offers a better alternative"
    PREPARES_WHAT_IS_SKIPPED = "a driver is asked to prepare devices that say it need not be"
    PREEMPTS_FOR_DEVICES = "a pod is deleted because one of higher priority wants its device"
    PREEMPTS_NOBODY = "no pod makes room for one of higher priority"
    PUBLISHED_GOES_BEFORE_DERIVED = "an attribute that a device has is not derived"
    ORPHANS_ARE_DELETED = "a deletion with the policy Orphan takes what belongs to the object"
    OWNERS_GO_FIRST = "a deletion in the foreground is one in the background"
    RECREATES_WHILE_OLD_PODS_RUN = "the strategy Recreate is taken for a rolling update"
    REFUSES_LONG_CLAIM_NAMES = "pods with long names get no claims from templates"
    REFUSES_MORE_THAN_16_DEVICES = "claims with more than 16 devices are not allocated"
    REFUSES_TWO_DRIVERS = "claims with devices of two drivers are not allocated"
    REFUSES_UNUSED_CLAIMS = "a pod with a claim that no container names is not started"
    RELEASES_CLAIMS_OF_DELETED_CLASSES = "claims lose their devices when their class is deleted"
    RELEASES_CLAIMS_OF_DELETED_TEMPLATES = (
        "claims lose their devices when their template is deleted"
    )
    RELEASES_CLAIMS_OF_WITHDRAWN_DEVICES = "claims lose devices that their driver withdraws"
    RELEASES_TOO_EARLY = "a claim is released as soon as one of its pods is done"
    REMEMBERS_DEVICE_PLUGINS = (
        "a node that has had a device plugin never serves the resource from devices"
    )
    REQUEST_FILTER_IGNORED = "a container that names one request sees all devices of the claim"
    QUOTA_COUNTS_NO_CLAIMS = "a quota does not count the claims of a namespace"
    QUOTA_OF_EXTENDED_RESOURCES_FORGETS_CLAIMS = (
        "a quota on an extended resource counts pods alone, and not claims for its class"
    )
    RESERVES_CLAIMS_FOR_ANY_NUMBER = "a claim can be reserved for any number of consumers"
    RESERVES_FOR_ENDED_PODS = "a shared claim is reserved again for a pod that has ended"
    RESERVES_CLAIMS_WITHOUT_ALLOCATION = "a claim can be reserved that is not allocated"
    RETURNS_STORED_FORM = "objects are read in their stored form whatever version was asked for"
    ROLLS_WITHOUT_WAITING = "a rolling update ends old pods before the new ones are ready"
    RUNS_PODS_WITHOUT_ALLOCATION = "a pod is run though its claim has no device yet"
    SAYS_IT_IN_OTHER_WORDS = "the scheduler says in words of its own why a pod is not scheduled"
    SAYS_NOTHING_OF_CLAIMS = "that a claim cannot be made is told in no event"
    SAYS_NO_REASON = "the scheduler does not say why a pod is not scheduled"
    SCHEDULES_BEYOND_THE_LIMIT = "a pod is bound though its claim has as many consumers as it may"
    SEES_ALL_CLAIMS = "every container of a pod sees all devices of the pod"
    SELECTORS_SEE_NO_ATTRIBUTES = "the scheduler evaluates selectors without attributes of devices"
    SERVES_RETIRED_CLAIMS = "the API server still takes claims of v1alpha2"
    SERVES_RETIRED_CLASSES = "the API server still takes classes of v1alpha2"
    SERVES_RETIRED_TEMPLATES = "the API server still takes templates of v1alpha2"
    SHARES_ALL_DEVICES = "devices are given to several claims whether they allow it or not"
    SHARES_DEVICES_OF_EXTENDED_RESOURCES = (
        "the containers of a pod share the devices of an extended resource"
    )
    SHARES_NODE_RESOURCES = "a claim for a part of the node's own resources is used by several pods"
    SHARES_TEMPLATE_CLAIM = "pods that use the same template share one generated claim"
    SHOWS_NEW_FORM_TO_OLD_CLIENTS = (
        "what was written in v1 is shown to clients of older versions as it is"
    )
    SIDECARS_SEE_NOTHING = "init containers that go on running get no devices"
    METADATA_OF_ANOTHER_CLAIM = "the files that describe devices to containers name another claim"
    SHOWS_ANOTHER_CLAIM = "the environment of containers names another claim than theirs"
    SLICES_HAVE_BUS_IDS_AS_ROOTS = "slices have as PCIe root of a device its own address"
    SLICES_HAVE_OTHER_UUIDS = "slices have for each device the uuid of another"
    SLICES_PROMISE_MORE_MEMORY = "slices promise twice the memory that devices have"
    SLICES_WITHOUT_OWNER = "the slices of the driver belong to no node"
    STATEFUL_PODS_GET_NEW_NAMES = "a pod of a StatefulSet that is gone comes again under a new name"
    STATEFUL_SETS_KEEP_OLD_PODS = "an update of a StatefulSet reaches no pods that it has"
    STATEFUL_SETS_KEEP_THEIR_PODS = "a StatefulSet that is scaled to 0 is left as it is"
    STATEFUL_SETS_WAIT_FOR_NO_POD = "a StatefulSet makes and ends all of its pods at once"
    STATEFUL_SETS_END_FIRST_PODS_FIRST = "of too many pods a StatefulSet ends the first first"
    TAKES_ANY_NODE_OPERATIONS = "a slice may skip preparing without unpreparing"
    TAKES_ANY_NUMBER_OF_ALTERNATIVES = "a request may have alternatives without number"
    TAKES_ANY_NUMBER_OF_TAINTS = "a device may have taints without number"
    TAKES_ANY_POOL_NAME = "names of pools may have any form"
    TAKES_ANY_REPORT = "what a driver reports of devices is not checked"
    TAKES_ANY_RESOURCE_NAME = "extended resources of classes may have any name"
    TAKES_ANY_TAINT_RULE = "a taint rule can be changed to one that is not valid"
    TAKES_ANY_TOLERATION = "tolerations are not checked"
    TAKES_DELETED_CLAIMS = "the scheduler gives a claim that is being deleted to a new pod"
    TAKES_LISTS_OF_ANY_LENGTH = "lists in claims may be of any length"
    TAKES_NAMES_OF_ANY_FORM = "names in a claim may have any form"
    TAKES_NAMES_TWICE = "names in a claim need not be unique"
    TAKES_UNKNOWN_VALUES = "unknown values in claims are taken"
    TEMPLATE_LOSES_LABELS = "claims made from a template lack its labels"
    TEMPLATE_LOSES_SELECTORS = "claims made from a template lack its selectors"
    TIES_NETWORK_CLAIMS_TO_A_NODE = (
        "a network device is tied to the node of the local devices beside it"
    )
    USES_INCOMPLETE_POOLS = "devices of pools are used before all slices are published"
    USES_OLD_GENERATIONS = "devices of older generations of a pool are still used"
    USES_POOLS_WITH_DUPLICATES = "of devices of the same name in a pool the first is used"
    VALUES_BESIDE_LISTS_ARE_UNKNOWN = "a single value never agrees with a list"
    WAITS_FOR_UNNEEDED_CLAIMS = (
        "a pod waits for a claim of which its status says that there is none"
    )
    WRONG_DEVICE_IN_CONTAINER = "a container gets another device than the one allocated"
    WRONG_VERSION_CONVERSION = "v1beta1 requests lose their selectors when they are stored"
    ZERO_OF_AN_EXTENDED_RESOURCE_IS_ONE = (
        "a pod that asks for none of an extended resource gets one"
    )
    DRIVER_LEAVES_CLAIMS_OF_THE_OLD = (
        "the next version of a driver does not unprepare what the old one has prepared"
    )
    DRIVER_LOSES_CDI_SPECS = "after a reboot the driver tells of CDI devices that are gone"
    CALLS_OF_DRIVERS_ARE_NOT_COUNTED = (
        "the kubelet does not count in its metrics what it asks drivers"
    )
    GENERATED_CLAIMS_ARE_NOT_COUNTED = (
        "the controller manager does not count in its metrics the claims that it makes"
    )
    EXTENDED_CLAIMS_ARE_NOT_COUNTED = (
        "the scheduler does not count in its metrics the claims that it makes"
    )
    PREPARATIONS_COUNT_AS_ERRORS = (
        "the kubelet counts in its metrics what it prepared well as an error"
    )
    UNPREPARING_IS_NOT_COUNTED = (
        "the kubelet does not count in its metrics that it unprepared claims"
    )
    LISTS_ALL_CLAIMS_OF_THE_POD = "PodResources lists for a container what others of its pod use"
    LISTS_NO_GENERATED_CLAIMS = "PodResources lists no claims that were made from a template"
    DRIVER_TAKES_OVER_UNREGISTERED = (
        "the next version of a driver takes the sockets of the old one, though it never registers"
    )
    KUBELET_ASKS_CRASHED_INSTANCES = (
        "the kubelet asks the newest instance of a driver, also one that has crashed"
    )
    KUBELET_ASKS_EVERY_INSTANCE = "a claim is prepared by each instance of its driver that runs"
    KUBELET_FORGETS_DRIVERS_THAT_ARE_DOWN = (
        "a kubelet that starts forgets of its claims the drivers that do not run then"
    )
    KUBELET_FORGETS_REFUSED_CLAIMS = (
        "a claim that one driver has refused is not unprepared by the other"
    )
    KUBELET_GIVES_DEVICES_OF_ONE_DRIVER = (
        "a container gets of a claim the devices of one driver alone"
    )
    KUBELET_FORGETS_GONE_PODS = (
        "a kubelet that starts forgets what it had prepared for pods that are gone"
    )
    KUBELET_GIVES_UP_UNREGISTERED_DRIVERS = "a pod whose driver comes late is never prepared"
    KUBELET_KEEPS_SLICES_OF_GONE_DRIVERS = "the slices of a driver that is gone stay"
    KUBELET_LETS_PODS_GO_UNPREPARED = "a pod goes though its claim could not be unprepared"
    KUBELET_LOSES_WAITING_PODS = "a kubelet that starts leaves pods alone that were waiting"
    KUBELET_RESTARTS_CONTAINERS = "a kubelet that starts ends all containers"
    KUBELET_UNPREPARES_WITH_ONE_DRIVER = (
        "a pod goes when the driver of its first claim has unprepared"
    )
    KUBELET_WAITS_FOR_ALL_DRIVERS = "no pod starts while one of the node's drivers does not run"
    KUBELET_UNPREPARES_AT_START = "a kubelet that starts unprepares claims in use"
    KUBELET_WIPES_SLICES_OF_UPDATED_DRIVERS = (
        "the slices of a driver go half a minute after its old instance has ended"
    )
    KUBELET_WIPES_SLICES_AT_ONCE = "the slices of a driver go as soon as it stops"
    LEAVES_PODS_ON_LOST_NODES = "pods of a node that is lost are not deleted"
    MANAGER_MISSES_WHAT_HAPPENED = (
        "claims of pods that went while the controller manager was down stay reserved"
    )
    RELEASES_CLAIMS_ON_LOST_NODES = "the claim of a pod that is deleted on a lost node is released"
    SCHEDULER_FREES_HALF_BOUND = (
        "a scheduler that starts frees the devices of pods that are not bound yet"
    )
    SCHEDULER_SEES_ONLY_NEW_PODS = "a scheduler that starts leaves pods alone that were waiting"
    USES_NODES_THAT_ARE_NOT_READY = "pods are sent to nodes that are not ready"
    CDI_EDITS_OF_SPECS_ARE_LOST = "containers get what CDI specs say of devices, and not of all"
    CDI_IDS_OF_NOTHING = "the kubelet lists CDI ids that no spec defines"
    CDI_VERSION_TOO_OLD = "a CDI spec uses what its version does not have"
    CONTAINERS_OPEN_EVERY_DEVICE = "a container may open device files of whatever number"
    DEVICE_FILES_CANNOT_BE_OPENED = "a container gets a device file without the right to open it"
    DEVICE_FILES_OF_ONE_NUMBER = "the device files of all devices have the number of the first"
    WATCHES_ALL_NODES = "a watch of the slices of one node tells of those of all nodes"
    WATCHES_ALL_POOLS = "a watch of the slices of one pool tells of those of all pools"
    WATCHES_MISS_WHAT_LEAVES = "a watch does not tell that an object has lost the label"
    WATCHES_TELL_DELETIONS_LATE = "a watch tells a deletion after what happened next"

    @property
    def title(self) -> str:
        """The name in the kill matrix and of tests, for example ``double-allocation``."""
        return self.name.lower().replace("_", "-")
