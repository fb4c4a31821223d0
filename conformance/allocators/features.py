"""Tells which features of DRA a question is about: what its objects say, feature by feature.

The names are upstream's where there is one (fields of structured.Features).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kube.slices import is_allocated, results_of

Json = Mapping[str, Any]


def features_of(question: Json) -> tuple[str, ...]:
    """Return the features that a question uses, in the order of :data:`FEATURES`."""
    return tuple(name for name, (uses, _) in FEATURES.items() if uses(question))


def _list(owner: Json, field: str) -> Iterator[Json]:
    """Yield the items of a list; one that is null is empty, as Go reads it."""
    for item in owner.get(field) or ():
        yield item or {}


def _pods(question: Json) -> Iterator[Json]:
    """Yield the pods of a question, as fields ``claims`` and ``pod``."""
    yield question
    yield from _list(question, "following")


def _claims(question: Json) -> Iterator[Json]:
    for pod in _pods(question):
        yield from _list(pod, "claims")


def _requests(question: Json) -> Iterator[Json]:
    """Yield what the claims to allocate ask for: ``exactly``, or each alternative."""
    for claim in _claims(question):
        devices = (claim.get("spec") or {}).get("devices") or {}
        for request in _list(devices, "requests"):
            if request.get("exactly"):
                yield request["exactly"]
            yield from _list(request, "firstAvailable")


def _constraints(question: Json) -> Iterator[Json]:
    for claim in _claims(question):
        yield from _list((claim.get("spec") or {}).get("devices") or {}, "constraints")


def _slices(question: Json) -> Iterator[Json]:
    for item in _list(question, "slices"):
        yield item.get("spec") or {}


def _devices(question: Json) -> Iterator[Json]:
    for spec in _slices(question):
        yield from _list(spec, "devices")


def _results(question: Json) -> Iterator[Json]:
    for claim in _list(question, "allocated"):
        yield from (result or {} for result in results_of(claim))


def _any(
    items: Callable[[Json], Iterator[Json]], *fields: str, value: object = None
) -> Callable[[Json], bool]:
    """Return whether one of the items has one of the fields, with that value if one is given."""

    def uses(question: Json) -> bool:
        return any(
            item.get(field) == value if value is not None else bool(item.get(field))
            for item in items(question)
            for field in fields
        )

    return uses


def _has_list_attributes(question: Json) -> bool:
    lists = {"bools", "ints", "strings", "versions"}
    return any(
        not lists.isdisjoint(value or {})
        for device in _devices(question)
        for value in (device.get("attributes") or {}).values()
    )


def _has_compatibility_groups(question: Json) -> bool:
    return any(
        use.get("compatibilityGroups")
        for device in _devices(question)
        for use in _list(device, "consumesCounters")
    ) or _any(_devices, "compatibilityGroups")(question)


def _is_updated(question: Json) -> bool:
    """Return whether a pool is incomplete, or has slices of several generations."""
    pools: dict[tuple[Any, Any], list[Json]] = {}
    for spec in _slices(question):
        pool = spec.get("pool") or {}
        pools.setdefault((spec.get("driver"), pool.get("name")), []).append(pool)
    return any(
        len({item.get("generation") for item in found}) > 1
        or any(item.get("resourceSliceCount") != len(found) for item in found)
        for found in pools.values()
    )


def _has_allocated_claims(question: Json) -> bool:
    return any(map(is_allocated, _claims(question)))


def _has_alternatives(question: Json) -> bool:
    return any(
        request.get("firstAvailable")
        for claim in _claims(question)
        for request in _list((claim.get("spec") or {}).get("devices") or {}, "requests")
    )


def _either(*rules: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda question: any(rule(question) for rule in rules)


FEATURES: Final[Mapping[str, tuple[Callable[[Json], bool], str]]] = {
    "selectors": (_any(_requests, "selectors"), "a request selects devices by CEL"),
    "prioritizedList": (_has_alternatives, "a request has alternatives"),
    "all": (_any(_requests, "allocationMode", value="All"), "a request wants all devices"),
    "adminAccess": (
        lambda question: (
            _any(_requests, "adminAccess")(question) or _any(_results, "adminAccess")(question)
        ),
        "a request or an allocation has admin access",
    ),
    "matchAttribute": (_any(_constraints, "matchAttribute"), "devices must be alike"),
    "distinctAttribute": (_any(_constraints, "distinctAttribute"), "devices must differ"),
    "deviceTaints": (_any(_devices, "taints"), "a device is tainted"),
    "partitionableDevices": (_any(_devices, "consumesCounters"), "devices draw on counters"),
    "consumableCapacity": (
        lambda question: (
            _any(_devices, "allowMultipleAllocations")(question)
            or _any(_requests, "capacity")(question)
        ),
        "devices are shared, or a request wants capacity",
    ),
    "deviceBindingAndStatus": (_any(_devices, "bindingConditions"), "a device is prepared first"),
    "listTypeAttributes": (_has_list_attributes, "an attribute is a list"),
    "optionalNodeOperations": (
        _any(_slices, "skipNodeOperations"),
        "a slice skips node operations",
    ),
    "derivedAttributes": (_any(_requests, "derivedAttributes"), "a request derives attributes"),
    "compatibilityGroups": (_has_compatibility_groups, "counters have groups"),
    "nodeSelector": (_any(_slices, "nodeSelector"), "a slice is for the nodes of a selector"),
    "allNodes": (_any(_slices, "allNodes"), "a slice is for all nodes"),
    "perDeviceNodeSelection": (
        _any(_slices, "perDeviceNodeSelection"),
        "each device has its nodes",
    ),
    "updating": (_is_updated, "a pool is incomplete, or has several generations"),
    "inUse": (lambda question: any(True for _ in _results(question)), "devices are in use"),
    "severalClaims": (
        lambda question: any(len(pod.get("claims") or ()) > 1 for pod in _pods(question)),
        "a pod has several claims",
    ),
    "allocatedClaims": (_has_allocated_claims, "a claim of the pod has its devices already"),
    "severalPods": (
        lambda question: bool(question.get("following")),
        "pods come one after the other",
    ),
    "extendedResources": (
        lambda question: any(pod.get("pod") for pod in _pods(question)),
        "a pod asks for extended resources of classes",
    ),
    "template": (lambda question: question.get("place") == "template", "the node is to be made"),
}
"""Feature -> whether a question uses it, and what it is, in a few words."""
