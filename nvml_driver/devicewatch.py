"""Keeps the driver's devices true: what NVML tells becomes taints, health and, if need be, slices.

The health monitor says what is the matter with which GPU. A GPU that appeared, or that is back
after it was left out, is a reason to ask NVML for all devices again; one that is lost stays
published, with its taint, so that the scheduler and the kubelet hear why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError
from nvml_driver.health import HealthReport, apply_health
from nvml_driver.healthmonitor import HealthMonitor
from nvml_driver.inventory import Inventory
from nvml_driver.library import NvmlLibrary

_LOG = logging.getLogger(__name__)


class DeviceWatch:
    """Watches the GPUs of a core until stopped."""

    def __init__(
        self,
        core: DriverCore,
        library: NvmlLibrary,
        *,
        wait_seconds: float = 5.0,
        discover: Callable[[], Inventory] | None = None,
    ) -> None:
        """Watch for ``core``.

        Args:
            core: gets the new inventories.
            library: the NVML to ask.
            wait_seconds: of the monitor.
            discover: how to find the devices anew; by default as the core does.
        """
        self._core = core
        self._discover = discover or (lambda: core.discover(library))
        self._plain = core.inventory
        self._report = HealthReport()
        self._wake = threading.Event()
        self._stopping = False
        self._monitor = HealthMonitor(
            library,
            self._on_report,
            ignored_xids=core.options.features.ignored_xids,
            wait_seconds=wait_seconds,
        )
        self._told_at = 0.0
        self._thread = threading.Thread(target=self._run, name="device-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()
        self._monitor.start()

    def stop(self, timeout: float = 6.0) -> None:
        """End both threads."""
        self._stopping = True
        self._wake.set()
        self._monitor.stop(timeout)
        if self._thread.is_alive():
            self._thread.join(timeout)

    def checked_at(self) -> float:
        """Unix time at which the GPUs were last looked at; 0: never."""
        return max(self._told_at, self._monitor.checked_at)

    def _on_report(self, report: HealthReport) -> None:
        """Called in the monitor's thread, which holds NVML, so nothing is asked here."""
        self._told_at = time.time()
        self._report = report
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            try:
                self._take(self._report)
            except DriverError as error:
                _LOG.error("the devices cannot be brought up to date: %s", error)

    def _take(self, report: HealthReport) -> None:
        known = {device.gpu_name for device in self._plain if device.kind != "vfio"}
        if report.present - known:
            _LOG.info("GPUs appeared: %s", ", ".join(sorted(report.present - known)))
            self._plain = self._discover()
        name = self._core.options.driver_name
        self._core.set_inventory(apply_health(self._plain, report, name))
