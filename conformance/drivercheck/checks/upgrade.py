"""Another version of the driver takes over what this one prepared, and hands it back.

Pods outlive an update of their driver, and a bad update is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.checks.cdi import expect_gone, expect_resolved
from conformance.drivercheck.checks.prepare import expect_free, expect_same
from conformance.drivercheck.kubelet import Device
from conformance.drivercheck.violations import NotOfferedError
from kube.values import Obj

section = Section("upgrade", starts_driver=True)

_HELPER = "k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go"
_FIELD = "kubernetes-sigs/dra-driver-nvidia-gpu#394, #1080"
_ROLLBACK = "kubernetes-sigs/dra-driver-nvidia-gpu#505, #507: rolling back an update"


@contextmanager
def _next_version(bench: Bench) -> Iterator[None]:
    """Run the next version meanwhile, in the folders of this one."""
    if bench.driver.next_starter is None:
        raise NotOfferedError("no next version was given; give --next-driver-command")
    this, bench.driver.starter = bench.driver.starter, bench.driver.next_starter
    try:
        bench.driver.restart()
        yield
    finally:
        bench.driver.starter = this


def _begin_anew(bench: Bench) -> None:
    """Start without what the next version has written: that this one reads it is another check."""
    bench.clean()
    bench.driver.renew()


@section.required(f"{_HELPER}, PrepareResourceClaims: must be idempotent; {_FIELD}")
def next_version_knows_prepared_claims(bench: Bench) -> None:
    """After an update CDI ids of prepared claims resolve, and prepare gives the same devices."""
    claim = bench.allocated_claim()
    first = bench.prepare(claim)
    with _next_version(bench):
        _expect_known(bench, claim, first)
    _begin_anew(bench)


@section.required(f"{_HELPER}, UnprepareResourceClaims: cannot assume the same process; {_FIELD}")
def next_version_unprepares(bench: Bench) -> None:
    """What this version prepared, the next unprepares, though the claim's object is gone."""
    claim = bench.prepared_claim()
    with _next_version(bench):
        _expect_undone(bench, claim)
    _begin_anew(bench)


@section.recommended(f"{_HELPER}, UnprepareResourceClaims: must undo whatever prepare did")
def cdi_devices_go_with_the_next_version(bench: Bench) -> None:
    """A CDI device of this version is gone when the next has unprepared its claim."""
    with ExitStack() as stack:
        expect_gone(bench, lambda: stack.enter_context(_next_version(bench)))
    _begin_anew(bench)


@section.recommended(f"{_ROLLBACK}; {_HELPER}: claims of an earlier process")
def this_version_takes_back(bench: Bench) -> None:
    """After an update that is undone, this version knows the claims that either prepared."""
    claims = [bench.allocated_claim()]
    answers = [bench.prepare(claims[0])]
    with _next_version(bench):
        _expect_known(bench, claims[0], answers[0])
        for claim in _another_claim(bench):
            claims.append(claim)
            answers.append(bench.prepare(claim))
    bench.driver.restart()
    for claim, answer in zip(claims, answers, strict=True):
        _expect_known(bench, claim, answer)
    for claim in claims:
        _expect_undone(bench, claim)


def _another_claim(bench: Bench) -> list[Obj]:
    try:
        return [bench.allocated_claim()]
    except NotOfferedError:  # the driver has one device
        return []


def _cdi_ids(answer: list[tuple[Device, ...]]) -> set[str]:
    return {name for devices in answer for device in devices for name in device.cdi_ids}


def _expect_known(bench: Bench, claim: Obj, first: list[tuple[Device, ...]]) -> None:
    """Expect ids of both answers to resolve; they may differ, as names of specs do by version."""
    expect_resolved(bench, _cdi_ids(first))
    second = bench.prepare(claim)
    expect_same(_without_ids(first), _without_ids(second))
    expect_resolved(bench, _cdi_ids(second))


def _without_ids(answer: list[tuple[Device, ...]]) -> list[tuple[Device, ...]]:
    return [tuple(replace(device, cdi_ids=()) for device in devices) for devices in answer]


def _expect_undone(bench: Bench, claim: Obj) -> None:
    bench.delete_claim(claim)
    bench.unprepare(claim)
    expect_free(bench, claim)
