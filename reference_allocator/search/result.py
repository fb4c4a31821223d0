"""From the devices that a search found to v1 AllocationResults."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reference_allocator import api
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules
from reference_allocator.matching.resolved import ClaimRequests, Taken

ShareIds = Callable[[str], str]
"""Makes a share id from a text that is unique for the share."""

_NAMESPACE = uuid.UUID("5f0ae5b2-9a49-5d0e-8a3c-0d6f6a1c9d55")


def derived_share_id(text: str) -> str:
    """A UUID that depends only on the text, so that the same input gives the same allocation."""
    return str(uuid.uuid5(_NAMESPACE, text))


def allocation_result(
    claim: ClaimRequests,
    alternatives: Sequence[int],
    taken: Sequence[Taken],
    node: api.Node,
    features: Features,
    rules: MinorRules,
    share_ids: ShareIds,
) -> dict[str, Any]:
    """The v1 AllocationResult of one claim.

    Args:
        alternatives: for each request the index of the alternative that was used.
        taken: the devices in the order in which they were found.
        features: what results may contain.

    Raises:
        AllocationError: a slice has a node selector with several terms.
    """
    chosen = [options[index] for options, index in zip(claim.requests, alternatives, strict=True)]
    unique = claim.claim.uid or claim.claim.ref
    results = [
        _device(item, unique, number, features, share_ids) for number, item in enumerate(taken)
    ]
    config: list[dict[str, Any]] = []
    if claim.claim.config or any(request.device_class.config for request in chosen):
        config = config_results(
            claim.claim,
            [request.name for request in chosen],
            [request.device_class for request in chosen],
            rules,
        )
    devices: dict[str, Any] = {}
    if results:
        devices["results"] = results
    if config:
        devices["config"] = config
    result: dict[str, Any] = {"devices": devices}
    selector = _node_selector(taken, node, claim)
    if selector is not None:
        result["nodeSelector"] = selector
    return result


def _device(
    taken: Taken, unique: str, number: int, features: Features, share_ids: ShareIds
) -> dict[str, Any]:
    request, entry = taken.request, taken.entry
    device, name = entry.device, entry.id
    result: dict[str, Any] = {
        "request": request.name,
        "driver": name.driver,
        "pool": name.pool,
        "device": name.device,
    }
    if request.admin_access:
        result["adminAccess"] = True
    if request.spec.tolerations:
        result["tolerations"] = [item.to_dict() for item in request.spec.tolerations]
    if features.device_binding_and_status:
        if device.binding_conditions:
            result["bindingConditions"] = list(device.binding_conditions)
        if device.binding_failure_conditions:
            result["bindingFailureConditions"] = list(device.binding_failure_conditions)
    if taken.consumption is not None:
        result["shareID"] = share_ids(f"{unique}#{number}:{name}")
        if taken.consumption.texts:
            result["consumedCapacity"] = dict(taken.consumption.texts)
    if entry.slice.skip_node_operations:
        result["skipNodeOperations"] = list(entry.slice.skip_node_operations)
    return result


def _node_selector(
    taken: Iterable[Taken], node: api.Node, claim: ClaimRequests
) -> dict[str, Any] | None:
    """Where the devices can be used: on one node, on those of a selector, or (None) anywhere."""
    fields: list[Mapping[str, Any]] = []
    expressions: list[Mapping[str, Any]] = []
    for item in taken:
        node_name, selector = placement(item)
        if node_name is not None or item.entry.device.binds_to_node:
            name = {"key": "metadata.name", "operator": "In", "values": [node.name]}
            return {"nodeSelectorTerms": [{"matchFields": [name]}]}
        if selector is None or not selector.terms:
            continue
        if len(selector.terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.claim.name}: unsupported "
                f"ResourceSlice.NodeSelector with {len(selector.terms)} terms"
            )
        _add_new(selector.terms[0].match_fields, fields)
        _add_new(selector.terms[0].match_expressions, expressions)
    term: dict[str, Any] = {}
    if expressions:
        term["matchExpressions"] = expressions
    if fields:
        term["matchFields"] = fields
    return {"nodeSelectorTerms": [term]} if term else None


def placement(taken: Taken) -> tuple[str | None, api.NodeSelector | None]:
    """The nodeName and nodeSelector that apply to a device: its own or those of its slice."""
    item, device = taken.entry.slice, taken.entry.device
    if item.per_device_node_selection:
        return device.node_name, device.node_selector
    return item.node_name, item.node_selector


def _add_new(requirements: Iterable[api.Requirement], found: list[Mapping[str, Any]]) -> None:
    for requirement in requirements:
        key = _comparable(requirement.raw)
        if all(_comparable(existing) != key for existing in found):
            found.append(dict(requirement.raw))


def _comparable(requirement: Mapping[str, Any]) -> tuple[str, str, frozenset[str]]:
    return (
        requirement.get("key", ""),
        requirement.get("operator", ""),
        frozenset(requirement.get("values") or ()),
    )


def config_results(
    claim: api.ResourceClaim,
    names: Sequence[str],
    classes: Sequence[api.DeviceClass],
    rules: MinorRules,
) -> list[dict[str, Any]]:
    """The `devices.config` of an AllocationResult.

    Args:
        names: for each request the name that results use, `request` or `request/subrequest`.
        classes: for each request the class of what was chosen.

    Returns:
        v1 DeviceAllocationConfiguration objects.
    """
    found = [*_of_classes(names, classes), *_of_claim(claim, names, rules)]
    whole = () if rules.config_names_requests else names
    return [_entry(source, requests, whole, body) for source, requests, body in found]


_Entry = tuple[str, Sequence[str], Mapping[str, Any]]


def _of_classes(names: Sequence[str], classes: Sequence[api.DeviceClass]) -> list[_Entry]:
    users: dict[str, list[str]] = {}
    by_name: dict[str, api.DeviceClass] = {}
    for name, device_class in zip(names, classes, strict=True):
        users.setdefault(device_class.name, []).append(name)
        by_name.setdefault(device_class.name, device_class)
    return [
        ("FromClass", requests, config.configuration)
        for class_name, requests in users.items()
        for config in by_name[class_name].config
    ]


def _of_claim(claim: api.ResourceClaim, names: Sequence[str], rules: MinorRules) -> list[_Entry]:
    found: list[_Entry] = []
    for config in claim.config:
        named = [
            name
            for name, request in zip(names, claim.requests, strict=True)
            if name in config.requests or request.name in config.requests
        ]
        times = len(named) if rules.config_names_requests else min(len(named), 1)
        entry = ("FromClaim", config.requests, config.configuration)
        found += [entry] * (times if config.requests else 1)
    return found


def _entry(
    source: str, requests: Sequence[str], whole: Sequence[str], body: Mapping[str, Any]
) -> dict[str, Any]:
    listed = set(requests)
    covers_all = bool(whole) and all(
        name in listed or name.partition("/")[0] in listed for name in whole
    )
    entry: dict[str, Any] = {"source": source}
    if requests and not covers_all:
        entry["requests"] = list(requests)
    entry.update(body)
    return entry
