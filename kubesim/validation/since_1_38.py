"""The checks that an API server of Kubernetes 1.38 makes beside those of the minors before it.

They come after the others here, where Kubernetes reports some of them in between. Source: the
differences of pkg/apis/resource/validation/validation.go and of the tags in
k8s.io/api/resource/v1 between v1.37.2 and v1.38.0-beta.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kube.slices import results_of
from kube.values import Obj
from kubesim.validation import names, resource_slice
from kubesim.validation.constraints import Expressions, list_device_requests
from kubesim.validation.device import VERSION_TEXT, is_semver
from kubesim.validation.errors import FieldError, invalid, too_many
from reference_allocator.api.limits import ATTRIBUTES_AND_CAPACITIES_MAX
from reference_allocator.api.quantity import parse_quantity

_DIGITS_MAX: Final = 18
_VERSION_DETAIL: Final = f"{VERSION_TEXT}, with at most {_DIGITS_MAX} digits in numbers"
_DEVICES: Final = "spec.devices["


def check_added(kind: str, new: Obj, old: Obj | None, *, status: bool) -> Iterator[FieldError]:
    """Check a new or changed object for what the minors before 1.38 let in.

    Args:
        old: what it was before; None where it is new. What did not change is not looked into.
        status: whether the status changed, and nothing else.
    """
    if status:
        if kind == "ResourceClaim" and (old is None or results_of(new) != results_of(old)):
            yield from _check_results(new)
    elif kind == "ResourceSlice":
        spec = new.get("spec") or {}
        if old is None or (spec.get("devices") != (old.get("spec") or {}).get("devices")):
            for index, device in enumerate(spec.get("devices") or []):
                yield from _check_device(device, f"spec.devices[{index}]")
    elif kind == "ResourceClaim" and old is None:
        yield from _check_claim(new.get("spec") or {}, {}, "spec.devices")
    elif kind == "ResourceClaimTemplate":  # whose spec is checked at each change
        spec, old_spec = (((item or {}).get("spec") or {}).get("spec") or {} for item in (new, old))
        yield from _check_claim(spec, old_spec, "spec.spec.devices")


def reword(errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Return errors in the words of 1.38, which says how long a version's numbers may be."""
    for error in errors:
        yield (
            replace(error, body=f"{error.body.removesuffix(VERSION_TEXT)}{_VERSION_DETAIL}")
            if error.body.endswith(VERSION_TEXT)
            else error
        )


def check_slice_update(
    new: Obj, old: Obj, server: Expressions | None = None
) -> Iterator[FieldError]:
    """Check a changed slice: its devices all or not at all, as the list changed or did not.

    Until 1.37 what changed of a device's capacity and taints was checked, and all else always.
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    unchanged = all(
        spec.get(field) == old_spec.get(field) for field in ("devices", "perDeviceNodeSelection")
    )
    old_without_devices = {**old, "spec": {**old_spec, "devices": None}}
    for error in resource_slice.check_slice(new, old_without_devices, server):
        if not (unchanged and error.path.startswith(_DEVICES)):
            yield error


def _check_slashes(qualified_names: Iterable[str], path: str) -> Iterator[FieldError]:
    for name in qualified_names:
        if name.count("/") > 1:
            yield invalid(path, name, "must not contain more than one slash")


def _check_device(device: Obj, path: str) -> Iterator[FieldError]:
    yield from _check_slashes(device.get("attributes") or {}, f"{path}.attributes")
    for name, attribute in (device.get("attributes") or {}).items():
        for field, value in attribute.items():
            texts = {"version": [value], "versions": value}.get(field) or []
            for index, text in enumerate(texts):
                inner = f"{path}.attributes[{name}].{field}"
                where = inner if field == "version" else f"{inner}[{index}]"
                if is_semver(text) and not is_semver(text, digits=_DIGITS_MAX):
                    yield invalid(where, text, _VERSION_DETAIL)
    yield from _check_slashes(device.get("capacity") or {}, f"{path}.capacity")
    if device.get("nodeSelector") is not None:
        terms = device["nodeSelector"].get("nodeSelectorTerms") or []
        if len(terms) != 1:
            detail = "must have exactly one node selector term"
            yield invalid(f"{path}.nodeSelector.nodeSelectorTerms", terms, detail)
    for resource, demand in (device.get("nodeAllocatableResources") or {}).items():
        key = (demand.get("mapping") or {}).get("capacityKey")
        if key:
            inner = f"{path}.nodeAllocatableResources[{resource}].mapping.capacityKey"
            yield from names.check_qualified_name(key, inner)
            yield from _check_slashes([key], inner)


def _check_claim(spec: Obj, old_spec: Obj, path: str) -> Iterator[FieldError]:
    """Check a claim's spec; the old one, of a template alone, keeps its capacities."""
    devices, old_devices = (item.get("devices") or {} for item in (spec, old_spec))
    old_amounts = {
        name: _get_requested(body) for name, body, _ in list_device_requests(old_devices, path)
    }
    for name, body, where in list_device_requests(devices, path):
        amounts = _get_requested(body)
        if amounts != old_amounts.get(name):
            yield from _check_amounts(amounts, f"{where}.capacity.requests")
        for number, derived in enumerate(body.get("derivedAttributes") or []):
            attribute = derived.get("name") or ""
            yield from _check_slashes([attribute], f"{where}.derivedAttributes[{number}].name")
    for index, constraint in enumerate(devices.get("constraints") or []):
        for field in ("matchAttribute", "distinctAttribute"):
            if constraint.get(field) is not None:
                yield from _check_slashes(
                    [constraint[field]], f"{path}.constraints[{index}].{field}"
                )


def _get_requested(body: Obj) -> Obj:
    requested: Obj = (body.get("capacity") or {}).get("requests") or {}
    return requested


def _check_results(claim: Obj) -> Iterator[FieldError]:
    for index, result in enumerate(results_of(claim)):
        path = f"status.allocation.devices.results[{index}].consumedCapacity"
        yield from _check_amounts(result.get("consumedCapacity") or {}, path)


def _check_amounts(amounts: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Check names, number and sign of capacities that are requested or consumed."""
    for name in amounts:
        yield from names.check_qualified_name(name, path)
    yield from _check_slashes(amounts, path)
    if len(amounts) > ATTRIBUTES_AND_CAPACITIES_MAX:
        yield too_many(path, len(amounts), ATTRIBUTES_AND_CAPACITIES_MAX)
        return
    for name, amount in amounts.items():
        if parse_quantity(str(amount)).sign() < 0:
            yield invalid(f"{path}[{name}]", str(amount), "must be greater than or equal to 0")
