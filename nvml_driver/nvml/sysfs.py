"""What the kernel reports of a PCI device: the attributes that Kubernetes itself names.

``resource.kubernetes.io/pciBusID``, ``pcieRoot`` and ``numaNode``, in the formats of
k8s.io/dynamic-resource-allocation/deviceattribute. What sysfs does not report is left out.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from nvml_driver.model.inventory import Attribute

_LOG = logging.getLogger(__name__)
_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_PREFIX = "resource.kubernetes.io/"
MAX_TEXT = 64
"""``DeviceAttributeMaxValueLength`` of the API."""


def normal_address(raw: str) -> str | None:
    """The address as sysfs writes it, of what NVML reports; None if it is none.

    NVML writes the domain with eight digits, sysfs with four: ``00000000:3B:00.0`` is
    ``0000:3b:00.0``.
    """
    address = raw.lower()
    if len(address) == len("00000000:00:00.0") and address.startswith("0000"):
        address = address[4:]
    return address if _ADDRESS.fullmatch(address) else None


def pci_attributes(
    sysfs: Path, address: str, who: str, *, numa_list: bool = False
) -> dict[str, Attribute]:
    """The standard attributes of the device at an address like ``0000:3b:00.0``."""
    found = {f"{_PREFIX}pciBusID": Attribute("string", address)}
    link = sysfs / "bus" / "pci" / "devices" / address
    try:
        target = link.readlink().parts
    except OSError as error:
        _LOG.info("%s is published without pcieRoot: %s", who, error)
        return found
    # ../../../devices/pci0000:00/0000:00:1e.0
    below = target[target.index("devices") + 1 :] if "devices" in target else ()
    root = below[0] if below else ""
    if root.startswith("pci") and len(root) <= MAX_TEXT:
        found[f"{_PREFIX}pcieRoot"] = Attribute("string", root)
    else:
        _LOG.warning("%s is published without pcieRoot: %s cannot be used", who, link)
    try:
        node = int((link / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        _LOG.info("%s is published without numaNode: %s", who, error)
        return found
    if node >= 0:  # -1: the platform does not report
        found[f"{_PREFIX}numaNode"] = (
            Attribute("ints", (node,)) if numa_list else Attribute("int", node)
        )
    return found


def link_name(path: Path) -> str | None:
    """The last part of what a link points to, for example the kernel driver of a device."""
    try:
        return path.readlink().name
    except OSError:
        return None


def read_word(path: Path) -> str | None:
    """A small file's only word, None if it cannot be read."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
