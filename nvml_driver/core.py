"""Prepares and unprepares claims: the same in a kubelet plugin and in-process.

What it keeps to, whatever happens in between (upstream's obligations for drivers are in
k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go):

- A device is prepared for one claim at a time, but for admin access and shares.
- A claim that is PrepareCompleted has its CDI spec on disk, also after a reboot emptied the
  directory; a CDI spec on disk belongs to a claim of the checkpoint.
- Prepare and unprepare can be repeated; a preparation that failed or crashed leaves nothing.
- Two instances on one node (a rolling update) see each other's claims at once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from nvml_driver.devices import slices
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.errors import DriverError, PrepareError
from nvml_driver.mig import partitions as mig
from nvml_driver.mig import state as migstate
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.mig.state import MigChanges
from nvml_driver.model.inventory import Inventory, MigInstance
from nvml_driver.model.prepared import ClaimRecord, ClaimState, PreparedDevice
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions
from nvml_driver.prepare import recovery
from nvml_driver.prepare.allocation import Allocation
from nvml_driver.prepare.checkpoint import Checkpoint
from nvml_driver.prepare.claim_files import ClaimFiles
from nvml_driver.prepare.preparation import Preparation
from nvml_driver.prepare.timeslicing import NvidiaSmi, TimeSlices
from nvml_driver.simulated.node import make_node
from nvml_driver.storage.files import file_lock, hold_lock

_LOG = logging.getLogger(__name__)


class DriverCore:
    """The driver of one node. All methods may be called from any thread.

    ``inventory`` has the node's devices now; it is replaced as a whole, never changed.
    """

    def __init__(
        self,
        options: DriverOptions,
        library: NvmlLibrary,
        *,
        partitions: mig.Partitions | None = None,
        inventory: Inventory | None = None,
        time_slices: TimeSlices | None = None,
    ) -> None:
        """Find the node's devices and take up what an earlier instance left.

        Args:
            partitions: how MIG devices are made; by default with ``library``.
            inventory: the node's devices, if they were found already.
            time_slices: by default the driver's nvidia-smi on real GPUs, nothing on simulated ones.

        Raises:
            NvmlUnavailableError: NVML cannot be asked.
            CheckpointError: the checkpoint cannot be trusted.
            DriverError: a directory or a device file cannot be made.
        """
        self.options = options
        self._lock = threading.RLock()
        self._listeners: list[Callable[[], None]] = []
        for folder in (options.state_dir, options.cdi_root):
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            except OSError as error:
                raise DriverError(f"cannot make the directory {folder}: {error}") from None
        self._file_lock = file_lock(options.state_dir / "lock")
        self.roots = _choose_roots(options, library)
        self._partitions: mig.Partitions = partitions or NvmlPartitions(
            library, self.roots, salt=options.node_name
        )
        self._checkpoint = Checkpoint(
            options.state_dir,
            driver_name=options.driver_name,
            node_name=options.node_name,
            durable=options.durable,
        )
        with self._exclusive():
            self.inventory = inventory or self.discover_devices(library)
            self._files = ClaimFiles(options, self.inventory, self.roots.dev)
            if time_slices is None and not self.inventory.simulated:
                time_slices = TimeSlices(NvidiaSmi(options.driver_root))
            self._preparation = Preparation(
                self._checkpoint, self._files, self._partitions, time_slices
            )
            recovery.recover(
                self._checkpoint,
                self._files,
                self.inventory,
                boot_id=recovery.read_boot_id(self.roots.boot_id),
                undo=self._preparation.undo_claim,
            )

    def discover_devices(self, library: NvmlLibrary) -> Inventory:
        """Return the devices now, for ``set_inventory``.

        Raises NvmlUnavailableError, DriverError.
        """
        with self._exclusive():  # no MIG device of a claim may come or go meanwhile
            return discover_devices(
                library,
                self.roots,
                salt=self.options.node_name,
                features=self.options.features,
                is_own=self._own_instances(self._checkpoint.values()),
            )

    def find_mig_changes(self) -> MigChanges | None:
        """Return what happened to MIG devices without this driver; None: ask again.

        Raises DriverError.
        """
        records = self.list_records()
        state = self._partitions.read_state()  # without the lock, for NVML may take its time
        if self.list_records() != records:
            return None
        return MigChanges(
            outdated=migstate.is_outdated(self.inventory, state, self._own_instances(records)),
            vanished=migstate.find_vanished(state, records),
        )

    def _own_instances(self, records: Iterable[ClaimRecord]) -> Callable[[MigInstance], bool]:
        """Return a test of whether this driver made a MIG device; only with dynamic MIG it does."""
        own_records = tuple(records) if self.options.features.dynamic_mig else ()
        return partial(migstate.is_own, records=own_records)

    def resource_slices(self, generation: int = 1) -> list[dict[str, Any]]:
        """Return the ResourceSlices (resource.k8s.io/v1) that publish this node's devices."""
        return slices.resource_slices(
            self.inventory,
            driver_name=self.options.driver_name,
            node_name=self.options.node_name,
            generation=generation,
        )

    def set_inventory(self, inventory: Inventory) -> None:
        """Go on with other devices: some came, went, or changed their health. Raises DriverError.

        Claims of devices that went keep them until they are unprepared.
        """
        with self._lock:
            if inventory == self.inventory:
                return
            came = {(d.name, d.uuid) for d in inventory} - {
                (d.name, d.uuid) for d in self.inventory
            }
            self._files.use_inventory(inventory)
            self.inventory = inventory
        if came:
            self._restore_files()
        for listener in list(self._listeners):
            listener()

    def _restore_files(self) -> None:
        """Write CDI specs that were lost while their claim's device was away."""
        try:
            with self._exclusive():
                for record in self._checkpoint.values():
                    completed = record.state is ClaimState.PREPARE_COMPLETED
                    if completed and not self._files.has_spec(record.uid):
                        recovery.restore_files(record, self._files)
        except DriverError as error:
            _LOG.error("CDI specs cannot be looked after now: %s", error)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change of the inventory; it must not block."""
        self._listeners.append(listener)

    def prepare(
        self, claim: Mapping[str, Any], *, still_wanted: Callable[[], bool] | None = None
    ) -> list[PreparedDevice]:
        """Make a claim's devices ready for containers; the same again for a repeated call.

        The claim (resource.k8s.io/v1) has ``status.allocation``; the answer has one entry for each
        result of this driver. ``still_wanted`` is asked when it is the claim's turn: a kubelet that
        gave up waiting, or unprepared the claim meanwhile, would never unprepare it again.

        Raises:
            PrepareError: it cannot be prepared; nothing of the attempt is left.
            DriverError: another instance does not let go, or the checkpoint cannot be read.
        """
        allocation = Allocation(claim, self.options.driver_name)
        with self._exclusive():
            if still_wanted is not None and not still_wanted():
                raise PrepareError(f"{allocation} is not prepared: the request was cancelled")
            record = self._checkpoint.get(allocation.uid)
            if record is not None and record.state is ClaimState.PREPARE_COMPLETED:
                if [d.allocation for d in record.devices] != [
                    d.allocation for d in allocation.devices
                ]:
                    _LOG.warning("%s was allocated anew, its old devices are given up", record)
                elif self._preparation.repair_claim(record):
                    return list(record.devices)
            if record is not None:
                self.unprepare(allocation.uid)
            if not allocation.devices:
                return []
            self._files.check_uid(allocation.uid)
            record = allocation.build_record(self.inventory, self.options.node_name)
            return list(self._preparation.prepare_claim(record).devices)

    def unprepare(self, uid: str) -> None:
        """Undo prepare; a claim that is not prepared is not an error.

        Raises:
            PrepareError: something of it could not be removed; calling again tries again.
            DriverError: another instance does not let go, or the checkpoint cannot be read.
        """
        with self._exclusive():
            record = self._checkpoint.get(uid)
            if record is None:
                return
            try:
                self._preparation.undo_claim(record)
            except (OSError, DriverError) as error:
                raise PrepareError(f"{record} cannot be unprepared: {error}") from None

    def list_prepared(self) -> Mapping[str, tuple[PreparedDevice, ...]]:
        """Return the devices of each claim that is prepared now, by the claim's uid."""
        return {
            record.uid: record.devices
            for record in self.list_records()
            if record.state is ClaimState.PREPARE_COMPLETED
        }

    def list_records(self) -> list[ClaimRecord]:
        """Return all claims that the checkpoint has now, also half prepared ones."""
        with self._exclusive():
            return list(self._checkpoint.values())

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the node alone, with what the other instance last wrote; may be nested."""
        with self._lock, hold_lock(self._file_lock):
            # Only in the outermost block: nobody else can write until that ends.
            if self._file_lock.lock_counter == 1:
                self._checkpoint.refresh()
            yield


def _choose_roots(options: DriverOptions, library: NvmlLibrary) -> NodeRoots:
    if library.profile is not None:
        roots = make_node(library.profile, options.state_dir)
    else:
        roots = NodeRoots(dev=options.state_dir / "dev") if library.is_simulated else NodeRoots()
    # Absolute, because a container runtime reads it from the CDI specs.
    return replace(roots, dev=(options.device_root or roots.dev).absolute())
