"""Requests that no kubelet sends, and clients that stall: the driver goes on."""

from __future__ import annotations

import copy
import os
import signal
import socket
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path

from conformance.drivercheck import kubelet
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.checks.prepare import expect_allocated, expect_refused
from conformance.drivercheck.violations import ViolationError
from kube.kubelet.plugins import INFO_SECONDS
from kube.values import Obj

section = Section("hostile")

_GRPC = "grpc.io, status codes; every process of root on the node can reach the socket"
_API = "k8s.io/kubelet/pkg/apis/dra/v1/api.proto, Claim"
_STALLED = 32
_UNTRUSTED_SECONDS = 3.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def _expect_to_go_on(bench: Bench, claim: Obj | None = None) -> None:
    claim = claim or bench.allocated_claim()
    expect_allocated(bench, claim, *bench.prepare(claim))
    bench.unprepare(claim)


def _registrar(bench: Bench) -> kubelet.Registrar:
    assert bench.driver.registrar is not None
    return bench.driver.registrar


def _sockets(bench: Bench) -> tuple[Path, Path]:
    registration = _registrar(bench).socket
    return Path(bench.driver.info.endpoint or registration), registration


@section.required(_GRPC)
def bytes_that_are_no_message(bench: Bench) -> None:
    """A call whose request cannot be decoded is an error, and the driver goes on."""
    for name in ("NodePrepareResources", "NodeUnprepareResources"):
        try:
            bench.driver.plugin.call_raw(
                bench.driver.plugin.method_path(name), b"\xff" * 64, kubelet.NOTIFY_SECONDS
            )
        except kubelet.RefusedError:
            continue
        raise ViolationError(f"expected an error of {name} for bytes that are not a message")
    _expect_to_go_on(bench)


@section.required("k8s.io/client-go, rest.TLSClientConfig: CAData", starts_driver=True, waits=True)
def server_that_is_not_trusted(bench: Bench) -> None:
    """A server with a certificate of another authority than the kubeconfig's gets no token."""
    kubeconfig = bench.api.write_untrusted_kubeconfig(bench.driver.folder / "untrusted")
    bench.driver.stop()
    requests = bench.api.requests
    bench.driver.start(KUBECONFIG=str(kubeconfig))
    try:
        bench.driver.wait(lambda: bench.api.requests > requests, _UNTRUSTED_SECONDS)
        told = bench.api.requests - requests
    finally:
        bench.driver.restart(signal.SIGKILL)
    if told:
        raise ViolationError(
            f"expected no request to a server with another authority's certificate; found {told}"
        )


@section.required(_GRPC)
def unknown_method(bench: Bench) -> None:
    """A call of a method that there is not is UNIMPLEMENTED, and the driver goes on."""
    try:
        bench.driver.plugin.call_raw(
            bench.driver.plugin.method_path("NoSuchMethod"), b"", kubelet.NOTIFY_SECONDS
        )
    except kubelet.RefusedError as error:
        if error.code.name != "UNIMPLEMENTED":
            raise ViolationError(f"expected UNIMPLEMENTED; found {error.code.name}") from None
    else:
        raise ViolationError("expected UNIMPLEMENTED; found an answer")
    _expect_to_go_on(bench)


def _with_metadata(claim: Obj, **metadata: str) -> Obj:
    changed = copy.deepcopy(claim)
    changed["metadata"] |= metadata
    return changed


@section.required(_API)
def empty_names(bench: Bench) -> None:
    """A claim without namespace, name and uid is not prepared, and the driver goes on."""
    some = bench.allocated_claim()
    expect_refused(
        bench, _with_metadata(some, namespace="", name="", uid=""), "a claim without names"
    )
    _expect_to_go_on(bench, some)


@section.required(_API)
def uid_that_is_a_path(bench: Bench) -> None:
    """A uid like ../x makes and removes no file outside of the driver's own."""
    foreign_files = [bench.driver.folder / name for name in ("kept", "kept.json")]
    foreign_files += [bench.driver.plugins / name for name in ("kept", "kept.json")]
    for file in foreign_files:
        file.write_text("somebody else's", encoding="utf-8")
    some = bench.allocated_claim()
    for uid in ("../kept", "../../kept", "../../plugins/kept"):
        claim = _with_metadata(some, uid=uid)
        bench.try_prepare(claim)
        with suppress(kubelet.RefusedError):  # which is as good as success
            bench.driver.plugin.unprepare([kubelet.claim_reference(claim)])
    gone = [str(file) for file in foreign_files if not file.exists()]
    if gone:
        raise ViolationError(f"expected them untouched; found removed: {', '.join(gone)}")
    for file in foreign_files:
        file.unlink()
    _expect_to_go_on(bench, some)


@section.required(_API)
def long_names(bench: Bench) -> None:
    """Names of a hundred thousand characters are an error, and the driver goes on."""
    some = bench.allocated_claim()
    long = _with_metadata(some, name="n" * 100_000, uid="u" * 100_000)
    expect_refused(bench, long, "names of 100000 characters")
    _expect_to_go_on(bench, some)


@section.required("kubernetes/pkg/kubelet/cm/dra/plugin/dra_plugin.go: 45 s for a call")
def thousand_unknown_claims(bench: Bench) -> None:
    """A call that unprepares a thousand unknown claims succeeds within 45 seconds."""
    some = bench.allocated_claim()
    bench.unprepare(
        *(_with_metadata(some, uid=str(uuid.uuid4()), name=f"n-{i}") for i in range(1000))
    )


@section.required(_API)
def same_claim_twice_in_a_call(bench: Bench) -> None:
    """A call that names a claim twice prepares it once, and unprepares it."""
    claim = bench.allocated_claim()
    [devices, second] = bench.prepare(claim, claim)
    expect_allocated(bench, claim, devices)
    if devices != second:
        raise ViolationError("expected one answer for the claim")
    bench.unprepare(claim, claim)


@section.required(_GRPC)
def another_protocol(bench: Bench) -> None:
    """Clients that speak another protocol, or leave in the middle, do not end the driver."""
    for path in _sockets(bench):
        for greeting in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096), _PREFACE[:10], b""):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(INFO_SECONDS)
                try:
                    client.connect(str(path))
                    client.sendall(greeting)
                except OSError:
                    continue  # it hung up, which is as good
    _expect_to_go_on(bench)
    _registrar(bench).get_info()


@section.required(_GRPC)
def clients_that_stall(bench: Bench) -> None:
    """While 32 clients are connected and say nothing, or half a greeting, calls are answered."""
    with ExitStack() as stack:
        for path in _sockets(bench):
            for number in range(_STALLED):
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.settimeout(INFO_SECONDS)
                try:
                    client.connect(str(path))
                    client.sendall(_PREFACE[: number % len(_PREFACE)])
                except OSError:
                    continue
        _expect_to_go_on(bench)
        _registrar(bench).get_info()
