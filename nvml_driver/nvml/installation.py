"""Finds NVIDIA's driver on the node: its tools and libraries, which NVML does not report.

On most nodes that is ``/``; where a container installs the driver, a directory like
``/run/nvidia/driver``. This driver itself may run in a container that sees it elsewhere: what is
looked at and run is below ``container``, what container runtimes read is below ``host``. Folders as
kubernetes-sigs/dra-driver-nvidia-gpu searches them, ``cmd/gpu-kubelet-plugin/root.go``. PCI
attributes have the formats of k8s.io/dynamic-resource-allocation/deviceattribute.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from kube.base.libraries import LIBRARY_FOLDERS, find_below, resolve_below
from nvml_driver.model.inventory import Attribute

TOOL_FOLDERS = ("opt/bin", "usr/bin", "usr/sbin", "bin", "sbin")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRoot:
    """The root of the driver's installation, as the node (``host``) and this process name it."""

    host: Path = Path("/")
    container: Path = Path("/")

    def find_tool(self, name: str) -> Path | None:
        """Return the path of a program, as this process sees it; None if there is none."""
        return find_below(self.container, TOOL_FOLDERS, name)

    def find_library(self, name: str) -> Path | None:
        """Return the path of a library, as this process sees it; None if there is none."""
        return find_below(self.container, LIBRARY_FOLDERS, name)

    def resolve_links(self, path: Path) -> Path | None:
        """Return the file that links lead to, or None if they lead nowhere or out of the root.

        An absolute link is meant from the root, because that is ``/`` for the program that made it.
        """
        return resolve_below(self.container, path)


_LOG = logging.getLogger(__name__)
_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_PREFIX = "resource.kubernetes.io/"
MAX_TEXT = 64  # ``DeviceAttributeMaxValueLength`` of the API.


def normalize_address(raw: str) -> str | None:
    """Return the PCI address as sysfs writes it, or None if NVML's is not one.

    NVML writes the domain with eight digits, sysfs with four: ``00000000:3B:00.0`` is
    ``0000:3b:00.0``.
    """
    address = raw.lower()
    if len(address) == len("00000000:00:00.0") and address.startswith("0000"):
        address = address[4:]
    return address if _ADDRESS.fullmatch(address) else None


def read_pci_attributes(
    sysfs: Path, address: str, label: str, *, numa_list: bool = False
) -> dict[str, Attribute]:
    """Return the standard attributes of the device at an address like ``0000:3b:00.0``.

    ``label`` names the device in the log, where each attribute that sysfs does not have is noted.
    """
    attributes = {f"{_PREFIX}pciBusID": Attribute("string", address)}
    link = sysfs / "bus" / "pci" / "devices" / address
    try:
        target = link.readlink().parts
    except OSError as error:
        _LOG.info("%s is published without pcieRoot: %s", label, error)
        return attributes
    # ../../../devices/pci0000:00/0000:00:1e.0
    below = target[target.index("devices") + 1 :] if "devices" in target else ()
    root = below[0] if below else ""
    if root.startswith("pci") and len(root) <= MAX_TEXT:
        attributes[f"{_PREFIX}pcieRoot"] = Attribute("string", root)
    else:
        _LOG.warning("%s is published without pcieRoot: %s cannot be used", label, link)
    try:
        node = int((link / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        _LOG.info("%s is published without numaNode: %s", label, error)
        return attributes
    if node >= 0:  # -1: the platform does not report
        attributes[f"{_PREFIX}numaNode"] = (
            Attribute("ints", (node,)) if numa_list else Attribute("int", node)
        )
    return attributes


def read_link_name(path: Path) -> str | None:
    """Return the last part of a link's target, for example the kernel driver of a device.

    None if it is no link.
    """
    try:
        return path.readlink().name
    except OSError:
        return None


def read_word(path: Path) -> str | None:
    """Return a small file's text without surrounding space; None if it is empty or unreadable."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
