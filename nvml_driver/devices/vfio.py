"""Finds GPUs that vfio-pci has, for virtual machines. NVML does not see them, sysfs does.

Attributes and formats as kubernetes-sigs/dra-driver-nvidia-gpu publishes them (``deviceinfo.go``,
VfioDeviceInfo). Unlike that driver, this one does not take a GPU away from NVIDIA's kernel driver:
it publishes those that an administrator has given to vfio-pci.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path

from nvml_driver.model.inventory import Attribute, Device
from nvml_driver.model.roots import NodeRoots
from nvml_driver.nvml.installation import (
    MAX_TEXT,
    normalize_address,
    read_link_name,
    read_pci_attributes,
    read_word,
)

_LOG = logging.getLogger(__name__)
NVIDIA = "0x10de"
_DISPLAY = ("0x0300", "0x0302")  # VGA and 3D controllers
_MEMORY, _WIDE = 0x200, 0x100000  # IORESOURCE_MEM, IORESOURCE_MEM_64 of linux/ioport.h


def find_vfio_devices(
    roots: NodeRoots, *, salt: str | None = None, numa_list: bool = False
) -> Iterator[Device]:
    """Yield one device for each GPU of vfio-pci, by PCI address."""
    folder = roots.sysfs / "bus" / "pci" / "devices"
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        _LOG.warning("GPUs of vfio-pci cannot be found: %s", error)
        return
    index = 0
    for entry in entries:
        address = normalize_address(entry.name)
        if address is None or read_link_name(entry / "driver") != "vfio-pci":
            continue
        if read_word(entry / "vendor") != NVIDIA:
            continue
        if not (read_word(entry / "class") or "").startswith(_DISPLAY):
            continue
        yield _describe_device(entry, address, index, roots, salt, numa_list)
        index += 1


def _describe_device(
    entry: Path, address: str, index: int, roots: NodeRoots, salt: str | None, numa_list: bool
) -> Device:
    name = f"gpu-vfio-{index}"
    device_uuid = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{salt}/{address}" if salt else address))
    iommufd = _find_iommufd(entry, roots.dev)
    attributes = {
        "type": Attribute("string", "vfio"),
        "uuid": Attribute("string", device_uuid),
        "vendorID": Attribute("string", NVIDIA),
        "iommuFDEnabled": Attribute("bool", iommufd is not None),
        **read_pci_attributes(roots.sysfs, address, name, numa_list=numa_list),
    }
    device_id = read_word(entry / "device")
    if device_id is not None:
        attributes["deviceID"] = Attribute("string", device_id)
        product = find_product_name(roots.pci_ids, device_id)
        if product is not None:
            attributes["productName"] = Attribute("string", product)
    group = read_link_name(entry / "iommu_group")
    memory = read_addressable_memory(entry)
    return Device(
        kind="vfio",
        name=name,
        minor=None,
        uuid=device_uuid,
        pci_bus_id=address,
        iommu_group=int(group) if group and group.isdigit() else None,
        iommufd=iommufd,
        attributes=dict(sorted(attributes.items())),
        capacity={} if memory is None else {"addressableMemory": memory},
    )


def _find_iommufd(entry: Path, dev: Path) -> str | None:
    """Return the device's file in /dev/vfio/devices; None where only the older interface works."""
    try:
        names = sorted(path.name for path in (entry / "vfio-dev").iterdir())
    except OSError:
        return None
    vfio_names = [name for name in names if name.startswith("vfio")]
    return vfio_names[0] if vfio_names and (dev / "iommu").exists() else None


def read_addressable_memory(entry: Path) -> int | None:
    """Return the bytes of 64-bit memory regions, rounded up to a power of two.

    None if sysfs does not report.

    The kernel's file ``resource`` has a line "start end flags" for each region.
    """
    text = read_word(entry / "resource")
    if text is None:
        return None
    total = 0
    for line in text.splitlines():
        try:
            start, end, flags = (int(word, 16) for word in line.split())
        except ValueError:
            continue
        if flags & _MEMORY and flags & _WIDE and end > start:
            total += end - start + 1
    return 1 << (total - 1).bit_length() if total else None


def find_product_name(pci_ids: Path, device_id: str) -> str | None:
    """Return NVIDIA's device in the PCI id list, for example ``GA100 [A100 SXM4 40GB]``."""
    try:
        lines = pci_ids.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    vendor = NVIDIA.removeprefix("0x")
    inside = False
    prefix = f"\t{device_id.removeprefix('0x').lower()}  "
    for line in lines:
        if line and not line.startswith(("\t", "#")):
            inside = line.startswith(f"{vendor}  ")
        elif inside and line.lower().startswith(prefix):
            return line[len(prefix) :].strip()[:MAX_TEXT] or None
    return None
