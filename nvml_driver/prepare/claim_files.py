"""Writes the files of a prepared claim that others read: its CDI spec, metadata, device files.

Owner of these files' life: written together, removed together, and after a crash or a reboot
brought back in line with the claims that the checkpoint knows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from nvml_driver.cdi import specs as cdi
from nvml_driver.cdi.claim_spec import CONTROL_DEVICE, NODE_ANNOTATION, SpecBuilder, device_files
from nvml_driver.cdi.driver_libraries import DriverLibraries
from nvml_driver.cdi.metadata import MetadataFiles, base_requests
from nvml_driver.errors import CdiError, DriverError, PrepareError
from nvml_driver.model.inventory import Device, Inventory, MigInstance
from nvml_driver.model.prepared import ClaimRecord
from nvml_driver.options import DriverOptions
from nvml_driver.simulated import smi
from nvml_driver.simulated.node import make_device_files
from nvml_driver.storage.files import remove_file, remove_scratch, write_atomic

_LOG = logging.getLogger(__name__)

SMI_NAME = "nvidia-smi"  # The simulated one, in the state directory.


class ClaimFiles:
    """The files of one node's claims."""

    def __init__(self, options: DriverOptions, inventory: Inventory, device_root: Path) -> None:
        """Write files for an inventory. Raises DriverError: a device file cannot be made."""
        self._options = options
        simulated = inventory.simulated
        self._device_root = device_root
        self._makes_device_files = simulated and options.device_nodes == "create"
        self._declared_only = simulated and options.device_nodes == "declare"
        self._libraries = (
            DriverLibraries(options.driver_root, options.cdi_hook)
            if options.driver_libraries and not simulated
            else None
        )
        self._metadata = (
            MetadataFiles(
                options.state_dir, driver_name=options.driver_name, durable=options.durable
            )
            if options.device_metadata
            else None
        )
        shows_smi = (
            simulated and not options.container_prefix
        )  # the tool has one place in containers
        self._smi = options.state_dir.absolute() / SMI_NAME if shows_smi else None
        self._made: dict[tuple[int | None, int | None], tuple[Device, MigInstance]] = {}
        self.use_inventory(inventory)

    def use_inventory(self, inventory: Inventory) -> None:
        """Write for another inventory from now on.

        Raises DriverError: no device file can be made.
        """
        self._inventory = inventory
        self._specs = SpecBuilder(
            inventory,
            driver_name=self._options.driver_name,
            node_name=self._options.node_name,
            device_root=self._device_root,
            declared_only=self._declared_only,
            metadata=self._metadata,
            libraries=self._libraries,
            simulated_smi=self._smi,
            prefix=self._options.container_prefix,
        )
        self._make_device_files()
        try:
            self._write_smi()
        except OSError as error:
            raise DriverError(f"cannot write the simulated {self._smi}: {error}") from None

    def metadata_device_ids(self, record: ClaimRecord) -> dict[str, str]:
        """Return for each base request the CDI device that mounts its metadata, if any does."""
        if self._metadata is None:
            return {}
        return {
            request: self._specs.metadata_device_id(record.uid, request)
            for request in base_requests(record)
        }

    def check_uid(self, uid: str) -> None:
        """Refuse a uid that cannot be part of a file name. Raises PrepareError: it cannot."""
        self._spec_path(uid)

    def has_spec(self, uid: str) -> bool:
        """Return whether the claim's CDI spec is on disk."""
        return self._spec_path(uid).is_file()

    def write(self, record: ClaimRecord) -> None:
        """Write a claim's files, unless the very same are there. Raises PrepareError."""
        self._make_device_files(record)
        content = cdi.encode_spec(self._specs.build(record))
        path = self._spec_path(record.uid)
        try:
            self._write_smi(record)
            if self._metadata is not None:
                self._metadata.write(record, self._inventory)
            if path.is_file() and path.read_bytes() == content:
                return
            self._options.cdi_root.mkdir(parents=True, exist_ok=True)  # tmpfs: a reboot took it
            write_atomic(path, content, durable=self._options.durable, fault_prefix="cdi-spec")
        except OSError as error:
            raise PrepareError(f"{record}: cannot write the CDI spec {path}: {error}") from None

    def remove(self, uid: str) -> None:
        """Remove a claim's files; they need not be there. Raises OSError."""
        remove_file(self._spec_path(uid), durable=self._options.durable, fault_prefix="cdi-spec")
        if self._metadata is not None:
            self._metadata.remove(uid)

    def remove_orphans(self, claims: Mapping[str, ClaimRecord]) -> None:
        """Remove what belongs to no claim, also half-written files. Raises OSError."""
        options = self._options
        prefix = f"{cdi.vendor_name(options.driver_name)}-{cdi.CLASS}_"
        remove_scratch(options.cdi_root, prefix)
        remove_scratch(options.state_dir, SMI_NAME)
        for path in options.cdi_root.glob(f"{prefix}*.json"):
            owner = cdi.claim_uid_of(path, options.driver_name)
            if owner is not None and owner not in claims and self._is_own(path):
                _LOG.warning("%s belongs to no prepared claim and is removed", path)
                remove_file(path, durable=options.durable, fault_prefix="cdi-spec")
        if self._metadata is not None:
            self._metadata.remove_orphans(claims)

    def _spec_path(self, uid: str) -> Path:
        try:
            return cdi.spec_path(self._options.cdi_root, self._options.driver_name, uid)
        except CdiError as error:
            raise PrepareError(str(error)) from None

    def _make_device_files(self, record: ClaimRecord | None = None) -> None:
        """Make simulated device files: those of the node, and those of MIG devices just made."""
        if not self._makes_device_files:
            return
        names = [CONTROL_DEVICE]
        for device in self._inventory:
            names += device_files(device)
            if device.kind == "vfio":
                names.append("vfio/vfio")
        for prepared in record.devices if record is not None else ():
            partition = self._inventory.get(prepared.device_name)
            if partition is not None and prepared.made is not None:
                names += device_files(partition, prepared.made)
        apart = bool(self._options.container_prefix)
        make_device_files(self._device_root, dict.fromkeys(names), apart=apart)

    def _write_smi(self, record: ClaimRecord | None = None) -> None:
        """Write the simulated nvidia-smi, which also shows the MIG devices made for claims."""
        if self._smi is None:
            return
        for prepared in record.devices if record is not None else ():
            device = self._inventory.get(prepared.device_name)
            if device is not None and prepared.made is not None:
                # Numbers of device files are used again, and then show another device.
                self._made[device.minor, prepared.made.gi_capability] = (device, prepared.made)
        content = smi.render_script(self._inventory, self._made.values()).encode()
        if not self._smi.is_file() or self._smi.read_bytes() != content:
            durable = self._options.durable
            write_atomic(self._smi, content, durable=durable, mode=0o755, fault_prefix="nvidia-smi")
        # Whatever the umask, and also after a crash before this line: users of containers run it.
        self._smi.chmod(0o755)

    def _is_own(self, path: Path) -> bool:
        """Return whether a spec was written for this node; a directory may be shared by mistake."""
        try:
            spec = cdi.read_spec(path)
        except (CdiError, FileNotFoundError):
            return False
        return (spec.get("annotations") or {}).get(NODE_ANNOTATION) == self._options.node_name
