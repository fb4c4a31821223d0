"""Unpreparing claims: always possible, and it undoes what prepare did."""

from __future__ import annotations

import copy
import uuid

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.checks.cdi import expect_resolved
from conformance.drivercheck.checks.prepare import (
    every_claim,
    expect_allocated,
    expect_empty,
    expect_free,
    expect_same,
)
from conformance.drivercheck.objects import OTHER_NAMESPACE
from conformance.drivercheck.process import count_files_and_threads
from conformance.drivercheck.violations import UnanswerableError, ViolationError

section = Section("unprepare")

_ROUNDS = 24

_MANAGER = "kubernetes/pkg/kubelet/cm/dra/manager.go, unprepareResources"
_HELPER = "k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go, UnprepareResourceClaims"


@section.required(f"{_MANAGER}: an answer lacks a claim, or has another")
def answers_exactly_the_claim(bench: Bench) -> None:
    """The answer has one entry for the claim's uid, without an error, and no other."""
    claim = bench.prepared_claim()
    bench.unprepare(claim)


@section.required("k8s.io/kubelet/pkg/apis/dra/v1/api.proto, NodeUnprepareResourcesRequest")
def empty_call(bench: Bench) -> None:
    """A call without claims is answered without claims."""
    expect_empty(lambda: bench.driver.plugin.unprepare(()))


@section.required(f"{_HELPER}: must be idempotent")
def again_succeeds(bench: Bench) -> None:
    """To unprepare a claim twice succeeds."""
    claim = bench.prepared_claim()
    bench.unprepare(claim)
    bench.unprepare(claim)


@section.required(f"{_HELPER}: not an error for a claim that is not prepared")
def unknown_claim_succeeds(bench: Bench) -> None:
    """To unprepare a claim that was never prepared succeeds."""
    bench.unprepare(bench.allocated_claim())


@section.required(f"{_HELPER}: the original ResourceClaims may have been deleted")
def claim_object_may_be_gone(bench: Bench) -> None:
    """A claim whose object was deleted is unprepared."""
    claim = bench.prepared_claim()
    bench.delete_claim(claim)
    bench.unprepare(claim)
    expect_free(bench, claim)


@section.recommended(f"{_HELPER}: the claim's uid, namespace and name are all that there is")
def needs_no_api_server(bench: Bench) -> None:
    """A claim is unprepared while the API server answers 503."""
    claim = bench.prepared_claim()
    with bench.api_down():
        bench.unprepare(claim)


@section.required(f"{_HELPER}: must undo whatever prepare did")
def frees_the_device(bench: Bench) -> None:
    """The device of a claim that was unprepared can be prepared for another claim."""
    claim = bench.prepared_claim()
    bench.unprepare(claim)
    bench.delete_claim(claim)
    expect_free(bench, claim)


@section.required("kubernetes/test/e2e/dra/dra.go: reuse of a claim by another pod")
def claim_can_be_prepared_anew(bench: Bench) -> None:
    """A claim that was unprepared can be prepared again."""
    claim = bench.prepared_claim()
    bench.unprepare(claim)
    expect_allocated(bench, claim, *bench.prepare(claim))


@section.required("kubernetes/test/e2e/dra/dra.go: a claim is allocated anew for the next pod")
def claim_allocated_anew_gets_its_new_device(bench: Bench) -> None:
    """A claim that was unprepared and allocated anew gets the new device, not the old one."""
    claim = bench.allocated_claim()
    other = bench.allocated_claim()
    bench.prepare(claim)
    bench.unprepare(claim)
    moved = bench.allocate(claim, other["status"]["allocation"])
    expect_allocated(bench, moved, *bench.prepare(moved))


@section.required(f"{_HELPER}: one entry for each claim")
def several_claims_in_a_call(bench: Bench) -> None:
    """Prepared, unprepared and unknown claims in one call all succeed."""
    claims = every_claim(bench, most=3)
    bench.prepare(*claims)
    bench.unprepare(claims[0])
    unknown = copy.deepcopy(claims[0])
    unknown["metadata"] |= {"uid": str(uuid.uuid4()), "name": "never-seen"}
    bench.unprepare(*claims, unknown)
    bench.delete_claim(claims[-1])
    expect_free(bench, claims[-1])


@section.required(f"{_MANAGER}: each claim is its own")
def other_claims_stay_prepared(bench: Bench) -> None:
    """To unprepare one claim leaves another as it was."""
    gone, stays = bench.allocated_claim(), bench.allocated_claim()
    bench.prepare(gone)
    first = bench.prepare(stays)
    bench.unprepare(gone)
    expect_same(first, bench.prepare(stays))


@section.required("k8s.io/kubelet/pkg/apis/dra/v1/api.proto, Claim: namespace, name and uid")
def namespace_tells_claims_apart(bench: Bench) -> None:
    """Of two claims of one name in two namespaces each has its device, and may end alone."""
    gone = bench.allocated_claim(name="one-name")
    stays = bench.allocated_claim(name="one-name", namespace=OTHER_NAMESPACE)
    answer = bench.prepare(gone, stays)
    for claim, devices in zip((gone, stays), answer, strict=True):
        expect_allocated(bench, claim, devices)
        expect_resolved(bench, {name for device in devices for name in device.cdi_ids})
    bench.unprepare(gone)
    expect_resolved(bench, {name for device in answer[1] for name in device.cdi_ids})
    expect_same(answer[1:], bench.prepare(stays))


@section.recommended(f"{_HELPER}: must undo whatever prepare did")
def no_file_of_the_claim_is_left(bench: Bench) -> None:
    """No file or folder with the claim's uid in its name is left by what prepare made."""
    claim = bench.prepared_claim()
    bench.unprepare(claim)
    # The folder of the check is the driver's kubelet root, and has its CDI folders.
    files = sorted(bench.driver.folder.rglob(f"*{claim['metadata']['uid']}*"))
    remaining = [path.relative_to(bench.driver.folder) for path in files]
    if remaining:
        raise ViolationError(f"expected none; found {', '.join(map(str, remaining[:5]))[:300]}")


@section.recommended(f"{_HELPER}: must undo whatever prepare did; a driver runs for months")
def nothing_stays_open(bench: Bench) -> None:
    """A claim that is prepared and unprepared often leaves no file open, and no thread."""
    if bench.driver.process is None:
        raise UnanswerableError("the driver's process is not known here; give --driver-command")
    claim = bench.allocated_claim()
    counts: list[dict[str, int]] = []
    for _ in range(2):  # at first threads and connections are made that stay
        for _ in range(_ROUNDS):
            bench.prepare(claim)
            bench.unprepare(claim)
        counts.append(count_files_and_threads(bench.driver.process.pid))
    first, then = counts
    if not first["threads"]:
        raise UnanswerableError("this machine does not say what a process has open (/proc)")
    for kind, number in then.items():
        if number - first[kind] >= _ROUNDS // 2:
            raise ViolationError(
                f"expected no more {kind} after {_ROUNDS} times; found {number}, and {first[kind]} "
                "before"
            )


@section.required("k8s.io/kubelet/pkg/apis/dra/v1/api.proto, Claim.uid: it tells claims apart")
def uid_tells_claims_apart(bench: Bench) -> None:
    """To unprepare an older claim of the same name leaves the present one prepared."""
    old = bench.allocated_claim(name="same-name")
    bench.delete_claim(old)
    new = bench.allocated_claim(name="same-name")
    first = bench.prepare(new)
    bench.unprepare(old)
    expect_resolved(bench, {name for device in first[0] for name in device.cdi_ids})
    expect_same(first, bench.prepare(new))
