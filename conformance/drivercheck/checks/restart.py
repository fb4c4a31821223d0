"""The driver ends, or is killed, between any two calls: a node forgets nothing."""

from __future__ import annotations

import signal
import time

from conformance.drivercheck import kubelet
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.checks.cdi import expect_gone, expect_resolved, ids_of
from conformance.drivercheck.checks.prepare import (
    expect_allocated,
    expect_free,
    expect_refused,
    expect_same,
    need_exclusive,
)
from conformance.drivercheck.driver import STOP_SECONDS
from conformance.drivercheck.kills.within import kill_within_calls
from conformance.drivercheck.violations import SilenceError, UnanswerableError, ViolationError
from kube.values import Obj

section = Section("restart", starts_driver=True)

_HELPER = "k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go"
_OTHER_PROCESS = f"{_HELPER}, UnprepareResourceClaims: cannot assume the same process"
_IDEMPOTENT = f"{_HELPER}, PrepareResourceClaims: must be idempotent"
_E2E = "kubernetes/test/e2e_node/dra_test.go: plugin restart"
_KILL_SECONDS = 18.0
"""How long a driver is killed in one way, so that all three take less than a minute."""


@section.required(_E2E)
def ends_at_sigterm(bench: Bench) -> None:
    """The driver ends within thirty seconds of SIGTERM, and starts again."""
    bench.driver.restart()


@section.required(_E2E)
def starts_over_what_was_killed(bench: Bench) -> None:
    """A driver that was killed starts over the sockets and files that it left."""
    bench.prepared_claim()
    bench.driver.restart(signal.SIGKILL)


@section.required(f"{_IDEMPOTENT}; {_E2E}")
def prepared_claim_stays_prepared(bench: Bench) -> None:
    """After a restart a prepared claim is prepared again with the same devices and ids."""
    _expect_same_after(bench, signal.SIGTERM)


@section.required(f"{_IDEMPOTENT}; {_E2E}")
def prepared_claim_outlives_a_kill(bench: Bench) -> None:
    """After a SIGKILL a prepared claim is prepared again with the same devices and ids."""
    _expect_same_after(bench, signal.SIGKILL)


def _expect_same_after(bench: Bench, number: int) -> None:
    claim = bench.allocated_claim()
    first = bench.prepare(claim)
    bench.driver.restart(number)
    expect_same(first, bench.prepare(claim))


@section.required("k8s.io/kubelet: containers of running pods are started again without a call")
def cdi_devices_outlive_a_kill(bench: Bench) -> None:
    """After a SIGKILL and a start the CDI ids of prepared claims resolve, without a call."""
    ids = ids_of(bench.prepare(bench.allocated_claim()))
    bench.driver.restart(signal.SIGKILL)
    expect_resolved(bench, ids)


@section.required(
    "kubernetes#141433; k8s.io/kubelet: containers start again while a driver is away"
)
def cdi_devices_stay_at_the_end(bench: Bench) -> None:
    """The CDI ids of prepared claims resolve while a driver that ended at SIGTERM is away."""
    ids = ids_of(bench.prepare(bench.allocated_claim()))
    bench.driver.stop()
    try:
        expect_resolved(bench, ids)
    finally:
        bench.driver.start()
        bench.driver.await_registration()


@section.required(_OTHER_PROCESS)
def unprepare_by_another_process(bench: Bench) -> None:
    """What one process prepared, the next unprepares, though the claim's object is gone."""
    claim = bench.prepared_claim()
    bench.driver.restart(signal.SIGKILL)
    bench.delete_claim(claim)
    bench.unprepare(claim)
    expect_free(bench, claim)


@section.recommended(f"{_OTHER_PROCESS}; must undo whatever prepare did")
def cdi_devices_go_with_another_process(bench: Bench) -> None:
    """A CDI device of one process is gone when the next has unprepared its claim."""
    expect_gone(bench, lambda: bench.driver.restart(signal.SIGKILL))


