"""Preparing claims: the answer, and that it can be asked for again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.kubelet import SERVICES, Device, RefusedError
from conformance.drivercheck.objects import OTHER_DRIVER
from conformance.drivercheck.violations import NotOfferedError, UnanswerableError, ViolationError
from kube.values import Obj

section = Section("prepare")

_API = "k8s.io/kubelet/pkg/apis/dra/v1/api.proto"
_MANAGER = "kubernetes/pkg/kubelet/cm/dra/manager.go, prepareResources"
_HELPER = "k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go, PrepareResourceClaims"
_TYPES = "k8s.io/api/resource/v1/types.go"


def results(bench: Bench, claim: Obj) -> list[dict[str, Any]]:
    """What the allocation of a claim has of the driver."""
    every = claim["status"]["allocation"]["devices"]["results"]
    return [one for one in every if one["driver"] == bench.driver]


def expect_allocated(bench: Bench, claim: Obj, devices: Sequence[Device]) -> None:
    """The prepared devices are those of the allocation, or none if the driver never names any."""
    wanted = sorted((one["pool"], one["device"]) for one in results(bench, claim))
    found = sorted((one.pool, one.name) for one in devices)
    if wanted != found and (found or bench.names_devices):
        raise ViolationError(f"expected the devices {_named(wanted)}; found {_named(found)}")
    shares = {"", *(one.get("shareID", "") for one in results(bench, claim))}
    if wrong := {one.share_id for one in devices} - shares:
        raise ViolationError(f"expected a share of the allocation; found {', '.join(wrong)[:100]}")


def named(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """The devices of an answer. Raises NotOfferedError: there are none, which is allowed."""
    if not devices:
        raise NotOfferedError("the driver's answers name no devices")
    return devices


def expect_refused(bench: Bench, claim: Obj, what: str) -> None:
    """To prepare a claim is an error."""
    [error] = bench.refusal(claim)
    if not error:
        raise ViolationError(f"expected an error for {what}; found it prepared")


def need_exclusive(bench: Bench, claim: Obj) -> None:
    """Raises NotOfferedError: the claim's devices may be shared, so another may have them, too."""
    if any("shareID" in one for one in results(bench, claim)):
        raise NotOfferedError("the driver's devices may be shared")


def expect_free(bench: Bench, claim: Obj) -> None:
    """The devices of a claim can be given to another."""
    other = bench.allocate(bench.pending_claim(), claim["status"]["allocation"])
    expect_allocated(bench, other, *bench.prepare(other))


def _named(devices: list[tuple[str, str]]) -> str:
    return ", ".join(f"{pool}/{name}"[:100] for pool, name in devices[:8]) or "none"


@section.required(f"{_MANAGER}: an answer lacks a claim, or has another")
def answers_exactly_the_claim(bench: Bench) -> None:
    """The answer has one entry for the claim's uid, without an error, and no other."""
    bench.prepare(bench.claim())


@section.required(f"{_API}, NodePrepareResourcesRequest")
def empty_call(bench: Bench) -> None:
    """A call without claims is answered without claims."""
    expect_empty(lambda: bench.plugin.prepare(()))


def expect_empty(call: Callable[[], Sized]) -> None:
    try:
        found = call()
    except RefusedError as error:
        raise ViolationError(f"expected an empty answer; found {error}") from None
    if found:
        raise ViolationError(f"expected no claims in the answer; found {len(found)}")


@section.required(f"{_API}, Device.pool_name and device_name")
def devices_are_those_allocated(bench: Bench) -> None:
    """The prepared devices are the driver's results of the allocation, by pool and name."""
    claim = bench.claim()
    [devices] = bench.prepare(claim)
    expect_allocated(bench, claim, devices)
    named(devices)


@section.required(f"{_API}, Device; kubernetes/test/e2e/dra/dra.go: all devices usable")
def every_device_can_be_prepared(bench: Bench) -> None:
    """Each device that one claim could have can be prepared, all of them in one call."""
    claims = every_claim(bench)
    for claim, devices in zip(claims, bench.prepare(*claims), strict=True):
        expect_allocated(bench, claim, devices)


def every_claim(bench: Bench, most: int = 64) -> list[Obj]:
    """Claims of one device each, until there is none left, or so many."""
    claims = [bench.claim()]
    while len(claims) < most:
        try:
            claims.append(bench.claim())
        except UnanswerableError:
            break
    return claims


@section.required(f"{_API}, Device.request_names; kubernetes cm/dra/claiminfo.go, cdiDevicesAsList")
def requests_are_named(bench: Bench) -> None:
    """Each prepared device names the request that it was allocated for, or none at all."""
    claim = bench.claim({"name": "one", "exactly": {}}, {"name": "two", "exactly": {}})
    [devices] = bench.prepare(claim)
    expect_allocated(bench, claim, devices)
    _expect_requests(bench, claim, named(devices))


@section.required(f"{_API}, Device.request_names")
def devices_are_told_apart(bench: Bench) -> None:
    """Devices of different requests name their request: a container may have one and not both."""
    claim = bench.claim({"name": "one", "exactly": {}}, {"name": "two", "exactly": {}})
    [devices] = bench.prepare(claim)
    silent = [one.name for one in named(devices) if not one.request_names]
    if silent:
        raise ViolationError(f"expected request names; found none of {', '.join(silent[:5])}")


@section.required(f"{_API}, Device.request_names: the base name; claiminfo.go")
def subrequests_name_their_request(bench: Bench) -> None:
    """A device of a subrequest names the request alone, not request/subrequest."""
    claim = bench.claim({"name": "one", "firstAvailable": [{"name": "first"}]})
    [devices] = bench.prepare(claim)
    _expect_requests(bench, claim, named(devices))


