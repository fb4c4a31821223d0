"""The v1 AllocationResults of the devices that a search has found."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reference_allocator import api
from reference_allocator.cluster.pools import PoolDevice
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.search.frames import DeviceFrame

ShareIds = Callable[[str], str]
"""A function that makes a share id from a text that is unique for the share."""

_NAMESPACE = uuid.UUID("5f0ae5b2-9a49-5d0e-8a3c-0d6f6a1c9d55")


def derived_share_id(text: str) -> str:
    """Return a UUID that depends only on the text: the same input gives the same allocation."""
    return str(uuid.uuid5(_NAMESPACE, text))


def allocation_result(
    claim: ClaimRequests,
    config: list[dict[str, Any]],
    taken_devices: Sequence[DeviceFrame],
    node: api.Node,
    features: Features,
    rules: MinorRules,
    share_ids: ShareIds,
) -> dict[str, Any]:
    """Make the v1 AllocationResult of one claim.

    Args:
        config: what `config_results` returns.
        taken_devices: the devices in the order in which they were found.
        features: the features, which say what results may contain.
        rules: those of the minor, which say it, too.

    Raises:
        AllocationError: a slice has a node selector with several terms.
    """
    results: list[dict[str, Any]] = []
    for item in taken_devices:
        request, entry = item.request, item.entry
        driver, pool, device = entry.id
        device_result: dict[str, Any] = {
            "request": request.name,
            "driver": driver,
            "pool": pool,
            "device": device,
        }
        if request.special:
            _add_request_fields(device_result, request, rules)
        if entry.special:
            _add_device_fields(device_result, entry, features)
        if item.consumption is not None:
            unique = claim.claim.uid or claim.claim.ref
            device_result["shareID"] = share_ids(
                f"{unique}#{len(results)}:{driver}/{pool}/{device}"
            )
            if item.consumption.texts:
                device_result["consumedCapacity"] = dict(item.consumption.texts)
        results.append(device_result)
    devices: dict[str, Any] = {"results": results} if results else {}
    if config:
        devices["config"] = config
    selector = _node_selector(taken_devices, node, claim)
    return (
        {"devices": devices} if selector is None else {"devices": devices, "nodeSelector": selector}
    )


def _add_request_fields(result: dict[str, Any], request: Request, rules: MinorRules) -> None:
    if request.admin_access:
        result["adminAccess"] = True
    if request.spec.tolerations and not rules.leaves_out_tolerations:
        result["tolerations"] = [item.to_dict() for item in request.spec.tolerations]


def _add_device_fields(result: dict[str, Any], entry: PoolDevice, features: Features) -> None:
    device = entry.device
    if features.device_binding_and_status:
        if device.binding_conditions:
            result["bindingConditions"] = list(device.binding_conditions)
        if device.binding_failure_conditions:
            result["bindingFailureConditions"] = list(device.binding_failure_conditions)
    if entry.slice.skip_node_operations:
        result["skipNodeOperations"] = list(entry.slice.skip_node_operations)


def _node_selector(
    taken_devices: Iterable[DeviceFrame], node: api.Node, claim: ClaimRequests
) -> dict[str, Any] | None:
    """Return the selector of nodes that can use the devices: of one node, several, or None: any."""
    fields: list[Mapping[str, Any]] = []
    expressions: list[Mapping[str, Any]] = []
    for item in taken_devices:
        device = item.entry.device
        placed = device if item.entry.slice.per_device_node_selection else item.entry.slice
        if placed.node_name is not None or device.binds_to_node:
            name = {"key": "metadata.name", "operator": "In", "values": [node.name]}
            return {"nodeSelectorTerms": [{"matchFields": [name]}]}
        selector = placed.node_selector
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


def _add_new(
    requirements: Iterable[api.Requirement], requirements_so_far: list[Mapping[str, Any]]
) -> None:
    for requirement in requirements:
        key = _comparable_requirement(requirement.raw)
        if all(_comparable_requirement(existing) != key for existing in requirements_so_far):
            requirements_so_far.append(dict(requirement.raw))


def _comparable_requirement(requirement: Mapping[str, Any]) -> tuple[str, str, frozenset[str]]:
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
    """Make the `devices.config` of an AllocationResult.

    Args:
        names: for each request the name that results use, `request` or `request/subrequest`.
        classes: for each request the class of the alternative that was chosen.

    Returns:
        v1 DeviceAllocationConfiguration objects.
    """
    configs = [*_configs_of_classes(names, classes), *_configs_of_claim(claim, names, rules)]
    all_names = () if rules.config_names_requests else names
    return [_make_entry(source, requests, all_names, body) for source, requests, body in configs]


_Config = tuple[str, Sequence[str], Mapping[str, Any]]


def _configs_of_classes(names: Sequence[str], classes: Sequence[api.DeviceClass]) -> list[_Config]:
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


def _configs_of_claim(
    claim: api.ResourceClaim, names: Sequence[str], rules: MinorRules
) -> list[_Config]:
    configs: list[_Config] = []
    for config in claim.config:
        named = [
            name
            for name, request in zip(names, claim.requests, strict=True)
            if name in config.requests or request.name in config.requests
        ]
        times = len(named) if rules.config_names_requests else min(len(named), 1)
        entry = ("FromClaim", config.requests, config.configuration)
        configs += [entry] * (times if config.requests else 1)
    return configs


def _make_entry(
    source: str, requests: Sequence[str], all_names: Sequence[str], body: Mapping[str, Any]
) -> dict[str, Any]:
    listed = set(requests)
    covers_all = bool(all_names) and all(
        name in listed or name.partition("/")[0] in listed for name in all_names
    )
    entry: dict[str, Any] = {"source": source}
    if requests and not covers_all:
        entry["requests"] = list(requests)
    entry.update(body)
    return entry