@section.recommended(f"{_HELPER}, PrepareResourceClaims: the last line of defense")
def device_in_use_is_remembered(bench: Bench) -> None:
    """After a SIGKILL, too, a claim is refused a device that another claim has."""
    holder = bench.allocated_claim()
    need_exclusive(bench, holder)
    second = bench.allocate(bench.pending_claim(), holder["status"]["allocation"])
    bench.prepare(holder)
    bench.driver.restart(signal.SIGKILL)
    expect_refused(bench, second, "a device that another claim has")


@section.required(_E2E)
def unprepared_claim_stays_unprepared(bench: Bench) -> None:
    """After a restart the device of a claim that was unprepared before is free."""
    claim = bench.prepared_claim()
    bench.unprepare(claim)
    bench.driver.restart(signal.SIGKILL)
    expect_free(bench, claim)


@section.required(_IDEMPOTENT, waits=True)
def killed_while_preparing(bench: Bench) -> str:
    """A driver killed within prepare can prepare that claim, and unprepare it, afterwards."""

    def expect(claim: Obj) -> None:
        expect_allocated(bench, claim, *bench.prepare(claim))
        bench.unprepare(claim)
        expect_free(bench, claim)

    return kill_within_calls(
        bench, bench.allocated_claim, lambda plugin: plugin.prepare, expect, _KILL_SECONDS
    )


@section.required(_OTHER_PROCESS, waits=True)
def killed_while_unpreparing(bench: Bench) -> str:
    """A driver killed within unprepare can unprepare that claim afterwards."""

    def expect(claim: Obj) -> None:
        bench.unprepare(claim)
        expect_free(bench, claim)

    prepared = bench.prepared_claim
    return kill_within_calls(
        bench, prepared, lambda plugin: plugin.unprepare, expect, _KILL_SECONDS
    )


@section.required(_OTHER_PROCESS, waits=True)
def killed_while_preparing_and_given_up(bench: Bench) -> str:
    """A claim whose preparation was killed can be unprepared at once, and its device is free."""

    def expect(claim: Obj) -> None:
        bench.delete_claim(claim)
        bench.unprepare(claim)
        expect_free(bench, claim)

    return kill_within_calls(
        bench, bench.allocated_claim, lambda plugin: plugin.prepare, expect, _KILL_SECONDS
    )


@section.recommended(f"{_HELPER}, RollingUpdate: two instances for a while")
def second_instance(bench: Bench) -> None:
    """Started beside the first (POD_UID differs), a second instance can take over its claims."""
    claim = bench.allocated_claim()
    first = bench.prepare(claim)
    bench.driver.stop()
    bench.driver.start(POD_UID="first-instance")
    bench.driver.await_registration()
    old, old_socket = bench.driver.process, bench.driver.registrar and bench.driver.registrar.socket
    try:
        bench.driver.start(POD_UID="second-instance")
        _register_other_socket(bench, old_socket)
        expect_same(first, bench.prepare(claim))
        assert old is not None
        old.signal(signal.SIGTERM)
        if not old.wait(10.0):
            raise ViolationError("expected the first instance to end at SIGTERM")
        if not bench.driver.is_serving():
            raise ViolationError("expected the second instance to serve when the first has ended")
        expect_same(first, bench.prepare(claim))
        bench.unprepare(claim)
        if not bench.driver.list_slices():
            raise ViolationError("expected slices when the first instance has ended; found none")
    finally:
        if old is not None:
            old.signal(signal.SIGKILL)
            old.wait(STOP_SECONDS)
        bench.driver.restart(signal.SIGKILL)


def _register_other_socket(bench: Bench, old_socket: object) -> None:
    """Register the instance whose socket is new."""
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        if bench.driver.process is None or not bench.driver.process.is_alive():
            raise UnanswerableError(
                f"a second instance is not running: {bench.driver.describe_log()}"
            )
        for socket in kubelet.list_sockets(bench.driver.registry):
            if socket != old_socket:
                registrar = kubelet.Registrar(socket)
                try:
                    info = registrar.get_info()
                except (kubelet.RefusedError, SilenceError):
                    registrar.close()
                    continue
                bench.driver.disconnect()
                bench.driver.registrar, bench.driver.info = registrar, info
                return
        time.sleep(0.01)
    raise UnanswerableError("a second instance has no registration socket of its own")
