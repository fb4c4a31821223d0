"""Health of devices as a stream, for drivers that offer one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
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


def _offered_versions(bench: Bench) -> list[str]:
    """Return the health services that the driver offers, first the one that a kubelet takes.

    That is the newest, whatever the driver's order is (pickHealthService of
    pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go); of the DRA services it is the driver's first.
    Raises NotOfferedError: it offers none.
    """
    versions = [version for version in HEALTH if version in bench.driver.info.supported_versions]
    if not versions:
        raise NotOfferedError("the driver does not offer DRAResourceHealth")
    return versions


def _read_responses(
    bench: Bench, version: str, is_enough: Callable[[Sequence[Any]], bool], seconds: float
) -> list[Any]:
    """Return a stream's first responses. Raises ViolationError: it ended, or they came late."""
    try:
        return watch_health(bench.driver.plugin.channel, version, is_enough, seconds)
    except RefusedError as error:
        raise ViolationError(f"expected a response of {version}; found {error}") from None


def _first_response(bench: Bench, version: str) -> list[Any]:
    """Return the devices of a stream's first response."""
    [response] = _read_responses(bench, version, bool, _FIRST_SECONDS)
    return list(response.devices)


@section.required(f"{_API}, NodeWatchResources")
def each_version_streams(bench: Bench) -> None:
    """Every health service in supported_versions sends a first response at once."""
    for version in _offered_versions(bench):
        _first_response(bench, version)


@section.required(f"{_API}, DeviceIdentifier")
def devices_are_published_ones(bench: Bench) -> None:
    """Each device of a response is published, by pool and name, and is there once."""
    published = set(bench.driver.list_published_devices())
    for version in _offered_versions(bench):
        streamed: set[tuple[str, str]] = set()
        for name in _device_names(_first_response(bench, version)):
            described = one_line(f"{'/'.join(name)} in {version}", 200)
            if name not in published:
                raise ViolationError(f"expected published devices; found {described}")
            if name in streamed:
                raise ViolationError(f"expected each device once; found twice {described}")
            streamed.add(name)


def _device_names(devices: list[Any]) -> Iterator[tuple[str, str]]:
    return ((entry.device.pool_name, entry.device.device_name) for entry in devices)


@section.required(f"{_API}, DeviceHealth; {_INFO}")
def values_are_in_range(bench: Bench) -> None:
    """Health, time and timeout of each device are what the API knows."""
    devices = _first_response(bench, _offered_versions(bench)[0])
    if len(devices) > _MAX_DEVICES:
        raise ViolationError(f"expected at most {_MAX_DEVICES} devices; found {len(devices)}")
    for entry in devices:
        name = one_line(f"{entry.device.pool_name}/{entry.device.device_name}", 100)
        if entry.health not in _HEALTH:
            raise ViolationError(f"expected a known health of {name}; found {entry.health}")
        if entry.health_check_timeout_seconds < 0 or entry.last_updated_time < 0:
            raise ViolationError(f"expected times of {name} from 0 on; found negative ones")
        if (ahead := entry.last_updated_time - time.time()) > _CLOCK_SECONDS:
            raise ViolationError(f"expected seconds since 1970 of {name}; found {ahead:.0f} more")


@section.recommended(f"{_INFO}: a device that is not said again in its time is Unknown", waits=True)
def said_again_in_time(bench: Bench) -> None:
    """A stream says all its devices again before their time is over, by default thirty seconds."""
    version = _offered_versions(bench)[0]
    first_response = _first_response(bench, version)
    shortest = min((entry.health_check_timeout_seconds for entry in first_response), default=0)
    seconds = float(shortest or _LEASE_SECONDS)
    if seconds > _LEASE_SECONDS:
        raise UnanswerableError(f"its devices' time is {seconds:.0f} s, which is long to wait for")
    bench.driver.begin_check(_FIRST_SECONDS + seconds)
    said_again: set[tuple[str, str]] = set()

    def has_all(responses: Sequence[Any]) -> bool:
        said_again.update(
            name for response in responses[1:] for name in _device_names(response.devices)
        )
        return len(responses) > 1 and said_again.issuperset(_device_names(responses[0].devices))

    try:
        _read_responses(bench, version, has_all, seconds)
    except ViolationError:
        silent = sorted(set(_device_names(first_response)) - said_again)
        if not silent:
            raise
        described = one_line(", ".join(map("/".join, silent)), 200)
        raise ViolationError(
            f"expected all devices again within {seconds:.0f} s; found nothing of {described}"
        ) from None


@section.recommended(f"{_API}, DeviceHealth.message: at most 1024 characters")
def messages_are_short(bench: Bench) -> None:
    """No message is longer than what the kubelet keeps of it."""
    for entry in _first_response(bench, _offered_versions(bench)[0]):
        if len(entry.message.encode()) > _MAX_MESSAGE:
            raise ViolationError(f"expected {_MAX_MESSAGE} bytes; found {len(entry.message)}")


@section.recommended(f"{_API}: the list is complete")
def first_response_has_all_devices(bench: Bench) -> None:
    """The first response names every device that is published."""
    published = set(bench.driver.list_published_devices())
    missing = published - set(_device_names(_first_response(bench, _offered_versions(bench)[0])))
    if missing:
        raise ViolationError(
            f"expected all devices; {len(missing)} of {len(published)} are missing"
        )


@section.required("kubernetes/pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go: connects again")
def stream_can_be_opened_again(bench: Bench) -> None:
    """A stream that was cancelled can be opened again, ten times, and calls go on."""
    version = _offered_versions(bench)[0]
    for _ in range(10):
        _first_response(bench, version)
    bench.prepare(bench.allocated_claim())


@section.required(f"{_API}: a stream does not end by itself")
def calls_go_on_beside_a_stream(bench: Bench) -> None:
    """While a stream is open claims are prepared and unprepared."""
    version = _offered_versions(bench)[0]
    from kube.kubelet.rpc import make_stub

    messages = HEALTH[version]
    request = messages.NodeWatchResourcesRequest()
    stream = make_stub(messages, bench.driver.plugin.channel).NodeWatchResources(
        request, timeout=30.0
    )
    try:
        claim = bench.allocated_claim()
        bench.prepare(claim)
        bench.unprepare(claim)
    finally:
        stream.cancel()
