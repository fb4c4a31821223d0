"""The v1 AllocationResults of the devices that a search has found."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reference_allocator import api
from reference_allocator.cluster.node import NodeView
from reference_allocator.cluster.pools import PoolDevice
from reference_allocator.errors import AllocationError
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules
from reference_allocator.matching.matcher import Matcher
from reference_allocator.matching.resolved import ClaimRequests, Request
from reference_allocator.search.frames import (
    END_OF_CLAIM,
    NOTHING_CHARGED,
    AlternativesFrame,
    Frame,
)

ShareIds = Callable[[str], str]
"""A function that makes a share id from a text that is unique for the share."""

_NAMESPACE = uuid.UUID("5f0ae5b2-9a49-5d0e-8a3c-0d6f6a1c9d55")


def derived_share_id(text: str) -> str:
    """Return a UUID that depends only on the text: the same input gives the same allocation."""
    return str(uuid.uuid5(_NAMESPACE, text))


def allocation_results(
    claims: Sequence[ClaimRequests], stack: Sequence[Frame], matcher: Matcher, share_ids: ShareIds
) -> tuple[dict[str, Any], ...]:
    """Make the v1 AllocationResults of claims; where they say the same they share objects.

    Args:
        stack: the solution of a search for these claims (`Search.stack`).
        matcher: its features and rules say what results may contain, its view whose they are.

    Raises:
        AllocationError: a slice has a node selector with several terms.
    """
    allocations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    special = False
    for frame in stack:
        if isinstance(frame, tuple):
            _, _, request, _, _, entry, undo, _ = frame
            published = entry.slice
            device_result: dict[str, Any] = {
                "request": request.name,
                "driver": published.driver,
                "pool": published.pool,
                "device": entry.device.name,
            }
            if request.special:
                _add_request_fields(device_result, request, matcher.rules)
            if entry.special:
                special = True
                _add_device_fields(device_result, entry, matcher.features)
            if undo is not NOTHING_CHARGED and (consumption := undo[0]) is not None:
                claim = claims[len(allocations)].claim
                where = f"{published.driver}/{published.pool}/{entry.device.name}"
                text = f"{claim.uid or claim.ref}#{len(results)}:{where}"
                device_result["shareID"] = share_ids(text)
                if consumption.texts:
                    device_result["consumedCapacity"] = dict(consumption.texts)
            results.append(device_result)
        elif frame is END_OF_CLAIM:
            number = len(allocations)
            devices: dict[str, Any] = {"results": results} if results else {}
            if claims[number].configured:
                config = _config_of(number, claims[number], stack, matcher.rules)
                if config:
                    devices["config"] = config
            allocation: dict[str, Any] = {"devices": devices}
            if special:
                selector = _node_selector(number, claims[number], stack, matcher.view)
                if selector is not None:
                    allocation["nodeSelector"] = selector
            elif results:
                allocation["nodeSelector"] = matcher.view.own_selector()
            allocations.append(allocation)
            results, special = [], False
    return tuple(allocations)


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
    number: int, claim: ClaimRequests, stack: Sequence[Frame], view: NodeView
) -> dict[str, Any] | None:
    """Return the selector of nodes that can use a claim's devices: one, several, or None: any."""
    fields: list[Mapping[str, Any]] = []
    expressions: list[Mapping[str, Any]] = []
    for frame in stack:
        if not isinstance(frame, tuple) or frame[0] != number:
            continue
        entry = frame[5]
        if not entry.special:
            return view.own_selector()
        device = entry.device
        placed = device if entry.slice.per_device_node_selection else entry.slice
        if placed.node_name is not None or device.binds_to_node:
            return view.own_selector()
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


def _config_of(
    number: int, claim: ClaimRequests, stack: Sequence[Frame], rules: MinorRules
) -> list[dict[str, Any]]:
    alternatives = {
        frame.request_index: frame.index
        for frame in stack
        if isinstance(frame, AlternativesFrame) and frame.claim_index == number
    }
    chosen = [options[alternatives.get(index, 0)] for index, options in enumerate(claim.requests)]
    names = [request.name for request in chosen]
    return config_results(claim.claim, names, [request.device_class for request in chosen], rules)


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
