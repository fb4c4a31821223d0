"""Health of devices as a stream, for drivers that offer one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.kubelet import HEALTH, RefusedError, watch_health
from conformance.drivercheck.violations import NotOfferedError, UnanswerableError, ViolationError
from kube.base.text import one_line

section = Section("health")

_API = "k8s.io/kubelet/pkg/apis/dra-health"
_INFO = "kubernetes/pkg/kubelet/cm/dra/healthinfo.go"
_FIRST_SECONDS = 10.0
_LEASE_SECONDS = 30.0  # healthinfo.go, where a device has none of its own
_CLOCK_SECONDS = 60.0
_MAX_DEVICES = 16384  # healthinfo.go
_MAX_MESSAGE = 1024  # api.proto, DeviceHealth.message
_HEALTH = (0, 1, 2)


def _versions(bench: Bench) -> list[str]:
    found = [one for one in bench.info.supported_versions if one in HEALTH]
    if not found:
        raise NotOfferedError("the driver does not offer DRAResourceHealth")
    return found


def _responses(bench: Bench, version: str, count: int, seconds: float) -> list[Any]:
    """A stream's first responses. Raises ViolationError: it ended, or they did not come in time."""
    try:
        return watch_health(bench.plugin.channel, version, count, seconds)
    except RefusedError as error:
        raise ViolationError(f"expected a response of {version}; found {error}") from None


def _first(bench: Bench, version: str) -> list[Any]:
    """The devices of a stream's first response."""
    [response] = _responses(bench, version, 1, _FIRST_SECONDS)
    return list(response.devices)


@section.required(f"{_API}, NodeWatchResources")
def each_version_streams(bench: Bench) -> None:
    """Every health service in supported_versions sends a first response at once."""
    for version in _versions(bench):
        _first(bench, version)


@section.required(f"{_API}, DeviceIdentifier")
def devices_are_published_ones(bench: Bench) -> None:
    """Each device of a response is published, by pool and name, and is there once."""
    known = set(bench.published_devices())
    for version in _versions(bench):
        seen: set[tuple[str, str]] = set()
        for name in _named(_first(bench, version)):
            found = one_line(f"{'/'.join(name)} in {version}", 200)
            if name not in known:
                raise ViolationError(f"expected published devices; found {found}")
            if name in seen:
                raise ViolationError(f"expected each device once; found twice {found}")
            seen.add(name)


def _named(devices: list[Any]) -> Iterator[tuple[str, str]]:
    return ((one.device.pool_name, one.device.device_name) for one in devices)


@section.required(f"{_API}, DeviceHealth; {_INFO}")
def values_are_in_range(bench: Bench) -> None:
    """Health, time and timeout of each device are what the API knows."""
    devices = _first(bench, _versions(bench)[0])
    if len(devices) > _MAX_DEVICES:
        raise ViolationError(f"expected at most {_MAX_DEVICES} devices; found {len(devices)}")
    for one in devices:
        name = one_line(f"{one.device.pool_name}/{one.device.device_name}", 100)
        if one.health not in _HEALTH:
            raise ViolationError(f"expected a known health of {name}; found {one.health}")
        if one.health_check_timeout_seconds < 0 or one.last_updated_time < 0:
            raise ViolationError(f"expected times of {name} from 0 on; found negative ones")
        if (ahead := one.last_updated_time - time.time()) > _CLOCK_SECONDS:
            raise ViolationError(f"expected seconds since 1970 of {name}; found {ahead:.0f} more")


@section.recommended(f"{_INFO}: a device that is not said again in its time is Unknown")
def said_again_in_time(bench: Bench) -> None:
    """A stream says its devices again before their time is over, by default thirty seconds."""
    version = _versions(bench)[0]
    least = min((one.health_check_timeout_seconds for one in _first(bench, version)), default=0)
    seconds = float(least or _LEASE_SECONDS)
    if seconds > _LEASE_SECONDS:
        raise UnanswerableError(f"its devices' time is {seconds:.0f} s, which is long to wait for")
    bench.begin_check(_FIRST_SECONDS + seconds)
    _responses(bench, version, 2, seconds)


@section.recommended(f"{_API}, DeviceHealth.message: at most 1024 characters")
def messages_are_short(bench: Bench) -> None:
    """No message is longer than what the kubelet keeps of it."""
    for one in _first(bench, _versions(bench)[0]):
        if len(one.message.encode()) > _MAX_MESSAGE:
            raise ViolationError(f"expected {_MAX_MESSAGE} bytes; found {len(one.message)}")


@section.recommended(f"{_API}: the list is complete")
def first_response_has_all_devices(bench: Bench) -> None:
    """The first response names every device that is published."""
    known = set(bench.published_devices())
    missing = known - set(_named(_first(bench, _versions(bench)[0])))
    if missing:
        raise ViolationError(f"expected all devices; {len(missing)} of {len(known)} are missing")


@section.required("kubernetes/pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go: connects again")
def stream_can_be_opened_again(bench: Bench) -> None:
    """A stream that was cancelled can be opened again, ten times, and calls go on."""
    version = _versions(bench)[0]
    for _ in range(10):
        _first(bench, version)
    bench.prepare(bench.claim())


@section.required(f"{_API}: a stream does not end by itself")
def calls_go_on_beside_a_stream(bench: Bench) -> None:
    """While a stream is open claims are prepared and unprepared."""
    version = _versions(bench)[0]
    from kube.kubelet.rpc import stub

    messages = HEALTH[version]
    request = messages.NodeWatchResourcesRequest()
    stream = stub(messages, bench.plugin.channel).NodeWatchResources(request, timeout=30.0)
    try:
        claim = bench.claim()
        bench.prepare(claim)
        bench.unprepare(claim)
    finally:
        stream.cancel()
