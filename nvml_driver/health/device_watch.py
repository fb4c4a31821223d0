"""Keeps the driver's devices up to date: NVML's reports become taints, health and slices.

The health monitor says what is the matter with which GPU, and that MIG devices came or went. A GPU
that appeared, or that is back after it was left out, is a reason to ask NVML for all devices
again; so are MIG devices that somebody else made or destroyed. A GPU that is lost stays published,
with its taint, so that the scheduler and the kubelet hear why; so does a MIG device that a claim
has and that was destroyed, until the claim is unprepared.

Not every driver reports MIG devices, so they are also looked at from time to time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError
from nvml_driver.health.conditions import (
    HealthReport,
    VanishedDevice,
    apply_health,
    current_timestamp,
    keep_lost,
    keep_vanished,
)
from nvml_driver.health.monitor import HealthMonitor
from nvml_driver.model.inventory import Inventory
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.worker import Worker

_LOG = logging.getLogger(__name__)
LOOK_SECONDS = 60.0  # Between looks at MIG devices when NVML reports nothing.
SETTLE_SECONDS = 0.5
"""A MIG device is made in two steps, each of which is an event: wait until both are over."""

_VANISHED_SECONDS = 5.0
"""Between looks while a claim has a MIG device that is gone, to see when it is unprepared."""


class DeviceWatch(Worker):
    """A thread that watches the GPUs of a core until stopped."""

    def __init__(
        self,
        core: DriverCore,
        library: NvmlLibrary,
        *,
        wait_seconds: float = 5.0,
        look_seconds: float = LOOK_SECONDS,
        settle_seconds: float = SETTLE_SECONDS,
        discover: Callable[[], Inventory] | None = None,
    ) -> None:
        """Watch for ``core``.

        Args:
            look_seconds: between looks at MIG devices when NVML reports nothing.
            settle_seconds: between NVML reporting MIG devices and a look at them.
            discover: how to find the devices anew; by default as the core does.
        """
        super().__init__("device-watch")
        self._core = core
        self._discover = discover or (lambda: core.discover_devices(library))
        self._discovered = core.inventory
        self._report = HealthReport()
        self._searched_gpus: frozenset[str] = frozenset()
        self._vanished: dict[str, VanishedDevice] = {}
        self._mig_changed = threading.Event()
        self._look_seconds = look_seconds
        self._settle_seconds = settle_seconds
        self._wake = threading.Event()
        self._monitor = HealthMonitor(
            library,
            self._on_report,
            wait_seconds=wait_seconds,
            on_mig_change=self._on_mig_change,
            expected={d.gpu_name for d in core.inventory if d.kind != "vfio"},
        )
        self._reported_at = 0.0

    def start(self) -> None:
        """Start this thread and the health monitor's."""
        super().start()
        self._monitor.start()

    def stop(self, timeout: float = 6.0) -> None:
        """End both threads, each within ``timeout`` seconds."""
        self._stopping.set()
        self._wake.set()
        self._monitor.stop(timeout)
        super().stop(timeout)

    def checked_at(self) -> float:
        """Return the Unix time at which the GPUs were last looked at; 0: never."""
        return max(self._reported_at, self._monitor.checked_at)

    def _on_report(self, report: HealthReport) -> None:
        """Take a report in the monitor's thread. It holds NVML, so nothing is asked here."""
        self._reported_at = time.time()
        self._report = report
        self._wake.set()

    def _on_mig_change(self) -> None:
        self._mig_changed.set()
        self._wake.set()

    def _run(self) -> None:
        while True:
            pause = min(_VANISHED_SECONDS, self._look_seconds)
            look = not self._wake.wait(pause if self._vanished else self._look_seconds)
            self._wake.clear()
            if self._stopping.is_set():
                return
            if self._mig_changed.is_set():
                self._stopping.wait(self._settle_seconds)
                self._mig_changed.clear()
                look = True
            try:
                self._update_inventory(self._report, look=look)
            except DriverError as error:
                _LOG.error("the devices cannot be brought up to date: %s", error)

    def _update_inventory(self, report: HealthReport, *, look: bool) -> None:
        """Update the core's devices with the health of a report; discover them again if need be.

        ``look``: also look whether MIG devices changed.
        """
        known_gpus = {device.gpu_name for device in self._discovered if device.kind != "vfio"}
        appeared = report.present - known_gpus - self._searched_gpus
        # GPUs that discovery did not find: asking again would not show more of them.
        self._searched_gpus = report.present - known_gpus
        rediscover = bool(appeared)
        if rediscover:
            _LOG.info("GPUs appeared: %s", ", ".join(sorted(appeared)))
        if look and self._is_mig_outdated():
            _LOG.warning("MIG devices were changed by another process")
            rediscover = True
        if rediscover:
            self._discovered = keep_lost(self._discover(), self._discovered, report)
        name = self._core.options.driver_name
        healthy = apply_health(self._discovered, report, name)
        self._core.set_inventory(
            keep_vanished(healthy, self._core.inventory, self._vanished, driver_name=name)
        )

    def _is_mig_outdated(self) -> bool:
        """Return whether the devices must be discovered again; note those that vanished."""
        try:
            changes = self._core.find_mig_changes()
        except DriverError as error:
            _LOG.warning("MIG devices cannot be looked at: %s", error)
            return False
        if changes is None:
            self._on_mig_change()  # a claim is being prepared: look again afterwards
            return False
        vanished = {}
        for name, claim in changes.vanished.items():
            if name not in self._vanished:
                _LOG.error("MIG device %s was destroyed while %s has it", name, claim)
            previous = self._vanished.get(name)
            vanished[name] = (
                previous
                if previous and previous.claim == claim
                else VanishedDevice(claim, current_timestamp())
            )
        self._vanished = vanished
        return changes.outdated
