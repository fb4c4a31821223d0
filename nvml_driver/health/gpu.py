"""Remembers what is wrong with one GPU, and for how long.

- A lost GPU is lost until NVML answers for it again.
- A critical XID holds until NVML says that nothing has to be done to recover the GPU (drivers from
  550 on), or until the GPU was lost and came back.
- An application's XID holds some minutes from the last one.

Only a driver that cannot tell what has to be done keeps a critical XID until the GPU or this
process starts anew.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, field
from typing import Any

import pynvml

from nvml_driver.health.conditions import Condition, ConditionKind, current_timestamp

_LOG = logging.getLogger(__name__)
_NO_INSTANCE = 0xFFFFFFFF


@dataclass(slots=True)
class GpuConditions:
    """The conditions of one GPU; lives longer than NVML's handle of it.

    Attributes:
        name: ``gpu-<minor>``.
        handle: NVML's, of the session that is open; None: NVML does not show the GPU.
        lost: since when and why it is lost, None if it is not.
        unmonitored: likewise for its events, which cannot be watched.
        xids: XID and GPU instance to condition and time (monotonic) of the last one.
    """

    name: str
    handle: Any = None
    lost: Condition | None = None
    unmonitored: Condition | None = None
    xids: dict[tuple[int, int | None], tuple[Condition, float]] = field(default_factory=dict)

    def list_conditions(self) -> list[Condition]:
        """Return all conditions that hold now."""
        of_whole_gpu = (self.lost, self.unmonitored)
        xids = (condition for condition, _ in self.xids.values())
        return [condition for condition in (*of_whole_gpu, *xids) if condition is not None]

    def mark_lost(self, reason: str) -> None:
        """Note that the GPU is lost, unless it is already."""
        if self.lost is None:
            _LOG.error("%s is lost: %s", self.name, reason)
            self.lost = self._new_condition("gpu-lost", f"lost: {reason}")

    def mark_returned(self) -> None:
        """Note that NVML shows the GPU again after it was lost, so it was reset."""
        if self.lost is not None:
            _LOG.warning("%s is back", self.name)
            self.lost = None
            self.xids.clear()

    def mark_unmonitored(self, reason: str) -> None:
        """Note that the GPU's events cannot be watched, unless that is known."""
        if self.unmonitored is None:
            _LOG.warning("%s is not watched: %s", self.name, reason)
            self.unmonitored = self._new_condition("unmonitored", f"not watched: {reason}")

    def record_xid(self, nvml: Any, event: Any, *, fatal: bool) -> None:
        """Note that an XID was raised, on the GPU or in a GPU instance of it."""
        xid = int(event.eventData)
        gi_id = None if event.gpuInstanceId == _NO_INSTANCE else int(event.gpuInstanceId)
        slices = None
        if gi_id is not None:
            with contextlib.suppress(pynvml.NVMLError):
                gi = nvml.nvmlDeviceGetGpuInstanceById(self.handle, gi_id)
                placement = nvml.nvmlGpuInstanceGetInfo(gi).placement
                slices = (int(placement.start), int(placement.size))
        where = self.name if gi_id is None else f"{self.name}, GPU instance {gi_id}"
        _LOG.warning("%s: XID %d%s", where, xid, "" if fatal else ", an application's error")
        earlier, _ = self.xids.get((xid, gi_id), (None, 0.0))
        self.xids[xid, gi_id] = (
            earlier
            or Condition(
                gpu=self.name,
                kind="xid",
                since=current_timestamp(),
                xid=xid,
                fatal=fatal,
                gi_id=gi_id,
                slices=slices,
                message=f"XID {xid}",
            ),
            time.monotonic(),
        )

    def drop_ended_xids(self, nvml: Any, *, settle: float, quiet: float) -> None:
        """Drop the XIDs that are over.

        NVML is believed after ``settle`` seconds that nothing has to be done; an application's
        error is forgotten after ``quiet`` seconds.
        """
        moment = time.monotonic()
        for key, (condition, last) in list(self.xids.items()):
            if condition.fatal:
                over = moment - last >= settle and _needs_no_recovery(nvml, self.handle)
            else:
                over = moment - last >= quiet
            if over:
                _LOG.warning("%s: XID %d is over", self.name, condition.xid)
                del self.xids[key]

    def _new_condition(self, kind: ConditionKind, message: str) -> Condition:
        return Condition(gpu=self.name, kind=kind, since=current_timestamp(), message=message)


def _needs_no_recovery(nvml: Any, handle: Any) -> bool:
    """Return whether NVML says that the GPU needs no recovery; False if it cannot say."""
    field_id = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    try:
        [value] = nvml.nvmlDeviceGetFieldValues(handle, [field_id])
    except pynvml.NVMLError:
        return False
    return bool(
        value.nvmlReturn == pynvml.NVML_SUCCESS
        and value.value.uiVal == pynvml.NVML_GPU_RECOVERY_ACTION_NONE
    )
