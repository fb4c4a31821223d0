"""Tells the devices that are the only right ones for a pod, by trying all choices of devices.

Right is what the checker of finished allocations lets through; of alternatives, the first that can
be had (DeviceRequest.firstAvailable). The checker shares nothing with the search whose answer it
confirms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, combinations_with_replacement, islice, product
from math import prod
from typing import Any, Final

from conformance.allocators.contract import PodAnswer
from conformance.allocators.judging import (
    COPIED_RULES,
    ClaimDevices,
    claims_of_question,
    devices_of,
    question_of_pod,
    snapshot_of,
)
from conformance.allocators.questions import write_devices
from kube.slices import is_allocated, results_of
from reference_allocator.api import Device, DeviceId, RequestSpec, ResourceClaim, ResourceSlice
from reference_allocator.checks import Violation, check
from reference_allocator.features import Features
from reference_allocator.gates import MinorRules
from reference_allocator.rules.capacity import CapacityError, resolve_consumption
from reference_allocator.wire import SHARE_ID

Json = dict[str, Any]

_MOST: Final = 20_000
"""Choices of devices that are tried for a pod, at most."""


class TooManyChoicesError(Exception):
    """There are more choices of devices than can be tried."""


def only_devices(question: Json, reference: Json, kubernetes: str) -> Json:
    """Return the fields of a vector with the devices for which there is no other choice.

    Args:
        question: with one node.
        reference: the reference's answer to it.

    Raises TooManyChoicesError: not all can be tried.
    """
    (node,) = reference["nodes"]
    pods = [PodAnswer.model_validate(pod) for pod in (node, *node.get("following", ()))]
    (on,) = question["nodes"]
    (found,) = devices_of(reference).values()
    only = 0
    for number, devices in enumerate(found):
        asked = question_of_pod(question, on, pods[:number])
        if devices is not None and right_choices(asked, kubernetes) != [devices]:
            break
        only = number + 1
    known = write_devices(reference) if only else {}
    if only < len(found):
        known.pop("followingDevices", None)
    return known


def right_choices(question: Json, kubernetes: str, most: int = 2) -> list[ClaimDevices]:
    """Return up to so many right choices of devices for the one pod of a question on its node.

    Raises TooManyChoicesError: not all can be tried.
    """
    return _Choices(question, kubernetes).find(most)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one request wants, through one of its alternatives; ``name`` is that of its results."""

    name: str
    spec: RequestSpec


class _Choices:
    def __init__(self, question: Json, kubernetes: str) -> None:
        (self._node,) = question["nodes"]
        self._snapshot = snapshot_of(question, kubernetes)
        self._claims = claims_of_question(question)
        self._pending = [item for item in self._claims if not is_allocated(item)]
        self._rules = MinorRules.for_version(kubernetes)
        slices = [ResourceSlice.from_dict(item) for item in question.get("slices") or ()]
        self._devices = {
            DeviceId(item.driver, item.pool, device.name): device
            for item in slices
            for device in item.devices
        }

    def find(self, most: int) -> list[ClaimDevices]:
        """Return right choices, of the first alternatives that have one."""
        read = [ResourceClaim.from_dict(item) for item in self._pending]
        alternatives = [
            [
                [_Wanted(request.name, request.exactly)]
                if request.exactly
                else [_Wanted(f"{request.name}/{one.name}", one) for one in request.first_available]
                for request in claim.requests
            ]
            for claim in read
        ]
        for chosen in product(*(product(*requests) for requests in alternatives)):
            found: list[ClaimDevices] = []
            for allocations in self._allocations(chosen):
                named = self._name(allocations)
                if named not in found and not self._broken(self._pending, allocations):
                    found.append(named)
                if len(found) == most:
                    break
            if found:
                return found
        return []

    def _allocations(self, chosen: Sequence[Sequence[_Wanted]]) -> Iterator[list[Json]]:
        """Yield allocations of the claims with all devices that each request may have alone."""
        options = [
            [[*islice(self._options(claim, wanted), _MOST + 1)] for wanted in requests]
            for claim, requests in zip(self._pending, chosen, strict=True)
        ]
        if prod(len(option) for requests in options for option in requests) > _MOST:
            raise TooManyChoicesError
        for picked in product(*(product(*requests) for requests in options)):
            yield [{"devices": {"results": [*chain(*results)]}} for results in picked]

    def _options(self, claim: Json, wanted: _Wanted) -> Iterator[Sequence[Json]]:
        """Yield the results that a request may have: each device is right by itself."""
        able = [
            result
            for device, published in self._devices.items()
            if (result := self._result(wanted, device, published)) is not None
            and not self._is_wrong(claim, result)
        ]
        if wanted.spec.allocation_mode == "All":
            yield able
        else:
            twice = any("shareID" in result or "adminAccess" in result for result in able)
            combine = combinations_with_replacement if twice else combinations
            yield from combine(able, max(wanted.spec.count, 0))

    def _result(self, wanted: _Wanted, device: DeviceId, published: Device) -> Json | None:
        """Return the result that gives a device to a request; None where its policy forbids it."""
        result: Json = {"request": wanted.name, **device._asdict()}
        if wanted.spec.admin_access:
            result["adminAccess"] = True
        features: Features = self._snapshot.features
        if features.consumable_capacity and published.allow_multiple_allocations:
            try:
                taken = resolve_consumption(
                    wanted.spec.capacity, published, features, self._rules, device.driver
                )
            except CapacityError:
                return None
            if taken is None:
                return None
            result |= {"shareID": SHARE_ID, "consumedCapacity": dict(taken.texts)}
        return result

    def _is_wrong(self, claim: Json, result: Json) -> bool:
        """Whether a device breaks a rule though it is given to nobody else."""
        name = f"{result['driver']}/{result['pool']}/{result['device']}"
        allocations = [{"devices": {"results": [result]}}]
        return any(item.device == name for item in self._broken([claim], allocations))

    def _broken(self, claims: Sequence[Json], allocations: Sequence[Json]) -> list[Violation]:
        found = check(self._snapshot, self._node, claims, allocations)
        return [item for item in found if item.rule not in COPIED_RULES]

    def _name(self, allocations: Sequence[Json]) -> ClaimDevices:
        made = iter(allocations)
        claims = [
            item if is_allocated(item) else {"status": {"allocation": next(made)}}
            for item in self._claims
        ]
        return [
            sorted(f"{one['driver']}/{one['pool']}/{one['device']}" for one in results_of(item))
            for item in claims
        ]
