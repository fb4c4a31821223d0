"""Makes one claim ready, and takes it away again, step by step.

Each step is remembered in the checkpoint before it is made, so that what a failure or a crash
leaves can be found and undone. The caller holds the node's lock.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from nvml_driver.errors import DriverError, PrepareError
from nvml_driver.mig import partitions as mig
from nvml_driver.model.prepared import ClaimRecord, ClaimState
from nvml_driver.prepare.checkpoint import Checkpoint
from nvml_driver.prepare.claim_files import ClaimFiles
from nvml_driver.prepare.timeslicing import TimeSlices, sets_time_slices

_LOG = logging.getLogger(__name__)


class Preparation:
    """Makes claims of one node ready, and takes them away."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        files: ClaimFiles,
        partitions: mig.Partitions,
        time_slices: TimeSlices | None,
    ) -> None:
        """Work for one node. Without ``time_slices`` its GPUs only show what was asked for."""
        self._checkpoint = checkpoint
        self._files = files
        self._partitions = partitions
        self._time_slices = time_slices

    def prepare_claim(self, record: ClaimRecord) -> ClaimRecord:
        """Make a claim ready. Raises PrepareError: it cannot be; nothing of the attempt is left."""
        self._refuse_overlap(record)
        try:
            mig.refuse_missing(self._partitions, record.devices)
            mig.refuse_foreign(self._partitions, record.devices)
        except DriverError as error:
            raise PrepareError(f"{record} cannot be prepared: {error}") from None
        try:
            # First, so that recovery knows of what a crash in a later step leaves.
            self._checkpoint.put(record)
            if self._time_slices is not None:
                self._time_slices.set_for_claim(record, self._checkpoint.values())
            completed = replace(
                record,
                state=ClaimState.PREPARE_COMPLETED,
                devices=tuple(
                    mig.make_partition(self._partitions, device) for device in record.devices
                ),
            )
            completed = self._with_metadata(completed)
            # In this order, because a claim that is PrepareCompleted has its spec on disk.
            self._files.write(completed)
            self._checkpoint.put(completed)
        except (DriverError, OSError) as error:
            self._roll_back(record, error)
            raise PrepareError(f"{record} cannot be prepared: {error}") from None
        return completed

    def repair_claim(self, record: ClaimRecord) -> bool:
        """Bring back what a prepared claim may lack; False: make it anew. Raises PrepareError."""
        try:
            missing = mig.find_missing(self._partitions, record.devices)
        except DriverError as error:
            raise PrepareError(f"{record}: {error}") from None
        if any(device.makes_instance for device in missing):
            _LOG.warning("%s: its MIG device was destroyed by another process", record)
            return False
        for device in missing:
            raise PrepareError(f"{record}: MIG device {device.device_name} is gone from this node")
        try:
            if self._time_slices is not None:
                self._time_slices.set_for_claim(record, self._checkpoint.values())
        except DriverError as error:
            raise PrepareError(f"{record}: {error}") from None
        self._files.write(record)
        return True

    def undo_claim(self, record: ClaimRecord, *, failed: bool = False) -> None:
        """Take everything of a claim away, in an order in which a crash can be repaired.

        After a preparation that ``failed``, what could not be set can often not be reset for the
        same reason, which must not keep the device from others. DriverError or OSError: call it
        again.
        """
        # The spec goes first: a crash in between leaves a claim whose spec comes back.
        self._files.remove(record.uid)
        resets = self._time_slices is not None and sets_time_slices(record)
        if resets or any(device.makes_instance for device in record.devices):
            # What is undone does not come back, so the claim is not prepared from here on.
            if record.state is ClaimState.PREPARE_COMPLETED:
                record = replace(record, state=ClaimState.PREPARE_STARTED)
                self._checkpoint.put(record)
            if self._time_slices is not None:
                self._reset_time_slices(self._time_slices, record, failed=failed)
            for device in record.devices:
                mig.unmake_partition(self._partitions, device)
        self._checkpoint.drop(record.uid)

    def _roll_back(self, record: ClaimRecord, error: Exception) -> None:
        """Undo a failed preparation; what cannot be undone now is at the next call or start."""
        if record.uid not in self._checkpoint:
            return  # the failure was to write the checkpoint, so nothing was begun
        try:
            self.undo_claim(record, failed=True)
        except (DriverError, OSError) as another:
            _LOG.error("%s: after %s, rolling back failed: %s", record, error, another)

    def _reset_time_slices(
        self, time_slices: TimeSlices, record: ClaimRecord, *, failed: bool
    ) -> None:
        try:
            time_slices.reset_for_claim(record, self._checkpoint.values())
        except DriverError as error:
            if not failed:
                raise
            _LOG.error("%s: time slices may be set still: %s", record, error)

    def _with_metadata(self, record: ClaimRecord) -> ClaimRecord:
        """Return the claim with each request's metadata beside its first device, as upstream."""
        remaining_ids = self._files.metadata_device_ids(record)
        devices = []
        for device in record.devices:
            extra = [
                remaining_ids.pop(name) for name in device.request_names if name in remaining_ids
            ]
            devices.append(replace(device, cdi_device_ids=(*device.cdi_device_ids, *extra)))
        return replace(record, devices=tuple(devices))

    def _refuse_overlap(self, record: ClaimRecord) -> None:
        """Refuse a device that another claim has; the driver is the last one who can notice.

        It happens, for example after a pod was deleted by force (kubernetes/kubernetes#141471).
        """
        for other in self._checkpoint.values():
            for device in record.devices:
                for held_device in other.devices:
                    if device.conflicts_with(held_device):
                        with_name = (
                            ""
                            if device.device_name == held_device.device_name
                            else f" (as {held_device.device_name})"
                        )
                        raise PrepareError(
                            f"{record}: device {device.device_name}{with_name} is still prepared "
                            f"for {other}"
                        )
