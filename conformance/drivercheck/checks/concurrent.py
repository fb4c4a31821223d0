"""Calls at the same time: a kubelet prepares the claims of several pods at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from conformance.drivercheck import kubelet
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.checks.cdi import expect_resolved
from conformance.drivercheck.checks.prepare import (
    every_claim,
    expect_allocated,
    expect_free,
    expect_same,
    need_exclusive,
)
from conformance.drivercheck.violations import SilenceError, ViolationError

section = Section("concurrent")

_MANAGER = "kubernetes/pkg/kubelet/cm/dra/manager.go: pods are worked on side by side"
_OTHERS_SECONDS = 5.0
_UNPREPARE_SECONDS = 1.0


def call_together(*calls: Callable[[], Any]) -> list[Any]:
    """Call all at once; return their results in order, or raise the first error."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]


@section.required(_MANAGER)
def different_claims(bench: Bench) -> None:
    """Claims that are prepared by calls at the same time all get their devices."""
    claims = every_claim(bench, most=8)
    answers = call_together(*(lambda c=claim: bench.prepare(c) for claim in claims))
    for claim, [devices] in zip(claims, answers, strict=True):
        expect_allocated(bench, claim, devices)
        expect_resolved(bench, {name for device in devices for name in device.cdi_ids})


@section.required(f"{_MANAGER}; a kubelet that was restarted may ask while it is still worked on")
def same_claim(bench: Bench) -> None:
    """The same claim prepared by four calls at the same time gives one answer."""
    claim = bench.allocated_claim()
    first, *other_answers = call_together(*[lambda: bench.prepare(claim)] * 4)
    for other in other_answers:
        expect_same(first, other)


@section.required(_MANAGER)
def prepare_beside_unprepare(bench: Bench) -> None:
    """One claim is prepared while another is unprepared, again and again."""
    first, second = bench.allocated_claim(), bench.allocated_claim()
    bench.prepare(first)
    for _ in range(3):
        call_together(lambda: bench.unprepare(first), lambda: bench.prepare(second))
        call_together(lambda: bench.prepare(first), lambda: bench.unprepare(second))
    expect_allocated(bench, first, *bench.prepare(first))


@section.required(_MANAGER)
def unprepare_of_the_same_claim(bench: Bench) -> None:
    """The same claim unprepared by four calls at the same time succeeds in each."""
    claim = bench.prepared_claim()
    call_together(*[lambda: bench.unprepare(claim)] * 4)


@section.required(f"{_MANAGER}: force-deleted pods are unprepared while they are being prepared")
def ends_unprepared(bench: Bench) -> None:
    """After prepare and unprepare at the same time, and one more unprepare, the device is free."""
    claim = bench.prepared_claim()
    call_together(lambda: bench.try_prepare(claim), lambda: bench.unprepare(claim))
    bench.unprepare(claim)
    expect_free(bench, claim)


@section.recommended("k8s.io/dynamic-resource-allocation/kubeletplugin: slow API calls first")
def slow_claim_holds_up_no_other(bench: Bench) -> None:
    """While the API server does not answer for one claim, another is prepared."""
    slow, quick = bench.allocated_claim(), bench.allocated_claim()
    bench.api.faults.hold.add(slow["metadata"]["name"])
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(_try_prepare, bench, [kubelet.claim_reference(slow)])
        try:
            # Else the quick one may overtake it on a busy machine, and nothing is seen.
            bench.api.wait_held(slow["metadata"]["name"], _OTHERS_SECONDS)
            [error] = bench.try_prepare(quick, seconds=_OTHERS_SECONDS)
            if error:
                raise ViolationError(f"expected the other claim prepared; found {error[:200]}")
        finally:
            bench.api.release()
            waiting.result()


def _try_prepare(bench: Bench, references: list[dict[str, str]]) -> None:
    with suppress(kubelet.RefusedError, SilenceError):
        bench.driver.plugin.prepare(references, _OTHERS_SECONDS * 2)


@section.required("kubernetes/pkg/kubelet/cm/dra/plugin/dra_plugin.go: 45 s, then it asks again")
def caller_that_gave_up(bench: Bench) -> None:
    """A claim whose caller gave up waiting can be prepared and unprepared all the same."""
    claim = bench.allocated_claim()
    bench.api.faults.hold.add(claim["metadata"]["name"])
    with suppress(kubelet.RefusedError, SilenceError):
        bench.driver.plugin.prepare([kubelet.claim_reference(claim)], 0.2)
    bench.api.release()
    bench.unprepare(claim)
    expect_allocated(bench, claim, *bench.prepare(claim))


# Not required: Kubernetes' helper reads the claim before its lock, and does not tell the driver
# when a call came (kubeletplugin/draplugin.go, NodePrepareResources), so no driver built on it can.
@section.recommended(f"{_MANAGER}; as dra-driver-nvidia-gpu#1162")
def prepare_that_comes_late(bench: Bench) -> None:
    """A claim that is unprepared while it is slow to be prepared leaves its device free."""
    claim = bench.allocated_claim()
    need_exclusive(bench, claim)
    name = claim["metadata"]["name"]
    bench.api.faults.hold.add(name)
    with ThreadPoolExecutor(2) as threads:
        late = threads.submit(_try_prepare, bench, [kubelet.claim_reference(claim)])
        bench.api.wait_held(name, _OTHERS_SECONDS)
        unprepared = threads.submit(bench.unprepare, claim)
        with suppress(TimeoutError):  # it may wait for the prepare, which is right, too
            unprepared.result(_UNPREPARE_SECONDS)
        bench.api.release()
        late.result()
        unprepared.result()
    expect_free(bench, claim)
