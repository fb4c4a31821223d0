"""Takes up what an earlier driver left when one starts: after a crash, a reboot, lost files.

After a reboot no container of before runs, so nothing is in use. Claims stay prepared as long as
they can be: the kubelet will ask to prepare the claims of its pods again, or to unprepare those of
pods that went. A claim whose device is not the same any more, or whose MIG device the reboot took,
is dropped; preparing it again makes it anew. (kubernetes/kubernetes#141433: CDI specs lie in a
directory that a reboot empties, while checkpoints survive it.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from nvml_driver.errors import DriverError
from nvml_driver.model.inventory import Inventory
from nvml_driver.model.prepared import ClaimRecord, ClaimState
from nvml_driver.prepare.checkpoint import Checkpoint
from nvml_driver.prepare.claim_files import ClaimFiles

_LOG = logging.getLogger(__name__)


def read_boot_id(path: Path) -> str:
    """Return an id of this boot; empty if the kernel reports none, so no reboot is noticed."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        _LOG.warning("%s cannot be read, so a reboot will not be noticed: %s", path, error)
        return ""


def recover(
    checkpoint: Checkpoint,
    files: ClaimFiles,
    inventory: Inventory,
    *,
    boot_id: str,
    undo: Callable[[ClaimRecord], None],
) -> None:
    """Bring disk, devices and checkpoint together; the caller holds the lock. Raises DriverError.

    ``boot_id`` is empty where not known; ``undo`` takes a claim away, with its MIG devices.
    """
    try:
        checkpoint.remove_scratch()
        rebooted = bool(boot_id and checkpoint.boot_id and boot_id != checkpoint.boot_id)
        for record in list(checkpoint.values()):
            if rebooted and not _survives_reboot(record, inventory):
                _LOG.warning("%s: not prepared any more since the node was rebooted", record)
                files.remove(record.uid)
                checkpoint.drop(record.uid)
            elif record.state is ClaimState.PREPARE_STARTED:
                _LOG.warning("%s: its preparation was interrupted and is undone", record)
                _undo_if_possible(record, undo)
            else:
                restore_files(record, files)
        files.remove_orphans(checkpoint)
        # Last: after a crash before this line, the next start still sees that the node rebooted.
        if boot_id:
            checkpoint.begin_boot(boot_id)
    except OSError as error:
        raise DriverError(f"cannot take up what an earlier driver left: {error}") from None


def _survives_reboot(record: ClaimRecord, inventory: Inventory) -> bool:
    if record.state is not ClaimState.PREPARE_COMPLETED:
        return False
    for device in record.devices:
        present = inventory.get(device.device_name)
        if device.kind == "mig-partition" or present is None or not device.is_still(present):
            return False
    return True


def _undo_if_possible(record: ClaimRecord, undo: Callable[[ClaimRecord], None]) -> None:
    try:
        undo(record)
    except DriverError as error:
        # It keeps its device until unprepare or the next start succeeds; others can be served.
        _LOG.error("%s: cannot be undone now: %s", record, error)


def restore_files(record: ClaimRecord, files: ClaimFiles) -> None:
    """Write a prepared claim's files again if they are lost, as long as its devices are there."""
    try:
        files.write(record)
    except DriverError as error:
        # Its containers run on; the kubelet hears of it if it asks to prepare again.
        _LOG.error("%s: its CDI spec cannot be written again: %s", record, error)
