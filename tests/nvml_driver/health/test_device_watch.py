"""What happens to a GPU reaches slices and the kubelet, and ends when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pynvml

from nvml_driver.core import DriverCore
from nvml_driver.health.device_watch import DeviceWatch
from nvml_driver.nvml.library import NvmlLibrary
from tests.nvml_driver.helpers import make_claim, options_below, result
from tests.nvml_driver.injecting import Injector


class Watching:
    """A core with its watch, and a wait for states of its inventory."""

    def __init__(self, root: Path, hidden: str = "") -> None:
        self.library = NvmlLibrary.load_simulated("t4x4")
        options = options_below(root)
        self.core = DriverCore(options, self.library)
        if hidden:
            rest = tuple(device for device in self.core.inventory if device.name != hidden)
            self.core.set_inventory(replace(self.core.inventory, devices=rest))
        self.changed = threading.Condition()
        self.core.subscribe(self._notify)
        self.watch = DeviceWatch(self.core, self.library, wait_seconds=0.1)
        self.looked = threading.Event()
        check = self.watch._monitor._check_gpus

        def checked(nvml: object) -> None:
            check(nvml)
            self.looked.set()

        self.watch._monitor._check_gpus = checked  # type: ignore[method-assign]

    def start(self) -> None:
        """Begin, and wait until events would be noticed."""
        self.watch.start()
        assert self.looked.wait(15)

    def _notify(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, 15), self.core.inventory

    def effects(self, name: str) -> list[tuple[str, str]]:
        device = self.core.inventory.get(name)
        assert device is not None
        return [(taint.key, taint.effect) for taint in device.taints]


def test_an_xid_taints_the_gpu_in_the_slices_until_it_is_over(tmp_path: Path) -> None:
    node = Watching(tmp_path)
    machine = Injector(node.library)
    node.core.prepare(make_claim(result("gpu-1")))
    node.start()
    try:
        machine.xid(1, 79, recovery=pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET)
        node.until(lambda: bool(node.effects("gpu-1")))
        assert node.effects("gpu-1") == [("gpu.nvidia.com/xid", "NoSchedule")]
        assert node.effects("gpu-0") == []
        [slice_] = node.core.resource_slices()
        tainted = {d["name"]: d.get("taints") for d in slice_["spec"]["devices"]}
        assert tainted["gpu-1"][0]["value"] == "79"
        device = node.core.inventory.get("gpu-1")
        assert device is not None
        assert (device.health, "79" in device.health_message) == ("Unhealthy", True)
        assert list(node.core.list_prepared()) == ["uid-1"], "its claim stays prepared"
        machine.recover(1)
        node.until(lambda: not node.effects("gpu-1"))
        assert node.core.inventory.get("gpu-1") == replace(
            device, taints=(), health="Healthy", health_message=""
        )
    finally:
        node.watch.stop()


def test_a_gpu_that_appears_is_discovered(tmp_path: Path) -> None:
    node = Watching(tmp_path, hidden="gpu-2")
    assert node.core.inventory.get("gpu-2") is None
    node.watch.start()
    try:
        node.until(lambda: node.core.inventory.get("gpu-2") is not None)
    finally:
        node.watch.stop()


def test_the_watch_tells_when_it_last_looked(tmp_path: Path) -> None:
    node = Watching(tmp_path)
    assert node.watch.checked_at() == 0.0
    began = time.time()
    node.start()
    node.watch.stop()
    assert began <= node.watch.checked_at() <= time.time()
