"""Questions as an older minor's allocator, or a newer one's, can be asked them.

What a minor lacks is left out, and so is what it is known to answer wrongly
(scenarios/known-issues.yaml) or at random. Each rule says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from reference_allocator.api import Node, ResourceSlice
from reference_allocator.api.quantity import parse_quantity
from reference_allocator.cluster.gathering import targets_node
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features, gates_of
from reference_allocator.gates import MINORS, gates_for_version
from tests.oracle.problems import STABLE
from tests.oracle.refused import bodies

Json = dict[str, Any]
_INT64_MAX = 2**63 - 1
_LACKING = ("partitionableDevices", "consumableCapacity", "deviceBindingAndStatus")
"""What 1.34 is not asked with. The last one's field has another name there, DeviceBinding: upstream
would be asked with it off, and ours with it on."""
_LISTS = frozenset({"bools", "ints", "strings", "versions"})


def adapt(question: Json, kubernetes: str) -> None:
    """Change a problem in place so that a minor can be asked it; a second time changes nothing.

    The fields that its API lacks are left out by `tests.oracle.comparing.compare`.
    """
    gates = gates_for_version(kubernetes)
    lacking = _LACKING if kubernetes == "1.34" else ()
    question["features"] = {
        name: on
        for name, on in question.get("features", {}).items()
        if gates.keys() >= {*gates_of(name)} and name not in lacking
    }
    features = Features.from_dict(question["features"])
    turned_on = {name for name, on in question["features"].items() if on}
    if _is_until(kubernetes, "1.36") and turned_on <= STABLE:
        # With what is left the stable implementation would be chosen, which ours does not follow:
        # it tries slices in any order.
        question.setdefault("allocator", "incubating")
    if kubernetes == "1.38" and features.are_stable:
        # There the stable implementation has all that is generally available, and ours words
        # errors as it does. It does not know skipNodeOperations, which an API server with that gate
        # off would not have stored.
        question.pop("allocator", None)
        for item in question.get("slices", ()):
            item["spec"].pop("skipNodeOperations", None)
    if _is_until(kubernetes, "1.36"):
        _leave_out_distinct_attributes(question)
        _show_counters_everywhere(question)
        _leave_out_shares_of_nothing(question)
        _leave_out_odd_amounts(question)
        _leave_out_compared_lists(question)
        _leave_out_all(question, features, kubernetes)
        if not features.consumable_capacity:
            _leave_out_consumable_capacity(question)
    if _is_until(kubernetes, "1.35"):
        _leave_out_binding_conditions(question, features)
        _arrange_slices(question)
        if features.partitionable_devices:
            _leave_out_late_refusals(question)
    if kubernetes == "1.34":
        question.pop("allocator", None)  # It cannot be told which implementation to take.
        _leave_out_alpha_features(question)
        _leave_out_taints_of_later_minors(question)


def _is_until(kubernetes: str, minor: str) -> bool:
    return MINORS.index(kubernetes) <= MINORS.index(minor)


def _leave_out_distinct_attributes(question: Json) -> None:
    """Ask for equal values where different ones are asked for.

    Until 1.36 only the last device of a request is compared (kubernetes/kubernetes#140600), and in
    1.34 addresses of values are (#135022). Implementations without consumable capacity do not know
    the field at all.
    """
    for claim in question.get("claims", ()):
        for constraint in claim["spec"]["devices"].get("constraints") or ():
            if "distinctAttribute" in constraint:
                constraint["matchAttribute"] = constraint.pop("distinctAttribute")


def _show_counters_everywhere(question: Json) -> None:
    """Let every node see the slices with counters, as it does until 1.36 (GatherPools).

    Ours has the rule of later minors, by which they are for the nodes that they name. A pool of
    another node can be incomplete or invalid only so.
    """
    for item in question.get("slices", ()):
        spec = item["spec"]
        if spec.get("sharedCounters"):
            for field in ("nodeName", "nodeSelector", "perDeviceNodeSelection"):
                spec.pop(field, None)
            spec["allNodes"] = True


def _leave_out_shares_of_nothing(question: Json) -> None:
    """Leave out shares in use that consume no capacity.

    Until 1.36 the counters of their device are asked for once more by each other share of it,
    because only consumed capacity tells that it is in use (deviceCapacityInUse).
    """
    for claim in (*question.get("allocated", ()), *question.get("claims", ())):
        devices = claim.get("status", {}).get("allocation", {}).get("devices", {})
        if "results" in devices:
            devices["results"] = [
                result
                for result in devices["results"]
                if "shareID" not in result or result.get("consumedCapacity")
            ]


def _leave_out_odd_amounts(question: Json) -> None:
    """Ask for little where an amount is asked for that is negative or that 64 bits do not hold.

    Until 1.36 it is given, or brought into a range of values with Go's overflow; since then it is
    an error (roundUpRange in consumable_capacity.go).
    """
    for body in bodies(question):
        requests = (body.get("capacity") or {}).get("requests") or {}
        for name, amount in requests.items():
            if not 0 <= parse_quantity(str(amount)).nanos < _INT64_MAX * 10**9:
                requests[name] = "1"


def _leave_out_compared_lists(question: Json) -> None:
    """Leave out lists where attributes are compared.

    Until 1.36 what lists have in common stays as small as it was with a device that was given back
    (remove of matchAttributeConstraint; 1.37 keeps a stack).
    """
    claims = question.get("claims", ())
    if not any(claim["spec"]["devices"].get("constraints") for claim in claims):
        return
    for item in question.get("slices", ()):
        for device in item["spec"].get("devices") or ():
            attributes = device.get("attributes") or {}
            for name in [name for name, value in attributes.items() if _LISTS & {*value}]:
                del attributes[name]


def _leave_out_all(question: Json, features: Features, kubernetes: str) -> None:
    """Ask for one device where all are asked for, in what a minor is known to answer otherwise.

    Until 1.36 devices with too little capacity left are left out (kubernetes/kubernetes#140769);
    until 1.35 a later alternative gets one device (#137347).
    """
    alternatives = {
        id(body)
        for claim in question.get("claims", ())
        for request in claim["spec"]["devices"].get("requests", ())
        for body in request.get("firstAvailable", ())
    }
    for body in bodies(question):
        is_wrong = features.consumable_capacity or (
            _is_until(kubernetes, "1.35") and id(body) in alternatives
        )
        if body.get("allocationMode") == "All" and is_wrong:
            body.update(allocationMode="ExactCount", count=1)


def _leave_out_consumable_capacity(question: Json) -> None:
    """Leave out what an API server with that gate off would not have stored.

    Until 1.36 implementations without the feature do not look at it, and until 1.35 do not show it
    to selectors.
    """
    for body in bodies(question):
        body.pop("capacity", None)
    for item in question.get("slices", ()):
        for device in item["spec"].get("devices") or ():
            device.pop("allowMultipleAllocations", None)


def _leave_out_late_refusals(question: Json) -> None:
    """Leave out why a device is refused after its counters were taken, and shares that take some.

    Until 1.35 it keeps them (kubernetes/kubernetes#140431, which 1.36.3 mends), and so does a share
    that is given back for another device (what allocateDevice returns).
    """
    for claim in question.get("claims", ()):
        claim["spec"]["devices"].pop("constraints", None)
    for item in question.get("slices", ()):
        for device in item["spec"].get("devices") or ():
            device.pop("taints", None)
            if device.get("allowMultipleAllocations"):
                device.pop("consumesCounters", None)


def _leave_out_binding_conditions(question: Json, features: Features) -> None:
    """Leave out conditions where pools with some are not tried in the order of their names.

    Until 1.35 only the implementation that is chosen for conditions looks at them, and puts pools
    last of which all slices have some after those of which some have (GatherPools in
    pools_experimental.go).
    """
    slices = question.get("slices", ())
    without = {
        pool
        for item, pool in zip(slices, list_pools(question), strict=True)
        if not _has_conditions(item)
    }
    for item, pool in zip(slices, list_pools(question), strict=True):
        if not features.device_binding_and_status or pool in without:
            for device in item["spec"].get("devices") or ():
                for field in ("bindingConditions", "bindingFailureConditions", "bindsToNode"):
                    device.pop(field, None)


def _has_conditions(item: Json) -> bool:
    return any("bindingConditions" in device for device in item["spec"].get("devices") or ())


def _arrange_slices(question: Json) -> None:
    """Put slices in the order in which both try them, by names of their own.

    Until 1.35 those of a pool are tried as they are given, those with binding conditions last, and
    pools in the order of a Go map, which is that of their first slices from a random one on
    (`tests.oracle.known_differences`, pools-in-any-order). Ours goes by names.
    """
    if not question.get("slices"):
        return
    question["slices"].sort(
        key=lambda item: (
            item["spec"]["driver"],
            item["spec"]["pool"]["name"],
            _has_conditions(item),
        )
    )
    counts: dict[tuple[Any, ...], int] = {}
    for number, item in enumerate(question["slices"]):
        item["metadata"]["name"] = f"s{number:03}-{item['metadata']['name']}"
        # Where they disagree, the first slice says how many there are: of those given, there, and
        # of the node's own, here.
        pool = item["spec"]["pool"]
        generation = (item["spec"]["driver"], pool["name"], pool.get("generation", 0))
        pool["resourceSliceCount"] = counts.setdefault(
            generation, pool.get("resourceSliceCount", 0)
        )


def ask_of_node(question: Json, node: Json) -> Json:
    """Return the question about one node, with the pools that are invalid there as the last ones.

    In 1.34 a pool fails the pod as soon as a device is looked for in it, so that the answer depends
    on the order of pools (`MinorRules.fails_pod_for_invalid_pool`): ours comes to such a pool when
    there is no other left. A pool of which the node sees a name twice can be right on another node.
    """
    sees = partial(_is_for, node=Node.from_dict(node))
    newest: dict[tuple[str, str], int] = {}
    names: dict[tuple[str, str, int], list[str]] = {}
    for item, pool in zip(question["slices"], list_pools(question), strict=True):
        if sees(item):
            generation = item["spec"]["pool"].get("generation", 0)
            newest[pool] = max(generation, newest.get(pool, generation))
            devices = item["spec"].get("devices") or ()
            names.setdefault((*pool, generation), []).extend(device["name"] for device in devices)
    listed = {pool: names[*pool, generation] for pool, generation in newest.items()}
    invalid = {pool for pool, devices in listed.items() if len({*devices}) < len(devices)}
    slices = list(zip(list_pools(question), question["slices"], strict=True))
    last = [item for pool, item in slices if pool in invalid]
    others = [item for pool, item in slices if pool not in invalid]
    return {**question, "nodes": [node], "slices": [*others, *last]}


def _is_for(item: Json, node: Node) -> bool:
    try:
        return targets_node(ResourceSlice.from_dict(item), node)
    except AllocationError:
        return False  # Its node selector does not parse, and the node's answer is an error.


def _leave_out_alpha_features(question: Json) -> None:
    """Leave partitionable devices and consumable capacity out, which are alpha in 1.34.

    There counters are those of a slice, not of a pool (checkAvailableCounters), no scenario asks
    for them, and ours has the rules of later minors. The capacity that is compared is that of the
    device whose place in its slice is the device's number in the request (allocateDevice), so that
    right questions are refused, or end in a panic.
    """
    for item in question.get("slices", ()):
        item["spec"].pop("sharedCounters", None)
        for device in item["spec"].get("devices") or ():
            device.pop("consumesCounters", None)
            device.pop("allowMultipleAllocations", None)


def _leave_out_taints_of_later_minors(question: Json) -> None:
    """Leave out taints with an effect that 1.34's API has not: there any taint is in the way."""
    for item in question.get("slices", ()):
        for device in item["spec"].get("devices") or ():
            if "taints" in device:
                device["taints"] = [
                    taint
                    for taint in device["taints"] or ()
                    if taint.get("effect") in ("NoSchedule", "NoExecute")
                ]


def list_pools(question: Json) -> Iterator[tuple[str, str]]:
    """Yield driver and name of the pool of each slice."""
    for item in question.get("slices", ()):
        yield item["spec"]["driver"], item["spec"]["pool"]["name"]