def _expect_requests(bench: Bench, claim: Obj, devices: Iterable[Device]) -> None:
    for device in devices:
        names = {  # shares of one device may be for several requests
            one["request"].partition("/")[0]
            for one in results(bench, claim)
            if (one["pool"], one["device"]) == (device.pool, device.name)
        }
        if not names.issuperset(device.request_names):
            wanted, found = ", ".join(sorted(names)), ", ".join(device.request_names)[:100]
            raise ViolationError(
                f"expected device {device.name} for request {wanted}; found {found}"
            )


@section.required(f"{_TYPES}, ExactDeviceRequest.Count")
def several_devices_of_a_request(bench: Bench) -> None:
    """A claim with two devices in one request gets both."""
    claim = bench.claim({"name": "gpu", "exactly": {"count": 2}})
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.required(f"{_HELPER}: one entry for each claim")
def several_claims_in_a_call(bench: Bench) -> None:
    """Two claims in one call are both prepared, each with its own devices."""
    claims = [bench.claim(), bench.claim()]
    for claim, devices in zip(claims, bench.prepare(*claims), strict=True):
        expect_allocated(bench, claim, devices)


@section.required(f"{_HELPER}: must be idempotent")
def again_gives_the_same(bench: Bench) -> None:
    """To prepare a prepared claim again succeeds, with the same devices and CDI ids."""
    claim = bench.claim({"name": "one", "exactly": {}})
    first = bench.prepare(claim)
    for _ in range(2):
        expect_same(first, bench.prepare(claim))


@section.recommended(f"{_TYPES}, ResourceClaimStatus.ReservedFor: pods may share a claim")
def claim_of_two_pods(bench: Bench) -> None:
    """A claim that a second pod shares is prepared again as before, and anew for both."""
    claim = bench.claim()
    first = bench.prepare(claim)
    shared = bench.allocate(claim, claim["status"]["allocation"], pods=2)
    expect_same(first, bench.prepare(shared))
    bench.unprepare(shared)
    expect_allocated(bench, shared, *bench.prepare(shared))


def expect_same(first: list[tuple[Device, ...]], again: list[tuple[Device, ...]]) -> None:
    if [sorted(one, key=repr) for one in first] != [sorted(one, key=repr) for one in again]:
        raise ViolationError(f"expected {_answer(first)} again; found {_answer(again)}")


def _answer(answer: list[tuple[Device, ...]]) -> str:
    shown = (
        f"{one.name} for {'+'.join(one.request_names)} ({' '.join(one.cdi_ids)})"
        for devices in answer
        for one in devices
    )
    return "; ".join(shown)[:300] or "no devices"


@section.required(f"{_HELPER}: prepared and new claims in one pod (e2e/dra/dra.go)")
def prepared_and_new_together(bench: Bench) -> None:
    """A call with a claim that is prepared and one that is not prepares both."""
    old, new = bench.claim(), bench.claim()
    first = bench.prepare(old)
    both = bench.prepare(old, new)
    expect_same(first, both[:1])
    expect_allocated(bench, new, both[1])


@section.required(f"{_TYPES}, DeviceRequestAllocationResult.Driver")
def results_of_others_are_left_out(bench: Bench) -> None:
    """Of a claim with devices of two drivers, the driver prepares only its own."""
    one: dict[str, Any] = {"name": "one", "exactly": {}}
    allocation = bench.allocation(bench.pending_claim(one))
    [own] = allocation["devices"]["results"]
    # A device that the driver has, too: what tells them apart is the driver's name.
    allocation["devices"]["results"].append({**own, "request": "two", "driver": OTHER_DRIVER})
    claim = bench.allocate(bench.pending_claim(one, {**one, "name": "two"}), allocation)
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.required(f"{_TYPES}, OpaqueDeviceConfiguration.Driver")
def configuration_of_others_is_ignored(bench: Bench) -> None:
    """Opaque configuration for another driver is none of the driver's business."""
    parameters = {"apiVersion": "other.dra-conformance.dev/v1", "kind": "Other"}
    claim = bench.configured_claim(OTHER_DRIVER, parameters)
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.recommended(f"{_TYPES}, AdminAccess: not counted as use; a driver need not offer it")
def admin_access_beside_a_holder(bench: Bench) -> None:
    """A claim with admin access is prepared though another claim has the device."""
    holder = bench.prepared_claim()
    admin = bench.pending_claim({"name": "gpu", "exactly": {"adminAccess": True}})
    allocation = bench.allocation(admin)
    [held] = results(bench, holder)
    allocation["devices"]["results"][0] |= {key: held[key] for key in ("pool", "device")}
    admin = bench.allocate(admin, allocation)
    expect_allocated(bench, admin, *bench.prepare(admin))


@section.required("kubernetes/pkg/kubelet/cm/dra/plugin: each kubelet takes one version")
def versions_agree(bench: Bench) -> None:
    """What one version of the service prepared, another gives again and unprepares."""
    known = [one for one in bench.info.supported_versions if one in SERVICES]
    if len(known) < 2:
        raise NotOfferedError(f"the driver offers only {', '.join(known)}")
    claim = bench.claim()
    first, second = (bench.connect(version) for version in known[:2])
    try:
        expect_same(bench.prepare(claim, plugin=first), bench.prepare(claim, plugin=second))
        bench.unprepare(claim, plugin=second)
    finally:
        first.close()
        second.close()
