"""Defects of the answer to prepare and unprepare, and of what is done for other claims."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient

from kube.kubelet import dra_health_v1_pb2 as health_v1
from kube.kubelet.rpc import serve
from nvml_driver.cluster.kube import KubeClient
from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError, PrepareError
from nvml_driver.health.stream import HealthFeed
from nvml_driver.kubelet import plugin
from nvml_driver.kubelet.service import ClaimWork, health_service
from nvml_driver.prepare.allocation import Allocation
from tests.mutants.real_driver.replacement import OfTheContract, PutIn, both, instead, with_results

Claim = Mapping[str, Any]
_busy = threading.Lock()
_one_call = threading.Lock()


def _claims(change: Callable[[DriverCore, Claim], Claim]) -> PutIn:
    """Prepare another claim than the one that the API server has."""

    def prepare(original: Callable[..., Any], core: DriverCore, claim: Claim, **named: Any) -> Any:
        return original(core, change(core, claim), **named)

    return instead(DriverCore.prepare, prepare)


def _takes_all(core: DriverCore, claim: Claim) -> Claim:
    own = core.options.driver_name
    return with_results(claim, lambda result, _: {**result, "driver": own})


def _refuses_any_configuration(_core: DriverCore, claim: Claim) -> Claim:
    if claim["status"]["allocation"]["devices"].get("config"):
        raise PrepareError("there is configuration")
    return claim


def _forgets_admin(_core: DriverCore, claim: Claim) -> Claim:
    return with_results(claim, lambda result, _: {**result, "adminAccess": None})


def _with_subrequests(
    original: Callable[..., Any], core: DriverCore, claim: Claim, **n: Any
) -> Any:
    whole = {
        one.get("device"): one["request"] for one in Allocation(claim, "gpu.nvidia.com").results
    }
    return [
        replace(one, request_names=(whole[one.device_name],)) for one in original(core, claim, **n)
    ]


def _busy_for_others(original: Callable[..., Any], *args: Any, **named: Any) -> Iterator[Any]:
    if not _busy.acquire(blocking=False):
        return iter([(one.uid, [], "the driver is busy") for one in args[1]])
    try:
        threading.Event().wait(0.05)
        return iter(list(original(*args, **named)))
    finally:
        _busy.release()


def _one_after_the_other(original: Callable[..., Any], *args: Any, **named: Any) -> Iterator[Any]:
    with _one_call:
        return iter(list(original(*args, **named)))


def _whatever_became_of_it(original: Callable[..., Any], *args: Any, **named: Any) -> Any:
    return original(*args, **{**named, "still_wanted": lambda: True})


@contextmanager
def _watches_nothing(_original: Any, _work: ClaimWork) -> Iterator[set[str]]:
    yield set()


def _asks_for_the_claim(
    original: Callable[..., Any], work: ClaimWork, references: Iterable[Any]
) -> Iterator[tuple[str, str]]:
    for one in references:
        try:
            found = work._fetcher._get_claim(one.namespace, one.name)
        except DriverError as error:
            yield one.uid, str(error)
            continue
        if found is None:
            yield one.uid, f"claim {one.name} does not exist"
        else:
            yield from original(work, [one])


def _unprepares_all(original: Callable[..., None], core: DriverCore, uid: str) -> None:
    for record in core.list_records():
        if record.uid != uid:
            original(core, record.uid)
    original(core, uid)


def _by_name(original: Callable[..., None], core: DriverCore, uid: str) -> None:
    """As if claims of the same name were one: the checks give one claim the name of another."""
    for record in core.list_records():
        if record.name == "same-name":
            original(core, record.uid)
    original(core, uid)


def _removes_by_uid(
    original: Callable[..., Any], work: ClaimWork, references: Iterable[Any]
) -> Iterator[tuple[str, str]]:
    listed = list(references)
    for one in listed:
        Path(work._core.options.cdi_root, f"{one.uid}.json").unlink(missing_ok=True)
    yield from original(work, listed)


def _ends_without_uid(
    original: Callable[..., Any], work: ClaimWork, references: Any, **n: Any
) -> Any:
    if not all(one.uid for one in references):
        os._exit(1)
    return original(work, references, **n)


def _answers_twice(original: Callable[..., Any], work: ClaimWork, references: Any, **n: Any) -> Any:
    seen: set[str] = set()
    for uid, devices, error in original(work, references, **n):
        yield uid, devices * 2 if uid in seen else devices, error
        seen.add(uid)


def _keeps_silent(_original: Any, feed: HealthFeed, *_: Any) -> Iterator[Any]:
    threading.Event().wait(60)
    return iter(())


def _health(change: Callable[[Any], None]) -> PutIn:
    def response(original: Callable[..., Any], feed: HealthFeed, messages: Any) -> Any:
        found = original(feed, messages)
        for device in found.devices:
            change(device)
        return found

    return instead(HealthFeed.build_response, response)


def _in_milliseconds(device: Any) -> None:
    device.last_updated_time *= 1000


def _says_it_once(original: Callable[..., None], *args: Any, **named: Any) -> None:
    original(*args, **{**named, "resend_seconds": 3600.0})


def _nothing_for_two(original: Callable[..., Any], core: DriverCore, claim: Claim, **n: Any) -> Any:
    return [] if len(claim["status"]["reservedFor"]) > 1 else original(core, claim, **n)


def _in_another_pool(device: Any) -> None:
    device.device.pool_name += "-other"


def _of_no_known_health(device: Any) -> None:
    device.health = 7


def _older_health_only(original: Callable[..., Any], messages: Any, feed: Any) -> Any:
    if messages is health_v1:
        return serve(messages, {})
    return original(messages, feed)


def _names_none(original: Callable[..., Any], *args: Any, **named: Any) -> list[Any]:
    original(*args, **named)
    return []


def _first_device_again(
    original: Callable[..., Iterator[Any]], feed: HealthFeed, *args: Any
) -> Iterator[Any]:
    for number, response in enumerate(original(feed, *args)):
        if number:
            del response.devices[1:]
        yield response


def _refuses_unknown_fields(_core: DriverCore, claim: Claim) -> Claim:
    if unknown := set(claim["spec"]) - {"devices"}:
        raise PrepareError(f"unknown field {min(unknown)}")
    return claim


def _refuses_deleted(_core: DriverCore, claim: Claim) -> Claim:
    if "deletionTimestamp" in claim["metadata"]:
        raise PrepareError("the claim is being deleted")
    return claim


def _as_prepared(core: DriverCore, claim: Claim) -> Claim:
    known = {record.uid: record for record in core.list_records()}.get(claim["metadata"]["uid"])
    if known is None:
        return claim
    names = [device.device_name for device in known.devices]
    return with_results(claim, lambda result, place: {**result, "device": names[place]})


def _forgets_own_admin(core: DriverCore, claim: Claim) -> Claim:
    """Only who comes first with admin access is not told from others."""
    held = {device.device_name for record in core.list_records() for device in record.devices}
    return with_results(
        claim,
        lambda result, _: result if result["device"] in held else {**result, "adminAccess": None},
    )


def _trusts_any(original: Callable[..., KubeClient], *args: Any) -> KubeClient:
    found = original(*args)
    settings = found._api.configuration
    settings.verify_ssl = False
    return KubeClient(ApiClient(settings))


SHAPES: Mapping[str, PutIn] = {"names-no-devices": instead(DriverCore.prepare, _names_none)}
"""What a driver may do as well: one that attaches devices by NRI has none to name."""

OF_THE_CONTRACT: OfTheContract = {
    "prepares-devices-of-others": (
        "results of another driver are prepared, too",
        _claims(_takes_all),
        "prepare/results-of-others-are-left-out",
    ),
    "refuses-configuration-of-others": (
        "configuration for another driver is an error",
        _claims(_refuses_any_configuration),
        "prepare/configuration-of-others-is-ignored",
    ),
    "knows-no-admin-access": (
        "admin access to a device in use is refused",
        _claims(_forgets_admin),
        "prepare/admin-access-beside-a-holder",
    ),
    "names-subrequests": (
        "a device names request/subrequest",
        instead(DriverCore.prepare, _with_subrequests),
        "prepare/subrequests-name-their-request",
    ),
    "refuses-at-the-same-time": (
        "a call beside another one is refused",
        instead(ClaimWork.prepare_each, _busy_for_others),
        "concurrent/same-claim",
    ),
    "one-call-at-a-time": (
        "a claim that the API server is slow to give holds up all others",
        instead(ClaimWork.prepare_each, _one_after_the_other),
        "concurrent/slow-claim-holds-up-no-other",
    ),
    "prepares-what-was-unprepared": (
        "a prepare goes on though its caller has gone and the claim was unprepared",
        both(
            instead(ClaimWork.prepare_each, _whatever_became_of_it),
            instead(ClaimWork._watch_unprepare, _watches_nothing),
        ),
        "concurrent/prepare-that-comes-late",
    ),
    "unprepare-asks-for-the-claim": (
        "a claim whose object is gone cannot be unprepared",
        instead(ClaimWork.unprepare_each, _asks_for_the_claim),
        "unprepare/claim-object-may-be-gone",
    ),
    "unprepare-needs-the-api": (
        "nothing is unprepared while the API server is down",
        instead(ClaimWork.unprepare_each, _asks_for_the_claim),
        "unprepare/needs-no-api-server",
    ),
    "unprepares-every-claim": (
        "to unprepare one claim unprepares all",
        instead(DriverCore.unprepare, _unprepares_all),
        "cdi/other-claims-keep-theirs",
    ),
    "knows-claims-by-name": (
        "to unprepare a claim unprepares one of the same name and another uid",
        instead(DriverCore.unprepare, _by_name),
        "unprepare/uid-tells-claims-apart",
    ),
    "trusts-uids-as-paths": (
        "unprepare removes a file that the uid names",
        instead(ClaimWork.unprepare_each, _removes_by_uid),
        "hostile/uid-that-is-a-path",
    ),
    "ends-for-a-claim-without-uid": (
        "a claim without a uid ends the driver",
        instead(ClaimWork.prepare_each, _ends_without_uid),
        "hostile/empty-names",
    ),
    "answers-twice": (
        "the answer for a claim that a call names twice has its devices twice",
        instead(ClaimWork.prepare_each, _answers_twice),
        "hostile/same-claim-twice-in-a-call",
    ),
    "health-of-one-device-again": (
        "after the first time the health stream names one device",
        instead(HealthFeed.stream_health, _first_device_again),
        "health/said-again-in-time",
    ),
    "refuses-unknown-fields": (
        "a claim with a field that the driver does not know is an error",
        _claims(_refuses_unknown_fields),
        "prepare/unknown-fields-are-ignored",
    ),
    "refuses-claims-being-deleted": (
        "a claim with a deletionTimestamp is an error",
        _claims(_refuses_deleted),
        "prepare/claim-being-deleted",
    ),
    "keeps-the-device-of-an-older-allocation": (
        "a claim that was allocated anew is prepared with the device that it had",
        _claims(_as_prepared),
        "prepare/claim-allocated-anew",
    ),
    "admin-access-takes-the-device": (
        "a device that a claim with admin access has is refused to others",
        _claims(_forgets_own_admin),
        "prepare/holder-beside-admin-access",
    ),
    "trusts-any-server": (
        "the API server's certificate is not looked at",
        instead(KubeClient.connect, _trusts_any),
        "hostile/server-that-is-not-trusted",
    ),
    "health-never-comes": (
        "the health stream says nothing",
        instead(HealthFeed.stream_health, _keeps_silent),
        "health/each-version-streams",
    ),
    "health-not-served": (
        "a version of the health service is offered and not served",
        instead(health_service, _older_health_only, at=plugin),
        "health/each-version-streams",
    ),
    "health-of-unknown-devices": (
        "health names a pool that is not published",
        _health(_in_another_pool),
        "health/devices-are-published-ones",
    ),
    "health-in-milliseconds": (
        "health has its time in milliseconds",
        _health(_in_milliseconds),
        "health/values-are-in-range",
    ),
    "health-said-once": (
        "health is said again only when it changes",
        instead(HealthFeed.__init__, _says_it_once),
        "health/said-again-in-time",
    ),
    "nothing-for-two-pods": (
        "a claim that is reserved for two pods is prepared, with no devices",
        instead(DriverCore.prepare, _nothing_for_two),
        "prepare/claim-of-two-pods",
    ),
    "health-of-an-unknown-kind": (
        "health has a value that the API does not know",
        _health(_of_no_known_health),
        "health/values-are-in-range",
    ),
}
