"""Defects of what the driver refuses, and of what a refusal does to others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nvml_driver.core import DriverCore
from nvml_driver.errors import PrepareError
from nvml_driver.kubelet.service import ClaimWork
from nvml_driver.prepare.claims import ClaimFetcher
from tests.mutants.real_driver.replacement import OfTheContract, instead, with_results

Claim = Mapping[str, Any]


def _whatever_uid(_original: Any, fetcher: ClaimFetcher, reference: Any) -> Claim:
    found = fetcher._get_claim(reference.namespace, reference.name)
    if found is None:
        raise PrepareError("there is no such claim")
    return {**found, "metadata": {**found["metadata"], "uid": reference.uid}}


def _nothing_for_none(original: Callable[..., Any], *args: Any, **named: Any) -> Iterator[Any]:
    for uid, devices, error in original(*args, **named):
        yield uid, devices, "" if "does not exist" in error else error


def _nothing_without(original: Callable[..., Any], core: DriverCore, claim: Claim, **n: Any) -> Any:
    if not (claim.get("status") or {}).get("allocation"):
        return []
    return original(core, claim, **n)


def _nothing_for_unknown(
    original: Callable[..., Any], core: DriverCore, claim: Claim, **n: Any
) -> Any:
    names = {device.name for device in core.inventory}
    results = claim["status"]["allocation"]["devices"]["results"]
    return original(core, claim, **n) if all(one["device"] in names for one in results) else []


def _nothing_for_unread(original: Callable[..., Any], *args: Any, **named: Any) -> Iterator[Any]:
    for uid, devices, error in original(*args, **named):
        yield uid, devices, "" if "cannot be read" in error else error


def _of_any_pool(original: Callable[..., Any], core: DriverCore, claim: Claim, **n: Any) -> Any:
    pool = core.options.node_name
    return original(core, with_results(claim, lambda one, _: {**one, "pool": pool}), **n)


def _all_or_none(original: Callable[..., Any], *args: Any, **named: Any) -> Iterator[Any]:
    found = list(original(*args, **named))
    errors = [error for _, _, error in found if error]
    return iter([(uid, [], errors[0]) for uid, _, _ in found] if errors else found)


def _undoes_others(
    original: Callable[..., Any], work: ClaimWork, *args: Any, **n: Any
) -> Iterator[Any]:
    found = list(original(work, *args, **n))
    if any(error for _, _, error in found):
        for uid, _, _ in found:
            work._core.unprepare(uid)
    return iter(found)


def _bears_a_grudge() -> Callable[..., Any]:
    refused: set[str] = set()

    def prepare(original: Callable[..., Any], core: DriverCore, claim: Claim, **named: Any) -> Any:
        uid = claim["metadata"]["uid"]
        if uid in refused:
            raise PrepareError(f"claim {uid} was refused before")
        try:
            return original(core, claim, **named)
        except PrepareError:
            refused.add(uid)
            raise

    return prepare


OF_THE_CONTRACT: OfTheContract = {
    "takes-any-uid": (
        "a claim of the same name and another uid is prepared",
        instead(ClaimFetcher._get, _whatever_uid),
        "refuse/claim-with-another-uid",
    ),
    "missing-claim-is-success": (
        "a claim that does not exist is prepared, with no devices",
        instead(ClaimWork.prepare_each, _nothing_for_none),
        "refuse/claim-that-does-not-exist",
    ),
    "unallocated-claim-is-success": (
        "a claim without an allocation is prepared, with no devices",
        instead(DriverCore.prepare, _nothing_without),
        "refuse/claim-without-allocation",
    ),
    "unknown-device-is-success": (
        "a claim with a device that there is not is prepared, with no devices",
        instead(DriverCore.prepare, _nothing_for_unknown),
        "refuse/unknown-device",
    ),
    "unread-claim-is-success": (
        "a claim that cannot be read is prepared, with no devices",
        instead(ClaimWork.prepare_each, _nothing_for_unread),
        "refuse/api-server-that-is-down",
    ),
    "takes-any-pool": (
        "a device is looked up by its name in whatever pool",
        instead(DriverCore.prepare, _of_any_pool),
        "refuse/unknown-device",
    ),
    "one-error-fails-all": (
        "one claim that is refused has all claims of the call refused",
        instead(ClaimWork.prepare_each, _all_or_none),
        "refuse/one-bad-claim-spares-the-others",
    ),
    "refusal-unprepares-others": (
        "one claim that is refused has all claims of the call unprepared",
        instead(ClaimWork.prepare_each, _undoes_others),
        "refuse/refusal-leaves-prepared-claims",
    ),
    "refuses-for-ever": (
        "a claim that was refused once is refused always",
        instead(DriverCore.prepare, _bears_a_grudge()),
        "refuse/refused-claim-can-be-prepared-later",
    ),
}
