"""The driver itself: devices, prepare and unprepare, the same in a kubelet plugin and in-process.

What it keeps to, whatever happens in between (upstream's obligations for drivers are in
k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go):

- A device is prepared for one claim at a time, but for admin access and shares.
- A claim that is PrepareCompleted has its CDI spec on disk, also after a reboot emptied the
  directory; a CDI spec on disk belongs to a claim of the checkpoint.
- Prepare and unprepare can be repeated; a preparation that failed or crashed leaves nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nvml_driver import cdi, slices
from nvml_driver.allocation import Allocation
from nvml_driver.checkpoint import Checkpoint
from nvml_driver.discovery import discover
from nvml_driver.errors import CdiError, CheckpointError, DriverError, PrepareError
from nvml_driver.files import remove, write_atomic
from nvml_driver.library import NvmlLibrary
from nvml_driver.options import DriverOptions
from nvml_driver.prepared import ClaimRecord, ClaimState, PreparedDevice
from nvml_driver.simulated.node import make_device_files, make_sysfs
from nvml_driver.spec import CONTROL_DEVICE, NODE_ANNOTATION, SpecBuilder, device_file

_LOG = logging.getLogger(__name__)


class DriverCore:
    """The driver of one node. All methods may be called from any thread.

    Attributes:
        options: as given.
        inventory: the node's devices.
    """

    def __init__(self, options: DriverOptions, library: NvmlLibrary) -> None:
        """Find the node's devices and take up what an earlier instance left.

        Raises:
            NvmlUnavailableError: NVML cannot be asked.
            CheckpointError: the checkpoint cannot be trusted.
            DriverError: a directory or a device file cannot be made.
        """
        self.options = options
        self._lock = threading.RLock()
        simulated = library.is_simulated
        # Absolute, because a container runtime reads it from the CDI specs.
        default_root = options.state_dir / "dev" if simulated else Path("/dev")
        self._device_root = (options.device_root or default_root).absolute()
        for folder in (options.state_dir, options.cdi_root):
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            except OSError as error:
                raise DriverError(f"cannot make the directory {folder}: {error}") from None
        self._checkpoint = Checkpoint(
            options.state_dir,
            driver_name=options.driver_name,
            node_name=options.node_name,
            durable=options.durable,
        )
        sysfs_root = options.sysfs_root or Path("/sys")
        if library.profile is not None and options.sysfs_root is None:
            sysfs_root = options.state_dir / "sys"
            make_sysfs(library.profile, sysfs_root)
        self.inventory = discover(library, sysfs_root, salt=options.node_name)
        self._makes_device_files = simulated and options.device_nodes == "create"
        self._specs = SpecBuilder(
            self.inventory,
            driver_name=options.driver_name,
            node_name=options.node_name,
            device_root=self._device_root,
            declared_only=simulated and options.device_nodes == "declare",
        )
        self._make_device_files()
        self._recover()

    def resource_slices(self, generation: int = 1) -> list[dict[str, Any]]:
        """The ResourceSlices (resource.k8s.io/v1) that publish this node's devices."""
        return slices.resource_slices(
            self.inventory,
            driver_name=self.options.driver_name,
            node_name=self.options.node_name,
            generation=generation,
        )

    def prepare(self, claim: Mapping[str, Any]) -> list[PreparedDevice]:
        """Make a claim's devices ready for containers; the same again for a repeated call.

        Args:
            claim: the ResourceClaim (resource.k8s.io/v1), with ``status.allocation``.

        Returns:
            One for each result of this driver; empty for a claim that has none.

        Raises:
            PrepareError: it cannot be prepared; nothing of the attempt is left.
        """
        wanted = Allocation(claim, self.options.driver_name)
        with self._lock:
            record = self._checkpoint.get(wanted.uid)
            if record is not None and record.state is ClaimState.PREPARE_COMPLETED:
                if [d.allocation for d in record.devices] == [d.allocation for d in wanted.devices]:
                    self._write_spec(record)
                    return list(record.devices)
                _LOG.warning("%s was allocated anew, its old devices are given up", record)
            if record is not None:
                self.unprepare(wanted.uid)
            if not wanted.devices:
                return []
            self._spec_path(wanted.uid)  # refuses a uid that is no file name before all else
            record = wanted.record(self.inventory, self.options.node_name)
            self._refuse_overlap(record)
            return list(self._prepare(record).devices)

    def unprepare(self, uid: str) -> None:
        """Undo prepare; a claim that is not prepared is no error.

        Raises:
            PrepareError: something of it could not be removed; calling again tries again.
        """
        with self._lock:
            record = self._checkpoint.get(uid)
            if record is None:
                return
            try:
                # The spec goes first: a crash in between leaves a claim whose spec comes back.
                remove(self._spec_path(uid), durable=self.options.durable)
                self._checkpoint.drop(uid)
            except (OSError, CheckpointError) as error:
                raise PrepareError(f"{record} cannot be unprepared: {error}") from None

    def prepared(self) -> Mapping[str, tuple[PreparedDevice, ...]]:
        """Claim uid to devices, of the claims that are prepared now."""
        with self._lock:
            return {
                uid: record.devices
                for uid, record in self._checkpoint.items()
                if record.state is ClaimState.PREPARE_COMPLETED
            }

    def _prepare(self, record: ClaimRecord) -> ClaimRecord:
        done = replace(record, state=ClaimState.PREPARE_COMPLETED)
        try:
            self._checkpoint.put(record)
            self._write_spec(done)
            self._checkpoint.put(done)
        except (DriverError, OSError) as error:
            self.unprepare(record.uid)
            raise PrepareError(f"{record} cannot be prepared: {error}") from None
        return done

    def _refuse_overlap(self, record: ClaimRecord) -> None:
        """Refuse a device that another claim has; the driver is the last one who can notice.

        It happens, for example after a pod was deleted by force (kubernetes/kubernetes#141471).
        """
        for other in self._checkpoint.values():
            for device in record.devices:
                for held in other.devices:
                    exempt = device.admin_access or held.admin_access
                    shares = device.share_id is not None and held.share_id is not None
                    if device.device_name != held.device_name or exempt:
                        continue
                    if not shares or device.share_id == held.share_id:
                        raise PrepareError(
                            f"{record}: device {device.device_name} is still prepared for {other}"
                        )

    def _spec_path(self, uid: str) -> Path:
        try:
            return cdi.spec_path(self.options.cdi_root, self.options.driver_name, uid)
        except CdiError as error:
            raise PrepareError(str(error)) from None

    def _write_spec(self, record: ClaimRecord) -> None:
        """Write a claim's spec, unless the very same is there."""
        self._make_device_files()
        content = cdi.encode(self._specs.build(record))
        path = self._spec_path(record.uid)
        try:
            if path.read_bytes() == content:
                return
        except OSError:
            pass  # not there, or whatever it is will be replaced
        try:
            self.options.cdi_root.mkdir(parents=True, exist_ok=True)  # on tmpfs, a reboot took it
            write_atomic(path, content, durable=self.options.durable)
        except OSError as error:
            raise PrepareError(f"{record}: cannot write the CDI spec {path}: {error}") from None

    def _make_device_files(self) -> None:
        if self._makes_device_files:
            names = [CONTROL_DEVICE, *(device_file(gpu) for gpu in self.inventory)]
            make_device_files(self._device_root, names)

    def _recover(self) -> None:
        """Bring disk and checkpoint together after a crash or a reboot."""
        for uid, record in list(self._checkpoint.items()):
            if record.state is ClaimState.PREPARE_STARTED:
                _LOG.warning("%s: its preparation was interrupted and is undone", record)
                self.unprepare(uid)
                continue
            try:
                self._write_spec(record)
            except DriverError as error:
                # Its containers run on; the kubelet hears of it if it asks to prepare again.
                _LOG.error("%s: its CDI spec is not there: %s", record, error)
        for path in self.options.cdi_root.glob("*.json"):
            owner = cdi.claim_uid_of(path, self.options.driver_name)
            if owner is not None and owner not in self._checkpoint and self._is_own(path):
                _LOG.warning("%s belongs to no prepared claim and is removed", path)
                remove(path, durable=self.options.durable)

    def _is_own(self, path: Path) -> bool:
        """Whether a spec was written for this node; a directory may be shared by mistake."""
        try:
            found = cdi.read_spec(path)
        except CdiError:
            return False
        return (found.get("annotations") or {}).get(NODE_ANNOTATION) == self.options.node_name
