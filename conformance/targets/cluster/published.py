"""What drivers have published so far: a driver need not publish a device that a pod has.

No API asks it to. A network interface, for one, is in its pod's network namespace, where its driver
does not look for devices. Which device a container shows by an address is then to be told by what
was published before (``ResourceSlice``, resource.k8s.io/v1: a device is known by driver, pool and
name, wherever it is published).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from kube.observations import PublishedDevice


class PublishedDevices:
    """The devices of some drivers, each as it was published last. Safe for threads.

    Other drivers' are not kept: scenarios make slices of drivers that there are not.
    """

    def __init__(self, drivers: Iterable[str | None]) -> None:
        self._lock = threading.Lock()
        self._devices: dict[str, dict[tuple[str, str, str], PublishedDevice]] = {
            name: {} for name in drivers if name is not None
        }

    def of(self, driver: str) -> list[PublishedDevice]:
        """Return a driver's devices in the order in which they were published first."""
        with self._lock:
            return list(self._devices.get(driver, {}).values())

    def hear(self, change: str, obj: Mapping[str, Any]) -> None:
        """Listen to a watch of ResourceSlices (``kube.informer.Listener``)."""
        slices = obj["items"] if change == "LISTED" else [obj]
        if change in ("LISTED", "ADDED", "MODIFIED"):
            for resource_slice in slices:
                self._take(resource_slice["spec"])

    def _take(self, spec: Mapping[str, Any]) -> None:
        devices = self._devices.get(spec["driver"])
        if devices is None:
            return
        node, pool = spec.get("nodeName") or "", spec["pool"]["name"]
        with self._lock:
            for device in spec.get("devices") or ():
                devices[node, pool, device["name"]] = PublishedDevice(node, pool, device)
