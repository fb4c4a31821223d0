"""Claims that a driver must not prepare, and what it does meanwhile for others."""

from __future__ import annotations

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.checks.cdi import expect_resolved
from conformance.drivercheck.checks.prepare import (
    expect_allocated,
    expect_refused,
    expect_same,
    need_exclusive,
)
from conformance.drivercheck.violations import SilenceError, ViolationError

section = Section("refuse")

_HELPER = "k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go"
_CLAIMS = f"{_HELPER}, getResourceClaims"


@section.required(_CLAIMS)
def claim_that_does_not_exist(bench: Bench) -> None:
    """A claim that the API server does not have is an error."""
    claim = bench.allocated_claim()
    bench.delete_claim(claim)
    expect_refused(bench, claim, "a claim that does not exist")


@section.required(_CLAIMS)
def claim_with_another_uid(bench: Bench) -> None:
    """A claim that was replaced by one of the same name, with another uid, is an error."""
    old = bench.allocated_claim(name="replaced")
    bench.delete_claim(old)
    bench.allocated_claim(name="replaced")
    expect_refused(bench, old, "a claim that was replaced")


@section.required(_CLAIMS)
def claim_without_allocation(bench: Bench) -> None:
    """A claim that is not allocated is an error."""
    expect_refused(bench, bench.pending_claim(), "a claim without an allocation")


@section.recommended("k8s.io/api/resource/v1/types.go, DeviceRequestAllocationResult.Device")
def unknown_device(bench: Bench) -> None:
    """A claim with a device or a pool that the driver does not have is an error."""
    for field in ("device", "pool"):
        claim = bench.pending_claim()
        allocation = bench.find_allocation(claim)
        allocation["devices"]["results"][0][field] = f"no-such-{field}"
        claim = bench.allocate(claim, allocation)
        expect_refused(bench, claim, f"a {field} that does not exist")


@section.required(f"{_HELPER}, PrepareResourceClaims: the last line of defense (kubernetes#141471)")
def device_in_use(bench: Bench) -> None:
    """A claim is refused a device that another claim has, until that one is unprepared."""
    holder = bench.allocated_claim()
    need_exclusive(bench, holder)
    second = bench.pending_claim()
    second = bench.allocate(second, holder["status"]["allocation"])
    bench.prepare(holder)
    expect_refused(bench, second, "a device that another claim has")
    bench.unprepare(holder)
    expect_allocated(bench, second, *bench.prepare(second))


@section.required("kubernetes/pkg/kubelet/cm/dra/manager.go: the kubelet tries again")
def refused_claim_can_be_prepared_later(bench: Bench) -> None:
    """A claim that was refused is prepared once the reason is gone."""
    claim = bench.pending_claim()
    expect_refused(bench, claim, "a claim without an allocation")
    claim = bench.allocate(claim, bench.find_allocation(claim))
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.required("kubernetes/pkg/kubelet/cm/dra/manager.go, unprepareResources: also what failed")
def refused_claim_can_be_unprepared(bench: Bench) -> None:
    """To unprepare a claim that was refused succeeds: else its pod can never be deleted."""
    claim = bench.pending_claim()
    expect_refused(bench, claim, "a claim without an allocation")
    bench.unprepare(claim)


@section.recommended("k8s.io/kubelet/pkg/apis/dra/v1/api.proto, NodePrepareResourceResponse.error")
def one_bad_claim_spares_the_others(bench: Bench) -> None:
    """In a call with a claim that is refused, the other claim is prepared all the same."""
    good, bad = bench.allocated_claim(), bench.pending_claim()
    of_good, of_bad = bench.try_prepare(good, bad)
    if not of_bad:
        raise ViolationError("expected an error for a claim without an allocation; found none")
    if of_good:
        raise ViolationError(f"expected the other claim prepared; found {of_good[:200]}")


@section.required("kubernetes/pkg/kubelet/cm/dra/manager.go: an error of one claim is its own")
def refusal_leaves_prepared_claims(bench: Bench) -> None:
    """A call that fails does not undo what was prepared before."""
    good, bad = bench.allocated_claim(), bench.pending_claim()
    first = bench.prepare(good)
    bench.try_prepare(good, bad)
    expect_resolved(bench, {name for device in first[0] for name in device.cdi_ids})
    expect_same(first, bench.prepare(good))


@section.required(f"{_CLAIMS}: the API server is asked at each call")
def api_server_that_is_down(bench: Bench) -> None:
    """While the API server answers 503 a new claim is an error or waits; then it is prepared."""
    claim = bench.allocated_claim()
    with bench.api_down():
        try:
            [error] = bench.try_prepare(claim)
        except SilenceError:
            error = "no answer"
    if not error:
        raise ViolationError("expected an error while the claim could not be read; found none")
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.recommended("k8s.io/api/resource/v1/types.go, OpaqueDeviceConfiguration.Parameters")
def unknown_configuration(bench: Bench) -> None:
    """Opaque configuration for the driver of a kind that it cannot know is an error."""
    parameters = {"apiVersion": "nonsense.dra-conformance.dev/v0", "kind": "Nonsense"}
    claim = bench.configured_claim(bench.driver.name, parameters)
    expect_refused(bench, claim, "configuration of an unknown kind")
