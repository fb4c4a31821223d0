"""Slices and taint rules that the API server takes and should refuse."""

from __future__ import annotations

from kube.values import Obj
from kubesim.apiserver.conversion import list_devices
from tests.mutants.apiserver.overlooked_fields import CHANGED, NEW, SLICE, overlooks, table
from tests.mutants.replacing import Defects

_POLICY = r"requestPolicy"


_RANGE = r"requestPolicy\.validRange"


_VALUES = r"requestPolicy\.validValues"


def _tainted(obj: Obj) -> bool:
    return any(device.get("taints") for device in list_devices(obj))


def _partitioned(obj: Obj) -> bool:
    return any(device.get("consumesCounters") for device in list_devices(obj))


def _many_values(obj: Obj) -> bool:
    return any(
        len((capacity.get("requestPolicy") or {}).get("validValues") or ()) > 10
        for device in list_devices(obj)
        for capacity in (device.get("capacity") or {}).values()
    )


def _empty_lists(obj: Obj) -> bool:
    return any(
        value == []
        for device in list_devices(obj)
        for attribute in (device.get("attributes") or {}).values()
        for value in attribute.values()
    )


_64_DEVICES = r"^spec\.devices: .*at most 64"


DEFECTS: Defects = {
    "takes-any-node-operations": overlooks(r"spec\.skipNodeOperations", SLICE, at=(NEW,)),
    "takes-any-number-of-taints": overlooks(
        r"spec\.devices\[0\]\.taints.*must have at", SLICE, at=(NEW,)
    ),
    # Since 1.37 the declared rule has a word about them, too: it sees no value there.
    "takes-empty-lists": overlooks(
        r"attributes\[.*(must not be empty|must specify one of)", SLICE, when=_empty_lists
    ),
    "takes-any-pool-name": overlooks(r"spec\.pool\.name", SLICE, at=(NEW,)),
    "takes-5-binding-failure-conditions": overlooks(
        r"\.bindingFailureConditions: .*Too many", SLICE
    ),
    "changed-taints-are-not-checked": overlooks(
        r"^spec\.devices\[\d+\]\.taints", SLICE, at=(CHANGED,)
    ),
    "takes-65-devices-with-taints": overlooks(_64_DEVICES, SLICE, when=_tainted),
    "takes-65-devices-with-counters": overlooks(_64_DEVICES, SLICE, when=_partitioned),
    "takes-65-devices-with-lists": overlooks(
        _64_DEVICES, SLICE, when=lambda obj: not _tainted(obj) and not _partitioned(obj)
    ),
    "takes-11-valid-values": overlooks(_VALUES, SLICE, when=_many_values),
    **table(
        "ResourceSlice",
        {
            "takes-129-devices": (r"^spec\.devices$", "at most 128"),
            "takes-slices-without-nodes": (r"^spec$", "Required value"),
            "takes-slices-with-two-kinds-of-nodes": (r"^spec$", "multiple fields"),
            "takes-slices-of-a-node-without-name": (r"^spec\.nodeName$", "non-empty"),
            "takes-fields-of-nodes-that-are-false": (r"^spec\.(all|per)", "set to true"),
            "takes-selectors-of-two-terms": (r"nodeSelectorTerms$", "exactly one"),
            "takes-any-operator-of-nodes": (r"operator$", "not a valid selector operator"),
            "takes-counters-beside-devices": (r"^spec$", "only one of `sharedCounters`"),
            "takes-pools-of-no-slice": (r"resourceSliceCount$", ""),
            "takes-negative-generations": (r"pool\.generation$", ""),
            "takes-device-names-twice": (r"^spec\.devices\[\d+\]$", "Duplicate"),
            "takes-9-counter-sets": (r"^spec\.sharedCounters$", "must have at most"),
            "takes-counter-sets-twice": (r"^spec\.sharedCounters\[", "Duplicate"),
            "takes-counter-sets-without-counters": (r"sharedCounters.*\.counters$", "Required"),
            "takes-33-counters-in-a-set": (r"sharedCounters.*counters$", "must have at most"),
            "takes-any-counter-name": (r"(sharedC|consumesC).*ounters$", "RFC 1123"),
            "takes-3-consumed-counter-sets": (r"consumesCounters$", "must have at most"),
            "takes-consumed-counter-sets-twice": (r"consumesCounters\[\d\]$", "Duplicate"),
            "takes-33-consumed-counters": (r"\]\.counters$", "must have at most"),
            "takes-consumption-of-nothing": (r"consumesCounters.*\.counters$", "Required"),
            "takes-33-attributes-and-capacities": (r"", "attributes and capacities must not"),
            "takes-49-attribute-values": (r"", "attribute values must not"),
            "takes-attributes-without-value": (r"attributes\[", "must specify one of"),
            "takes-any-version": (r"\.version$", "semver"),
            "takes-long-strings": (r"\.(string|version)$", "may not be more"),
            "takes-long-strings-in-lists": (r"\.(string|version)s\[", "may not be more"),
            "takes-any-attribute-name": (r"\.attributes$", ""),
            "takes-any-capacity-name": (r"\.capacity$", ""),
            "takes-policies-of-devices-that-are-not-shared": (_POLICY, "must be true"),
            "takes-both-policies": (_POLICY, "at the same time"),
            "takes-policies-without-default": (_POLICY, "required when valid"),
            "takes-valid-values-in-any-order": (_VALUES, "ascending"),
            "takes-valid-values-twice": (_VALUES, "Duplicate"),
            "takes-valid-values-above-capacity": (_VALUES, "larger than capacity"),
            "takes-defaults-that-are-not-valid": (_VALUES, "not valid according"),
            "takes-ranges-without-minimum": (_RANGE, "required when validRange"),
            "takes-minima-above-capacity": (_RANGE, "min is larger than capacity"),
            "takes-maxima-above-capacity": (_RANGE, "max is larger than capacity"),
            "takes-defaults-below-minimum": (_RANGE, "less than min"),
            "takes-steps-of-nothing": (_RANGE, "greater than zero"),
            "takes-steps-above-capacity": (_RANGE, "one step"),
            "takes-bounds-between-steps": (_RANGE, "not a multiple"),
            "takes-finer-bounds-than-thousandths": (_RANGE, "milli value"),
            "takes-bounds-below-zero": (_RANGE, "greater than or equal to 0"),
            "takes-nodes-of-devices-without-leave": (r"devices\[", "can only be set if"),
            "takes-devices-without-nodes": (r"devices\[", "Required value: exactly one of"),
            "takes-devices-with-two-kinds-of-nodes": (r"devices\[", 'Invalid value: "{'),
            "takes-devices-of-a-node-without-name": (r"devices.*nodeName$", "must not be empty"),
            "takes-devices-for-no-nodes": (r"devices.*allNodes$", "set to true"),
            "takes-5-binding-conditions": (r"binding.*onditions$", "must have at most"),
            "takes-binding-conditions-twice": (r"binding.*onditions\[", "Duplicate"),
            "takes-conditions-for-both": (r"bindingFailure", "must not overlap"),
            "takes-any-binding-condition": (r"binding.*onditions\[", "must consist of"),
            "takes-binding-without-failure": (r"bindingFailureConditions$", "are required"),
            "takes-failure-without-binding": (r"bindingConditions$", "are required"),
            "takes-extended-resources-of-nodes": (r"nodeAllocatable", "node allocatable resource"),
            "takes-node-resources-of-nothing": (r"nodeAllocatable", "mapping or overhead"),
            "takes-mappings-of-unknown-capacity": (r"capacityKey$", "Not found"),
            "takes-mappings-without-multiplier": (r"capacity(Multiplier|Key)$", "is required"),
            "takes-multipliers-of-zero": (r"Multiplier$", "must be positive"),
            "takes-overhead-of-nothing": (r"overhead$", "at least one"),
            "takes-negative-overhead": (r"overhead\.per", "non-negative"),
            "takes-3-compatibility-groups": (r"compatibilityGroups$", "must have at most"),
            "takes-compatibility-groups-twice": (r"compatibilityGroups\[", "Duplicate"),
            "takes-any-compatibility-group": (r"compatibilityGroups\[", "RFC 1123"),
            "takes-partition-types-without-partitions": (r"partitionType", "may only be set"),
            "takes-partitions-without-type": (r"attributes\[", "must be set"),
            "takes-partition-types-of-any-kind": (r"attributes\[", "must be a string value"),
            "takes-node-operations-twice": (r"skipNodeOperations\[", "Duplicate"),
            "takes-taints-of-any-effect": (r"taint.*effect$", "Unsupported"),
            "takes-any-taint-key": (r"taint.*key$", ""),
            "takes-any-taint-value": (r"taint.*value$", ""),
        },
    ),
    **table(
        "DeviceTaintRule",
        {
            "takes-rules-of-any-effect": (r"taint\.effect$", "Unsupported"),
            "takes-rules-without-key": (r"taint\.key$", ""),
            "takes-rules-for-any-driver-name": (r"deviceSelector\.driver", ""),
            "takes-rules-for-any-pool-name": (r"deviceSelector\.pool", ""),
            "takes-rules-for-any-device-name": (r"deviceSelector\.device", ""),
            "takes-9-conditions-of-rules": (r"^status\.conditions$", "must have at most"),
        },
    ),
    "checks-new-slices-only": overlooks(
        r"spec\.(devices|shared|pool\.(res|gen))", SLICE, at=(CHANGED,)
    ),
    "changes-nodes-of-slices": overlooks("nodeName: .*immutable", SLICE),
    "changes-pools-of-slices": overlooks(r"pool\.name: .*immutable", SLICE),
    "changes-drivers-of-slices": overlooks("driver: .*immutable", SLICE),
}
