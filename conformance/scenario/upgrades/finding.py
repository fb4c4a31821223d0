"""What stored objects and manifests lose or get with another Kubernetes minor, before it is there.

For ``audit --upgrade-to`` and ``lint --kubernetes``. Objects are looked at as they are: no defaults
are filled in, and what is no object of DRA or a component's configuration is passed over. Each
problem names a row of `conformance.scenario.minor_changes`, which has the advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from conformance.scenario.upgrades.devices import PublishedDevice, Selection, list_versions
from conformance.scenario.upgrades.gates import find_gates
from conformance.scenario.upgrades.problem import (
    GROUP,
    UpgradeProblem,
    is_of_dra,
    list_claim_devices,
)
from conformance.scenario.upgrades.selectors import find_selectors
from kube.base.errors import UsageError
from kube.base.text import counted
from kube.slices import results_of
from kube.values import Obj
from kubesim.resources import find_removal
from kubesim.validation import since_1_38
from kubesim.validation.constraints import list_device_requests
from kubesim.validation.device import is_semver
from reference_allocator.api import ResourceClaim
from reference_allocator.api.quantity import Quantity, QuantityError, parse_quantity
from reference_allocator.api.reading import InputError, expect_object, read_child
from reference_allocator.environment import selector_environment
from reference_allocator.features import Features
from reference_allocator.gates import MINORS, minor_of
from reference_allocator.rules.capacity import CapacityError, complete_name, resolve_requests

_FLAT: Final = "resource.k8s.io/v1beta1"
"""The version whose fields lie elsewhere than those of v1: only its name is looked at."""
_UINT64_MAX: Final = 2**64 - 1

_PARTS_OF_SNAPSHOT: Final = {
    "slices": "ResourceSlice",
    "deviceClasses": "DeviceClass",
    "claims": "ResourceClaim",
    "allocated": "ResourceClaim",
    "templates": "ResourceClaimTemplate",
}


def check_upgrade(current: str, target: str) -> tuple[str, str]:
    """Return the minors of the cluster as it is, and of the one that it is to become.

    Raises UsageError: a minor is not known, or the target is not newer.
    """
    if not current:
        raise UsageError(
            "--upgrade-to: the snapshot does not say which Kubernetes it is of; take one with "
            "`capture`"
        )
    try:
        before, after = minor_of(current), minor_of(target)
    except ValueError as error:
        raise UsageError(f"--upgrade-to: {error}") from None
    if MINORS.index(after) <= MINORS.index(before):
        raise UsageError(
            f"--upgrade-to {target}: the cluster is of Kubernetes {before} already; name a later "
            "minor"
        )
    return before, after


def list_objects(
    snapshot: Mapping[str, Any], report: Callable[[str], None] = lambda _: None
) -> list[Obj]:
    """Return the objects of a snapshot with ``apiVersion`` and ``kind``.

    Args:
        snapshot: whose objects have the form of their kinds, but perhaps for templates.
        report: told in a sentence of a template that has not, and is left out.
    """
    objects = []
    for part, kind in _PARTS_OF_SNAPSHOT.items():
        for item in snapshot.get(part) or []:
            if kind == "ResourceClaimTemplate":
                try:
                    spec = read_child(item, "spec", expect_object) or {}
                    ResourceClaim.from_dict({**item, "spec": spec.get("spec")})
                except InputError as error:
                    name = (item.get("metadata") or {}).get("name")
                    report(f"no ResourceClaimTemplate {name} looked at: {error}")
                    continue
            objects.append({"apiVersion": f"{GROUP}v1", "kind": kind, **item})
    return objects


def find_problems(
    objects: Iterable[Obj],
    before: str,
    after: str,
    features: Features | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> list[UpgradeProblem]:
    """Return what the minor ``after`` treats otherwise than the minor ``before``, object by object.

    Args:
        objects: API objects and configurations of components.
        before: one of `MINORS`.
        after: a later one.
        features: what the scheduler may use now; by default what ``before`` has on. What is set
            otherwise than by default stays so.
        report: told in a sentence what could not be looked at.
    """
    now = Features.for_version(before) if features is None else features
    then = _carry_over(now, before, after)
    everything = [item for item in objects if isinstance(item, dict)]
    current = [item for item in everything if item.get("apiVersion") != _FLAT]
    problems: list[UpgradeProblem] = []
    for item in everything:
        problems += find_gates(item, before, after)
        problems += _find_removed_version(item, before, after)
    problems += find_selectors(current, (before, now), (after, then), report)
    if MINORS.index(before) < MINORS.index("1.38") <= MINORS.index(after):
        problems += _find_since_1_38(current, Selection(current, selector_environment(then, after)))
    return problems


def _carry_over(features: Features, before: str, after: str) -> Features:
    """Return the features after an upgrade: those that are set explicitly stay as they are."""
    old, new = Features.for_version(before), Features.for_version(after)
    names = [field.name for field in fields(Features)]
    kept = [name for name in names if getattr(features, name) != getattr(old, name)]
    return replace(new, **{name: getattr(features, name) for name in kept})


def _find_since_1_38(objects: Sequence[Obj], selection: Selection) -> Iterator[UpgradeProblem]:
    for item in objects:
        if not is_of_dra(item):
            continue
        kind = str(item.get("kind"))
        for error in since_1_38.check_added(kind, item, None, status=False):
            yield UpgradeProblem("refused-when-written", item, error.path, f"{error.body}")
        if kind == "DeviceTaintRule" and (item.get("spec") or {}).get("deviceSelector") == {}:
            text = "an empty selector matches every device from every driver in the cluster"
            yield UpgradeProblem("empty-selector-warned", item, "spec.deviceSelector", text)
        if kind == "ResourceSlice":
            yield from _find_unreadable(item)
        if kind == "ResourceClaim":
            yield from _find_negative_shares(item)
        for path, devices in list_claim_devices(item):
            yield from _find_build_metadata(item, devices, path, selection)
            for _, body, inner in list_device_requests(devices, path):
                yield from _find_capacity_names(item, body, inner, selection)
                yield from _find_tolerations(item, body, inner)


def _find_negative_shares(claim: Obj) -> Iterator[UpgradeProblem]:
    """Yield the amounts in use that are negative (consumedCapacityError, allocateddevices.go)."""
    for index, result in enumerate(results_of(claim)):
        for name, amount in (result.get("consumedCapacity") or {}).items():
            if _read_amounts({name: amount}).get(name, _NOTHING).nanos < 0:
                path = f"status.allocation.devices.results[{index}].consumedCapacity[{name}]"
                text = f"it is {amount}, and no pod with a claim that waits is scheduled"
                yield UpgradeProblem("negative-shares", claim, path, text)


def _find_build_metadata(
    item: Obj, devices: Obj, path: str, selection: Selection
) -> Iterator[UpgradeProblem]:
    """Yield the constraints under which devices of one node are the same now, or not any more."""
    for index, constraint in enumerate(devices.get("constraints") or []):
        for field in ("matchAttribute", "distinctAttribute"):
            attribute = constraint.get(field)
            if not attribute:
                continue
            targets = constraint.get("requests") or []
            bodies = [
                body
                for name, body, _ in list_device_requests(devices, path)
                if not targets or name in targets or name.partition("/")[0] in targets
            ]
            texts = selection.find_alike_versions(bodies, attribute)
            if texts:
                inner = f"{path}.constraints[{index}].{field}"
                listed = ", ".join(sorted(texts)[:4])
                text = f"devices have versions that differ in build metadata alone: {listed}"
                yield UpgradeProblem("build-metadata-ignored", item, inner, text)


def _find_capacity_names(
    item: Obj, body: Obj, inner: str, selection: Selection
) -> Iterator[UpgradeProblem]:
    """Yield the requests for capacities that devices fit otherwise, going by names alone."""
    requested = _read_amounts(((body.get("capacity") or {}).get("requests")) or {})
    path = f"{inner}.capacity.requests"
    if not requested:
        return
    named_twice, fitting = list[PublishedDevice](), list[PublishedDevice]()
    for devices in selection.list_shapes(body):
        driver, published = devices[0].driver, devices[0].content.get("capacity") or {}
        complete = {complete_name(name, driver): None for name in published}
        try:
            resolved = resolve_requests(requested, complete, driver)
        except CapacityError:
            named_twice += devices
        else:
            if resolved is not None and not requested.keys() <= published.keys():
                fitting += devices
    if named_twice:
        text = (
            f"it names one capacity of {_describe(named_twice)} twice: from 1.38 on an error, with "
            "which the pod gets no device of any node"
        )
        yield UpgradeProblem("capacity-by-either-name", item, path, text)
    if fitting:
        driver, published = fitting[0].driver, fitting[0].content["capacity"]
        other = next(name for name in requested if name not in published)
        spellings = {complete_name(name, driver): name for name in published}
        spelled = spellings[complete_name(other, driver)]
        text = f"it is {spelled} on {_describe(fitting)} and fits there from 1.38 on"
        yield UpgradeProblem("capacity-by-either-name", item, f"{path}[{other}]", text)


def _describe(devices: Sequence[PublishedDevice]) -> str:
    return f"{counted(len(devices), 'device')}, such as {devices[0].name},"


_NOTHING: Final = parse_quantity("0")


def _read_amounts(amounts: Mapping[str, Any]) -> dict[str, Quantity]:
    """Return the amounts that are quantities; the API server refuses others."""
    read: dict[str, Quantity] = {}
    for name, amount in amounts.items():
        try:
            read[name] = parse_quantity(str(amount))
        except QuantityError:
            continue
    return read


def _find_tolerations(item: Obj, body: Obj, inner: str) -> Iterator[UpgradeProblem]:
    """Yield the tolerations that keep pods on devices, as they name no effect."""
    tolerations = body.get("tolerations") or []
    for index, toleration in enumerate(tolerations):
        if toleration.get("effect") or any(_keeps(other, toleration) for other in tolerations):
            continue
        where = f"{inner}.tolerations[{index}]"
        text = "it names no effect, and keeps its pods on devices with a NoExecute taint"
        if toleration.get("key"):
            text += f" {toleration['key']}"
        yield UpgradeProblem("empty-effect-tolerates", item, where, text)


def _keeps(toleration: Obj, other: Obj) -> bool:
    """Return whether a toleration keeps pods for good, today, wherever the other one will."""
    if toleration.get("effect") != "NoExecute" or toleration.get("tolerationSeconds") is not None:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", other.get("key"))
    return (
        all((toleration.get(field) or "") == (other.get(field) or "") for field in ("key", "value"))
        and other.get("operator") != "Exists"
    )


def _find_unreadable(item: Obj) -> Iterator[UpgradeProblem]:
    for index, device in enumerate((item.get("spec") or {}).get("devices") or []):
        for attribute, value in (device.get("attributes") or {}).items():
            texts = list_versions(value)
            numbers = [int(number) for text in texts for number in re.findall(r"\d+", text)]
            if not all(map(is_semver, texts)) or any(number > _UINT64_MAX for number in numbers):
                where = f"spec.devices[{index}].attributes[{attribute}]"
                text = (
                    "the scheduler cannot read it: constraints on it fail, other selectors do not"
                )
                yield UpgradeProblem("unreadable-value", item, where, text)


def _find_removed_version(item: Obj, before: str, after: str) -> Iterator[UpgradeProblem]:
    version, kind = str(item.get("apiVersion")), str(item.get("kind"))
    if not version.startswith(GROUP):
        return
    removed = find_removal(version.removeprefix(GROUP), kind)
    if _number(before) < removed <= _number(after):
        text = f"{version} {kind} is not served from Kubernetes 1.{removed} on"
        yield UpgradeProblem("api-version-not-served", item, "apiVersion", text)


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])
