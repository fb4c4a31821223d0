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


def own_results(bench: Bench, claim: Obj) -> list[dict[str, Any]]:
    """Return the results of a claim's allocation that are the driver's."""
    all_results = claim["status"]["allocation"]["devices"]["results"]
    return [result for result in all_results if result["driver"] == bench.driver.name]


def expect_allocated(bench: Bench, claim: Obj, devices: Sequence[Device]) -> None:
    """Raise ViolationError if the prepared devices are not the allocation's.

    A driver that never names any device is right, too.
    """
    allocated = sorted((result["pool"], result["device"]) for result in own_results(bench, claim))
    prepared = sorted((device.pool, device.name) for device in devices)
    if allocated != prepared and (prepared or bench.names_devices):
        raise ViolationError(
            f"expected the devices {_describe_devices(allocated)}; found"
            f" {_describe_devices(prepared)}"
        )
    shares = {"", *(result.get("shareID", "") for result in own_results(bench, claim))}
    if wrong := {device.share_id for device in devices} - shares:
        raise ViolationError(f"expected a share of the allocation; found {', '.join(wrong)[:100]}")


def need_devices(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Return the devices of an answer. Raises NotOfferedError: there are none, which is allowed."""
    if not devices:
        raise NotOfferedError("the driver's answers name no devices")
    return devices


def expect_refused(bench: Bench, claim: Obj, what: str) -> None:
    """Raise ViolationError if the driver prepares the claim without an error."""
    [error] = bench.try_prepare(claim)
    if not error:
        raise ViolationError(f"expected an error for {what}; found it prepared")


def need_exclusive(bench: Bench, claim: Obj) -> None:
    """Raise NotOfferedError if the claim's devices may be shared: another may have them, too."""
    if any("shareID" in result for result in own_results(bench, claim)):
        raise NotOfferedError("the driver's devices may be shared")


def expect_free(bench: Bench, claim: Obj) -> None:
    """Raise ViolationError if the devices of a claim cannot be prepared for another claim."""
    other = bench.allocate(bench.pending_claim(), claim["status"]["allocation"])
    expect_allocated(bench, other, *bench.prepare(other))


def _describe_devices(devices: list[tuple[str, str]]) -> str:
    return ", ".join(f"{pool}/{name}"[:100] for pool, name in devices[:8]) or "none"


@section.required(f"{_MANAGER}: an answer lacks a claim, or has another")
def answers_exactly_the_claim(bench: Bench) -> None:
    """The answer has one entry for the claim's uid, without an error, and no other."""
    bench.prepare(bench.allocated_claim())


@section.required(f"{_API}, NodePrepareResourcesRequest")
def empty_call(bench: Bench) -> None:
    """A call without claims is answered without claims."""
    expect_empty(lambda: bench.driver.plugin.prepare(()))


def expect_empty(call: Callable[[], Sized]) -> None:
    """Raise ViolationError if a call without claims fails, or answers with some."""
    try:
        answer = call()
    except RefusedError as error:
        raise ViolationError(f"expected an empty answer; found {error}") from None
    if answer:
        raise ViolationError(f"expected no claims in the answer; found {len(answer)}")


@section.required(f"{_API}, Device.pool_name and device_name")
def devices_are_those_allocated(bench: Bench) -> None:
    """The prepared devices are the driver's results of the allocation, by pool and name."""
    claim = bench.allocated_claim()
    [devices] = bench.prepare(claim)
    expect_allocated(bench, claim, devices)
    need_devices(devices)


@section.required(f"{_API}, Device; kubernetes/test/e2e/dra/dra.go: all devices usable")
def every_device_can_be_prepared(bench: Bench) -> None:
    """Each device that one claim could have can be prepared, all of them in one call."""
    claims = every_claim(bench)
    for claim, devices in zip(claims, bench.prepare(*claims), strict=True):
        expect_allocated(bench, claim, devices)


def every_claim(bench: Bench, most: int = 64) -> list[Obj]:
    """Return claims of one device each: as many as there are devices, or ``most``."""
    claims = [bench.allocated_claim()]
    while len(claims) < most:
        try:
            claims.append(bench.allocated_claim())
        except UnanswerableError:
            break
    return claims


@section.required(f"{_API}, Device.request_names; kubernetes cm/dra/claiminfo.go, cdiDevicesAsList")
def requests_are_named(bench: Bench) -> None:
    """Each prepared device names the request that it was allocated for, or none at all."""
    claim = bench.allocated_claim({"name": "one", "exactly": {}}, {"name": "two", "exactly": {}})
    [devices] = bench.prepare(claim)
    expect_allocated(bench, claim, devices)
    _expect_requests(bench, claim, need_devices(devices))


@section.required(f"{_API}, Device.request_names")
def devices_are_told_apart(bench: Bench) -> None:
    """Devices of different requests name their request: a container may have one and not both."""
    claim = bench.allocated_claim({"name": "one", "exactly": {}}, {"name": "two", "exactly": {}})
    [devices] = bench.prepare(claim)
    silent = [device.name for device in need_devices(devices) if not device.request_names]
    if silent:
        raise ViolationError(f"expected request names; found none of {', '.join(silent[:5])}")


@section.required(f"{_API}, Device.request_names: the base name; claiminfo.go")
def subrequests_name_their_request(bench: Bench) -> None:
    """A device of a subrequest names the request alone, not request/subrequest."""
    claim = bench.allocated_claim({"name": "one", "firstAvailable": [{"name": "first"}]})
    [devices] = bench.prepare(claim)
    _expect_requests(bench, claim, need_devices(devices))


def _expect_requests(bench: Bench, claim: Obj, devices: Iterable[Device]) -> None:
    for device in devices:
        names = {  # shares of one device may be for several requests
            result["request"].partition("/")[0]
            for result in own_results(bench, claim)
            if (result["pool"], result["device"]) == (device.pool, device.name)
        }
        if not names.issuperset(device.request_names):
            expected_names, answered_names = (
                ", ".join(sorted(names)),
                ", ".join(device.request_names)[:100],
            )
            raise ViolationError(
                f"expected device {device.name} for request {expected_names}; found"
                f" {answered_names}"
            )


@section.required(f"{_TYPES}, ExactDeviceRequest.Count")
def several_devices_of_a_request(bench: Bench) -> None:
    """A claim with two devices in one request gets both."""
    claim = bench.allocated_claim({"name": "gpu", "exactly": {"count": 2}})
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.required(f"{_HELPER}: one entry for each claim")
def several_claims_in_a_call(bench: Bench) -> None:
    """Two claims in one call are both prepared, each with its own devices."""
    claims = [bench.allocated_claim(), bench.allocated_claim()]
    for claim, devices in zip(claims, bench.prepare(*claims), strict=True):
        expect_allocated(bench, claim, devices)


@section.required(f"{_HELPER}: must be idempotent")
def again_gives_the_same(bench: Bench) -> None:
    """To prepare a prepared claim again succeeds, with the same devices and CDI ids."""
    claim = bench.allocated_claim({"name": "one", "exactly": {}})
    first = bench.prepare(claim)
    for _ in range(2):
        expect_same(first, bench.prepare(claim))


@section.recommended(f"{_TYPES}, ResourceClaimStatus.ReservedFor: pods may share a claim")
def claim_of_two_pods(bench: Bench) -> None:
    """A claim that a second pod shares is prepared again as before, and anew for both."""
    claim = bench.allocated_claim()
    first = bench.prepare(claim)
    shared = bench.allocate(claim, claim["status"]["allocation"], pods=2)
    expect_same(first, bench.prepare(shared))
    bench.unprepare(shared)
    expect_allocated(bench, shared, *bench.prepare(shared))


def expect_same(first: list[tuple[Device, ...]], second: list[tuple[Device, ...]]) -> None:
    if [sorted(devices, key=repr) for devices in first] != [
        sorted(devices, key=repr) for devices in second
    ]:
        raise ViolationError(
            f"expected {_describe_answer(first)} again; found {_describe_answer(second)}"
        )


def _describe_answer(answer: list[tuple[Device, ...]]) -> str:
    descriptions = (
        f"{device.name} for {'+'.join(device.request_names)} ({' '.join(device.cdi_ids)})"
        for claim_devices in answer
        for device in claim_devices
    )
    return "; ".join(descriptions)[:300] or "no devices"


@section.required(f"{_HELPER}: prepared and new claims in one pod (e2e/dra/dra.go)")
def prepared_and_new_together(bench: Bench) -> None:
    """A call with a claim that is prepared and one that is not prepares both."""
    old, new = bench.allocated_claim(), bench.allocated_claim()
    first = bench.prepare(old)
    both = bench.prepare(old, new)
    expect_same(first, both[:1])
    expect_allocated(bench, new, both[1])


@section.required(f"{_TYPES}, DeviceRequestAllocationResult.Driver")
def results_of_others_are_left_out(bench: Bench) -> None:
    """Of a claim with devices of two drivers, the driver prepares only its own."""
    request: dict[str, Any] = {"name": "one", "exactly": {}}
    allocation = bench.find_allocation(bench.pending_claim(request))
    [own_result] = allocation["devices"]["results"]
    # A device that the driver has, too: what tells them apart is the driver's name.
    allocation["devices"]["results"].append(
        {**own_result, "request": "two", "driver": OTHER_DRIVER}
    )
    claim = bench.allocate(bench.pending_claim(request, {**request, "name": "two"}), allocation)
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
    allocation = bench.find_allocation(admin)
    [held] = own_results(bench, holder)
    allocation["devices"]["results"][0] |= {key: held[key] for key in ("pool", "device")}
    admin = bench.allocate(admin, allocation)
    expect_allocated(bench, admin, *bench.prepare(admin))


@section.recommended(f"{_TYPES}, AdminAccess: it does not count as use")
def holder_beside_admin_access(bench: Bench) -> None:
    """A device that a claim with admin access has is prepared for another claim."""
    admin = bench.allocated_claim({"name": "gpu", "exactly": {"adminAccess": True}})
    [error] = bench.try_prepare(admin)
    if error:
        raise NotOfferedError(f"the driver prepares no claim with admin access: {error[:100]}")
    holder = bench.pending_claim()
    allocation = bench.find_allocation(holder)
    [seen_by_admin] = own_results(bench, admin)
    allocation["devices"]["results"][0] |= {key: seen_by_admin[key] for key in ("pool", "device")}
    holder = bench.allocate(holder, allocation)
    expect_allocated(bench, holder, *bench.prepare(holder))


@section.required("kubernetes/community api-conventions.md: clients ignore fields they do not know")
def unknown_fields_are_ignored(bench: Bench) -> None:
    """A claim with fields that this version of the API does not have is prepared."""
    claim = bench.allocated_claim()
    bench.api.faults.unknown_fields = True
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.required(f"{_MANAGER}: a claim is not asked whether it is being deleted")
def claim_being_deleted(bench: Bench) -> None:
    """A claim that somebody deletes while it is reserved is prepared for the pod that has it."""
    claim = bench.allocated_claim()
    bench.api.objects.begin_deletion(claim)
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.recommended("kubernetes-sigs/dra-driver-nvidia-gpu#1162: a call to unprepare may be lost")
def claim_allocated_anew(bench: Bench) -> None:
    """A prepared claim that was allocated again, elsewhere, gets its new device or is refused."""
    claim = bench.prepared_claim()
    need_exclusive(bench, claim)
    elsewhere = bench.find_allocation(bench.pending_claim())
    claim = bench.allocate(claim, elsewhere)
    [error] = bench.try_prepare(claim)
    if not error:
        expect_allocated(bench, claim, *bench.prepare(claim))


@section.required("kubernetes/pkg/kubelet/cm/dra/plugin: each kubelet takes one version")
def versions_agree(bench: Bench) -> None:
    """What one version of the service prepared, another gives again and unprepares."""
    known_versions = [
        offered for offered in bench.driver.info.supported_versions if offered in SERVICES
    ]
    if len(known_versions) < 2:
        raise NotOfferedError(f"the driver offers only {', '.join(known_versions)}")
    claim = bench.allocated_claim()
    first, second = (bench.driver.connect(version) for version in known_versions[:2])
    try:
        expect_same(bench.prepare(claim, plugin=first), bench.prepare(claim, plugin=second))
        bench.unprepare(claim, plugin=second)
    finally:
        first.close()
        second.close()
