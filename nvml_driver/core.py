"""The driver itself: devices, prepare and unprepare, the same in a kubelet plugin and in-process.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nvml_driver import partitions as mig
from nvml_driver import recovery, slices
from nvml_driver.allocation import Allocation
from nvml_driver.checkpoint import Checkpoint
from nvml_driver.claim_files import ClaimFiles
from nvml_driver.discovery import discover
from nvml_driver.errors import DriverError, PrepareError
from nvml_driver.inventory import Inventory
from nvml_driver.library import NvmlLibrary
from nvml_driver.lock import FileLock
from nvml_driver.mig import NvmlPartitions
from nvml_driver.options import DriverOptions
from nvml_driver.prepared import ClaimRecord, ClaimState, PreparedDevice
from nvml_driver.roots import NodeRoots
from nvml_driver.simulated.node import make_node

_LOG = logging.getLogger(__name__)


class DriverCore:
    """The driver of one node. All methods may be called from any thread.

    Attributes:
        options: as given.
        inventory: the node's devices now; replaced as a whole, never changed.
        roots: where the kernel's files are.
    """

    def __init__(
        self,
        options: DriverOptions,
        library: NvmlLibrary,
        *,
        partitions: mig.Partitions | None = None,
        inventory: Inventory | None = None,
    ) -> None:
        """Find the node's devices and take up what an earlier instance left.

        Args:
            options: names and places.
            library: the NVML to ask.
            partitions: how MIG devices are made; by default with ``library``.
            inventory: the node's devices, if they were found already.

        Raises:
            NvmlUnavailableError: NVML cannot be asked.
            CheckpointError: the checkpoint cannot be trusted.
            DriverError: a directory or a device file cannot be made.
        """
        self.options = options
        self._lock = threading.RLock()
        self._depth = 0
        self._listeners: list[Callable[[], None]] = []
        for folder in (options.state_dir, options.cdi_root):
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            except OSError as error:
                raise DriverError(f"cannot make the directory {folder}: {error}") from None
        self._file_lock = FileLock(options.state_dir / "lock")
        self.roots = _roots(options, library)
        self.inventory = inventory or self.discover(library)
        self._partitions: mig.Partitions = partitions or NvmlPartitions(
            library, self.roots, salt=options.node_name
        )
        self._checkpoint = Checkpoint(
            options.state_dir,
            driver_name=options.driver_name,
            node_name=options.node_name,
            durable=options.durable,
        )
        self._files = ClaimFiles(options, self.inventory, self.roots.dev)
        with self._exclusive():
            recovery.recover(
                self._checkpoint,
                self._files,
                self.inventory,
                boot_id=recovery.read_boot_id(self.roots.boot_id),
                undo=self._undo,
            )

    def discover(self, library: NvmlLibrary) -> Inventory:
        """The node's devices as they are now; ``set_inventory`` makes the driver go on with them.

        Raises:
            NvmlUnavailableError: NVML cannot be asked.
        """
        return discover(
            library, self.roots, salt=self.options.node_name, features=self.options.features
        )

    def resource_slices(self, generation: int = 1) -> list[dict[str, Any]]:
        """The ResourceSlices (resource.k8s.io/v1) that publish this node's devices."""
        return slices.resource_slices(
            self.inventory,
            driver_name=self.options.driver_name,
            node_name=self.options.node_name,
            generation=generation,
        )

    def set_inventory(self, inventory: Inventory) -> None:
        """Go on with other devices: some came, went, or changed their health.

        Claims of devices that went keep them until they are unprepared.

        Raises:
            DriverError: a simulated device file cannot be made.
        """
        with self._lock:
            if inventory == self.inventory:
                return
            self._files.use(inventory)
            self.inventory = inventory
        for listener in list(self._listeners):
            listener()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change of the inventory; it must not block."""
        self._listeners.append(listener)

    def prepare(
        self, claim: Mapping[str, Any], *, still_wanted: Callable[[], bool] | None = None
    ) -> list[PreparedDevice]:
        """Make a claim's devices ready for containers; the same again for a repeated call.

        Args:
            claim: the ResourceClaim (resource.k8s.io/v1), with ``status.allocation``.
            still_wanted: asked when it is the claim's turn; a kubelet that gave up waiting may
                have unprepared the claim already, and would never do so again.

        Returns:
            One for each result of this driver; empty for a claim that has none.

        Raises:
            PrepareError: it cannot be prepared; nothing of the attempt is left.
            DriverError: another instance does not let go, or the checkpoint cannot be read.
        """
        wanted = Allocation(claim, self.options.driver_name)
        with self._exclusive():
            if still_wanted is not None and not still_wanted():
                raise PrepareError(f"{wanted} is not prepared: the caller gave up waiting")
            record = self._checkpoint.get(wanted.uid)
            if record is not None and record.state is ClaimState.PREPARE_COMPLETED:
                if [d.allocation for d in record.devices] == [d.allocation for d in wanted.devices]:
                    self._files.write(record)
                    return list(record.devices)
                _LOG.warning("%s was allocated anew, its old devices are given up", record)
            if record is not None:
                self.unprepare(wanted.uid)
            if not wanted.devices:
                return []
            self._files.check_uid(wanted.uid)
            record = wanted.record(self.inventory, self.options.node_name)
            self._refuse_overlap(record)
            return list(self._prepare(record).devices)

    def unprepare(self, uid: str) -> None:
        """Undo prepare; a claim that is not prepared is no error.

        Raises:
            PrepareError: something of it could not be removed; calling again tries again.
            DriverError: another instance does not let go, or the checkpoint cannot be read.
        """
        with self._exclusive():
            record = self._checkpoint.get(uid)
            if record is None:
                return
            try:
                self._undo(record)
            except (OSError, DriverError) as error:
                raise PrepareError(f"{record} cannot be unprepared: {error}") from None

    def prepared(self) -> Mapping[str, tuple[PreparedDevice, ...]]:
        """Claim uid to devices, of the claims that are prepared now."""
        return {
            record.uid: record.devices
            for record in self.records()
            if record.state is ClaimState.PREPARE_COMPLETED
        }

    def records(self) -> list[ClaimRecord]:
        """All claims that the checkpoint has now, also half prepared ones."""
        with self._exclusive():
            return list(self._checkpoint.values())

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Alone on this node, with what the other instance last wrote; may be nested."""
        with self._lock:
            if self._depth == 0:
                self._file_lock.acquire()
            self._depth += 1
            try:
                if self._depth == 1:
                    self._checkpoint.refresh()
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._file_lock.release()

    def _prepare(self, record: ClaimRecord) -> ClaimRecord:
        try:
            mig.refuse_foreign(self._partitions, record.devices)
        except DriverError as error:
            raise PrepareError(f"{record} cannot be prepared: {error}") from None
        try:
            self._checkpoint.put(record)
            done = replace(
                record,
                state=ClaimState.PREPARE_COMPLETED,
                devices=tuple(mig.make(self._partitions, device) for device in record.devices),
            )
            done = self._with_metadata(done)
            self._files.write(done)
            self._checkpoint.put(done)
        except (DriverError, OSError) as error:
            self._roll_back(record, error)
            raise PrepareError(f"{record} cannot be prepared: {error}") from None
        return done

    def _roll_back(self, record: ClaimRecord, error: Exception) -> None:
        """Undo a failed preparation; what cannot be undone now is at the next call or start."""
        if record.uid not in self._checkpoint:
            return  # the failure was to write the checkpoint, so nothing was begun
        try:
            self._undo(record)
        except (DriverError, OSError) as another:
            _LOG.error("%s: after %s, rolling back failed: %s", record, error, another)

    def _undo(self, record: ClaimRecord) -> None:
        """Take everything of a claim away, in an order in which a crash can be repaired."""
        # The spec goes first: a crash in between leaves a claim whose spec comes back.
        self._files.remove(record.uid)
        if any(device.makes_instance for device in record.devices):
            # What is destroyed does not come back, so the claim is not prepared from here on.
            if record.state is ClaimState.PREPARE_COMPLETED:
                record = replace(record, state=ClaimState.PREPARE_STARTED)
                self._checkpoint.put(record)
            for device in record.devices:
                mig.unmake(self._partitions, device)
        self._checkpoint.drop(record.uid)

    def _with_metadata(self, record: ClaimRecord) -> ClaimRecord:
        """Each request's metadata device goes with the request's first device, as upstream."""
        left = self._files.metadata_device_ids(record)
        devices = []
        for device in record.devices:
            extra = [left.pop(name) for name in device.request_names if name in left]
            devices.append(replace(device, cdi_device_ids=(*device.cdi_device_ids, *extra)))
        return replace(record, devices=tuple(devices))

    def _refuse_overlap(self, record: ClaimRecord) -> None:
        """Refuse a device that another claim has; the driver is the last one who can notice.

        It happens, for example after a pod was deleted by force (kubernetes/kubernetes#141471).
        """
        for other in self._checkpoint.values():
            for device in record.devices:
                for held in other.devices:
                    if device.conflicts_with(held):
                        with_name = (
                            ""
                            if device.device_name == held.device_name
                            else f" (as {held.device_name})"
                        )
                        raise PrepareError(
                            f"{record}: device {device.device_name}{with_name} is still prepared "
                            f"for {other}"
                        )


def _roots(options: DriverOptions, library: NvmlLibrary) -> NodeRoots:
    """The node's own places, or those of a simulated node; each can be told otherwise."""
    if library.profile is not None:
        found = make_node(library.profile, options.state_dir)
    else:
        found = NodeRoots(dev=options.state_dir / "dev") if library.is_simulated else NodeRoots()
    # Absolute, because a container runtime reads it from the CDI specs.
    return replace(
        found,
        dev=(options.device_root or found.dev).absolute(),
        sysfs=options.sysfs_root or found.sysfs,
        boot_id=options.boot_id_path or found.boot_id,
    )
