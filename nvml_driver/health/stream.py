"""Streams the health of devices to the kubelet (DRAResourceHealth v1 and v1alpha1).

The kubelet shows it in the pod's status, and takes what it was not sent again within a lease for
unknown (k8s.io/kubelet ``pkg/apis/dra-health``, kubernetes ``pkg/kubelet/cm/dra/healthinfo.go``:
30 s). So all devices are sent when something changed and in any case every 10 s, but only as long
as somebody has looked at the devices meanwhile: what is not verified must decay.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import grpc

from nvml_driver.model.inventory import Inventory

LEASE_SECONDS = 30
RESEND_SECONDS = 10.0
MAX_STREAMS = 4  # A kubelet has one; a few may linger after its restart. Each occupies a thread.
_MAX_MESSAGE = 1024  # bytes: the kubelet cuts there, through the middle of a character
_STATUS = {"Healthy": "HEALTHY", "Unhealthy": "UNHEALTHY", "Unknown": "UNKNOWN"}


class HealthFeed:
    """The health streams of one driver."""

    def __init__(
        self,
        inventory: Callable[[], Inventory],
        pool_name: str,
        *,
        checked_at: Callable[[], float] = time.time,
        resend_seconds: float = RESEND_SECONDS,
    ) -> None:
        """Stream what ``inventory`` says, in any case every ``resend_seconds``."""
        self._inventory = inventory
        self._pool_name = pool_name
        self._checked_at = checked_at
        self._resend_seconds = resend_seconds
        self._changed = threading.Condition()
        self._changes = 0
        self._streams = 0
        self._stopped = False

    def notify(self) -> None:
        """Wake the streams: the health of a device, or which devices there are, changed."""
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """End all streams."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def stream_health(self, messages: ModuleType, context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield responses in the version of ``messages``, until either side ends the stream."""
        with self._changed:
            if self._streams >= MAX_STREAMS:
                context.abort(
                    grpc.StatusCode.RESOURCE_EXHAUSTED, f"there are {MAX_STREAMS} streams already"
                )
            self._streams += 1
        ended = threading.Event()

        def end() -> None:
            ended.set()
            with self._changed:
                self._changed.notify_all()

        try:
            if not context.add_callback(end):
                return
            while True:
                # Before the devices are read: a change meanwhile sends them once more.
                with self._changed:
                    sent_changes = self._changes
                if time.time() - self._checked_at() <= LEASE_SECONDS:
                    yield self.build_response(messages)
                with self._changed:
                    self._changed.wait_for(
                        lambda sent_changes=sent_changes: (  # type: ignore[misc]
                            ended.is_set() or self._stopped or self._changes != sent_changes
                        ),
                        self._resend_seconds,
                    )
                    if ended.is_set() or self._stopped:
                        return
        finally:
            with self._changed:
                self._streams -= 1
                self._changed.notify_all()

    def build_response(self, messages: ModuleType) -> Any:
        """Return the health of all devices as one response of the version of ``messages``."""
        answer = messages.NodeWatchResourcesResponse()
        checked = int(self._checked_at())
        for device in self._inventory():
            answer.devices.add(
                device=messages.DeviceIdentifier(
                    pool_name=self._pool_name, device_name=device.name
                ),
                health=messages.HealthStatus.Value(_STATUS[device.health]),
                last_updated_time=checked,
                health_check_timeout_seconds=LEASE_SECONDS,
                message=_shorten_message(device.health_message),
            )
        return answer


def _shorten_message(message: str) -> str:
    """Return a message that is no longer than the kubelet keeps, in whole characters."""
    content = message.encode()
    if len(content) <= _MAX_MESSAGE:
        return message
    return content[: _MAX_MESSAGE - 3].decode(errors="ignore") + "..."
