"""A thread that watches NVML's events and says what is the matter, whenever that changes.

It sleeps in NVML's own wait for events. When the wait ends without one, every few seconds, it asks
each GPU whether it is still there, and those with a condition whether it is over (see
`health.gpu`). It also passes on that MIG devices may have come or gone.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

import pynvml

from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.health.conditions import APPLICATION_XIDS, HealthReport
from nvml_driver.health.gpu import GpuConditions
from nvml_driver.nvml.library import LOST, NvmlLibrary
from nvml_driver.worker import Worker

_LOG = logging.getLogger(__name__)
_EVENTS = (
    pynvml.nvmlEventTypeXidCriticalError
    | pynvml.nvmlEventTypeDoubleBitEccError
    | pynvml.nvmlEventTypeSingleBitEccError
)
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0  # seconds before NVML is opened again after a failure
_ONE_WAIT_MS = 500
"""NVML's wait for events cannot be broken off, and a driver that stops has to wait for its end."""


class HealthMonitor(Worker):
    """A thread that watches all GPUs until it is stopped."""

    def __init__(
        self,
        library: NvmlLibrary,
        on_change: Callable[[HealthReport], None],
        *,
        wait_seconds: float = 5.0,
        quiet_seconds: float = 300.0,
        on_mig_change: Callable[[], None] = lambda: None,
        expected: Iterable[str] = (),
    ) -> None:
        """Watch, from ``start`` on.

        Args:
            on_change: gets each new state, the first as soon as it is known; called from the
                monitor's thread.
            wait_seconds: how long one wait for events takes, and so how often GPUs are asked.
            quiet_seconds: after which an application's error is forgotten.
            on_mig_change: called when MIG devices came or went, or may have while nobody listened.
            expected: names of known GPUs; one that NVML does not show when the watch begins is
                lost.
        """
        super().__init__("health-monitor")
        self._library = library
        self._on_change = on_change
        self._wait_ms = max(1, int(wait_seconds * 1000))
        self._quiet = quiet_seconds
        self._on_mig_change = on_mig_change
        self._gpus = {name: GpuConditions(name) for name in expected}
        self._reported: HealthReport | None = None
        self.checked_at = 0.0
        """Unix time at which all GPUs were asked last; 0: never."""
        self._is_lost_gpu_unknown = False  # NVML says that a GPU is lost, but not which

    def _run(self) -> None:
        delay = _FIRST_DELAY
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                with self._library.open_session() as nvml:
                    self._watch(nvml)
            except NvmlUnavailableError as error:
                _LOG.warning("GPUs are not watched: %s", error)
                self._mark_all_unmonitored(str(error))
            except pynvml.NVMLError as error:
                _LOG.warning("NVML is opened again: %s", error)
            except Exception:  # noqa: BLE001 - whatever it was, GPUs have to be watched
                _LOG.exception("the health monitor starts again")
            if time.monotonic() - began > _LONGEST_DELAY:
                delay = _FIRST_DELAY
            self._stopping.wait(delay)
            delay = min(delay * 2, _LONGEST_DELAY)

    def _watch(self, nvml: Any) -> None:
        """Watch in one session; return when NVML has to be opened again."""
        events = None
        try:
            events = nvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            _LOG.warning("NVML's events cannot be watched: %s", error)
        try:
            self._find_gpus(nvml, events)
            self._on_mig_change()
            self._report_change()
            lost = {gpu.name for gpu in self._gpus.values() if gpu.lost}
            while not self._stopping.is_set():
                if events is None:
                    self._stopping.wait(self._wait_ms / 1000)
                else:
                    self._handle_next_event(nvml, events)
                self._check_gpus(nvml)
                self._report_change()
                if lost != {gpu.name for gpu in self._gpus.values() if gpu.lost}:
                    return  # handles and registrations of a GPU that was away are void
        finally:
            if events is not None:
                with contextlib.suppress(pynvml.NVMLError):
                    nvml.nvmlEventSetFree(events)

    def _find_gpus(self, nvml: Any, events: Any) -> None:
        """Register all GPUs for events; a GPU that was there earlier and is missing is lost."""
        shown_gpus: set[str] = set()
        try:
            count = nvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            self._mark_all_unmonitored(str(error))
            raise
        for index in range(count):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                name = f"gpu-{int(nvml.nvmlDeviceGetMinorNumber(handle))}"
            except pynvml.NVMLError as error:
                _LOG.warning("GPU %d is not watched: %s", index, error)
                continue
            gpu = self._gpus.setdefault(name, GpuConditions(name))
            gpu.handle = handle
            shown_gpus.add(name)
            if not self._is_lost_gpu_unknown:
                gpu.mark_returned()
            self._register(nvml, gpu, events)
        for name, gpu in self._gpus.items():
            if name not in shown_gpus:
                gpu.handle = None
                gpu.mark_lost("NVML does not show it any more")

    def _register(self, nvml: Any, gpu: GpuConditions, events: Any) -> None:
        reason = "NVML's events cannot be watched"
        try:
            if events is not None:
                types = nvml.nvmlDeviceGetSupportedEventTypes(gpu.handle) & _EVENTS
                nvml.nvmlDeviceRegisterEvents(gpu.handle, types, events)
                self._register_mig(nvml, gpu, events)
                if types & pynvml.nvmlEventTypeXidCriticalError:
                    gpu.unmonitored = None
                    return
                reason = "it does not report XIDs"
        except pynvml.NVMLError as error:
            if error.value in LOST:
                gpu.mark_lost(str(error))
                return
            reason = str(error)
        gpu.mark_unmonitored(reason)

    def _register_mig(self, nvml: Any, gpu: GpuConditions, events: Any) -> None:
        """Register for changes of MIG devices.

        Apart from the other events, which have to be heard of also where this one cannot be.
        """
        try:
            types = nvml.nvmlDeviceGetSupportedEventTypes(gpu.handle)
            if types & pynvml.nvmlEventMigConfigChange:
                nvml.nvmlDeviceRegisterEvents(gpu.handle, pynvml.nvmlEventMigConfigChange, events)
        except pynvml.NVMLError as error:
            _LOG.debug("%s: changes of MIG are not reported: %s", gpu.name, error)

    def _handle_next_event(self, nvml: Any, events: Any) -> None:
        try:
            event = self._next_event(nvml, events)
        except pynvml.NVMLError as error:
            self._check_gpus(nvml)
            if error.value in LOST and not any(gpu.lost for gpu in self._gpus.values()):
                # One is, and none admits it: none may be used until waiting works again.
                self._is_lost_gpu_unknown = True
                for gpu_conditions in self._gpus.values():
                    gpu_conditions.mark_lost(str(error))
            self._report_change()
            raise
        self._is_lost_gpu_unknown = False
        if event is None:
            return
        if event.eventType == pynvml.nvmlEventMigConfigChange:
            self._on_mig_change()
            return
        if event.eventType != pynvml.nvmlEventTypeXidCriticalError:
            _LOG.info("an event of type %#x needs no action", event.eventType)
            return
        gpu = self._gpu_of(nvml, event.device)
        for concerned in self._gpus.values():
            if gpu is None or concerned is gpu:
                concerned.record_xid(
                    nvml, event, fatal=int(event.eventData) not in APPLICATION_XIDS
                )

    def _next_event(self, nvml: Any, events: Any) -> Any:
        """Return the event that ends the wait; None: none came, or the monitor stops.

        Raises NVMLError.
        """
        remaining_ms = self._wait_ms
        while remaining_ms > 0 and not self._stopping.is_set():
            try:
                return nvml.nvmlEventSetWait_v2(events, min(remaining_ms, _ONE_WAIT_MS))
            except pynvml.NVMLError as error:
                if error.value != pynvml.NVML_ERROR_TIMEOUT:
                    raise
            remaining_ms -= _ONE_WAIT_MS
        return None

    def _gpu_of(self, nvml: Any, handle: Any) -> GpuConditions | None:
        try:
            return self._gpus.get(f"gpu-{int(nvml.nvmlDeviceGetMinorNumber(handle))}")
        except pynvml.NVMLError as error:
            _LOG.warning("an event's GPU cannot be found, so it may be any: %s", error)
            return None

    def _check_gpus(self, nvml: Any) -> None:
        """Ask which GPUs are lost, and which conditions are over."""
        self.checked_at = time.time()
        for gpu in self._gpus.values():
            if gpu.handle is None:
                continue
            try:
                nvml.nvmlDeviceGetUUID(gpu.handle)
            except pynvml.NVMLError as error:
                if error.value in LOST:
                    gpu.mark_lost(str(error))
                    continue
            if not self._is_lost_gpu_unknown:
                gpu.lost = None
            gpu.drop_ended_xids(nvml, settle=self._wait_ms / 1000, quiet=self._quiet)

    def _mark_all_unmonitored(self, reason: str) -> None:
        for gpu in self._gpus.values():
            gpu.mark_unmonitored(reason)
        self._report_change()

    def _report_change(self) -> None:
        """Pass the state of all GPUs on if it is not the one that was reported last."""
        conditions = [
            condition for gpu in self._gpus.values() for condition in gpu.list_conditions()
        ]
        report = HealthReport(
            conditions=tuple(conditions),
            present=frozenset(gpu.name for gpu in self._gpus.values() if gpu.lost is None),
        )
        if report == self._reported:
            return
        self._reported = report
        try:
            self._on_change(report)
        except Exception:  # noqa: BLE001 - another part's mistake must not end the watch
            _LOG.exception("the new state of the GPUs was not handled")
