"""MIG devices that come and go while the driver runs, without it: slices, health, claims."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nvml_driver.core import DriverCore
from nvml_driver.health.device_watch import DeviceWatch
from nvml_driver.model.inventory import Device
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import Features
from nvml_driver.simulated import profile
from tests.nvml_driver.helpers import make_claim, options_below, result, with_gpu
from tests.nvml_driver.injecting import Injector

GONE = ("gpu.nvidia.com/mig-gone", "NoSchedule")


class Watching:
    """A core with its watch, and a wait for states of its inventory."""

    def __init__(
        self,
        root: Path,
        shown: str | profile.Profile,
        *,
        dynamic: bool = False,
        look_seconds: float = 600.0,
        library: NvmlLibrary | None = None,
    ) -> None:
        self.library = library or NvmlLibrary.load_simulated(shown)
        options = options_below(root, features=Features(dynamic_mig=dynamic))
        self.core = DriverCore(options, self.library)
        self.changed = threading.Condition()
        self.changes = 0
        self.discoveries = 0
        self.looked = threading.Semaphore(0)
        self.core.subscribe(self._notify)
        self.watch = DeviceWatch(
            self.core,
            self.library,
            wait_seconds=0.1,
            look_seconds=look_seconds,
            settle_seconds=0.02,
            discover=self._discover,
        )
        news = self.core.find_mig_changes

        def looked() -> Any:
            found = news()
            self.looked.release()
            return found

        self.core.find_mig_changes = looked  # type: ignore[method-assign]

    def _discover(self) -> Any:
        self.discoveries += 1
        return self.core.discover_devices(self.library)

    def _notify(self) -> None:
        with self.changed:
            self.changes += 1
            self.changed.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, 15), self.core.inventory

    def device(self, name: str) -> Device:
        found = self.core.inventory.get(name)
        assert found is not None
        return found

    def published(self) -> set[str]:
        slices = self.core.resource_slices()
        return {d["name"] for each in slices for d in each["spec"].get("devices", ())}


@contextmanager
def watching(root: Path, shown: str | profile.Profile, **more: Any) -> Iterator[Watching]:
    node = Watching(root, shown, **more)
    node.watch.start()
    try:
        assert node.looked.acquire(timeout=15), "it looks once at the start"
        yield node
    finally:
        node.watch.stop()


def without_mig_events(name: str, index: int) -> profile.Profile:
    """GPUs of a driver that does not tell of MIG devices."""
    return with_gpu(name, index, event_types=0xB)


@pytest.mark.parametrize("told", [True, False], ids=["event", "timer"])
def test_a_mig_device_that_somebody_makes_or_destroys_is_published_or_not(
    tmp_path: Path, told: bool
) -> None:
    shown = profile.load_profile("mixed") if told else without_mig_events("mixed", 1)
    with watching(tmp_path, shown, look_seconds=600.0 if told else 0.1) as node:
        machine = Injector(node.library)
        machine.destroy_mig(1, 2)
        node.until(lambda: node.core.inventory.get("gpu-1-mig-3g20gb-9-4") is None)
        assert "gpu-1-mig-3g20gb-9-4" not in node.published()
        machine.create_mig(1, 14, 4)
        node.until(lambda: node.core.inventory.get("gpu-1-mig-2g10gb-14-4") is not None)
        assert "gpu-1-mig-2g10gb-14-4" in node.published()
        assert "gpu-1-mig-1g5gb-19-2" in node.published()


def test_dynamic_mig_withdraws_what_somebody_took_and_offers_it_again(tmp_path: Path) -> None:
    with watching(tmp_path, "h100-80x8", dynamic=True) as node:
        machine = Injector(node.library)
        before = node.published()
        assert "gpu-2" in before
        machine.set_mig_mode(2, enabled=True)
        machine.create_mig(2, 9, 0)
        node.until(lambda: node.core.inventory.get("gpu-2") is None)
        node.until(lambda: node.device("gpu-2-mig-3g40gb-9-0").kind == "mig")
        assert "gpu-2-mig-1g10gb-19-0" not in node.published()
        assert "gpu-2-mig-1g10gb-19-4" in node.published()
        node.core.prepare(make_claim(result("gpu-2-mig-1g10gb-19-4")))
        machine.destroy_mig(2, 1)
        node.until(lambda: node.published() == before)


def test_what_the_driver_itself_makes_changes_nothing_that_is_published(tmp_path: Path) -> None:
    with watching(tmp_path, "h100-80x8", dynamic=True) as node:
        for number in range(3):
            uid = f"uid-{number}"
            node.core.prepare(make_claim(result("gpu-0-mig-1g10gb-19-0"), uid=uid))
            assert node.looked.acquire(timeout=15)
            node.core.unprepare(uid)
            assert node.looked.acquire(timeout=15)
        assert (node.changes, node.discoveries) == (0, 0)


def test_a_destroyed_mig_device_of_a_claim_is_unhealthy_until_it_is_unprepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nvml_driver.health.device_watch._VANISHED_SECONDS", 0.1)
    name = "gpu-1-mig-3g20gb-9-4"
    with watching(tmp_path, "mixed") as node:
        node.core.prepare(make_claim(result(name)))
        healthy = node.device(name)
        Injector(node.library).destroy_mig(1, 2)
        node.until(lambda: bool(node.device(name).taints))
        device = node.device(name)
        [taint] = device.taints
        assert (taint.key, taint.effect) == GONE
        assert taint.time_added
        assert device.health == "Unhealthy"
        assert "claim default/claim-uid-1" in device.health_message
        assert device.uuid == healthy.uuid, "the one that is gone"
        assert name in node.published()
        node.core.unprepare("uid-1")
        node.until(lambda: node.core.inventory.get(name) is None)


def test_a_destroyed_partition_of_a_claim_is_tainted_until_it_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nvml_driver.health.device_watch._VANISHED_SECONDS", 0.1)
    name = "gpu-0-mig-1g10gb-19-0"
    with watching(tmp_path, "h100-80x8", dynamic=True) as node:
        claim = make_claim(result(name))
        [one] = node.core.prepare(claim)
        assert one.made is not None
        Injector(node.library).destroy_mig(0, one.made.gi_id)
        node.until(lambda: bool(node.device(name).taints))
        assert node.device("gpu-0-mig-1g10gb-19-1").taints == ()
        node.core.prepare(claim)
        node.until(lambda: not node.device(name).taints)
        assert node.device(name).health == "Healthy"


def test_what_happened_while_no_driver_ran_is_found_at_the_start(tmp_path: Path) -> None:
    name = "gpu-0-mig-1g10gb-19-0"
    library = NvmlLibrary.load_simulated("h100-80x8")
    first = Watching(tmp_path, "h100-80x8", dynamic=True, library=library)
    [one] = first.core.prepare(make_claim(result(name)))
    assert one.made is not None
    Injector(library).destroy_mig(0, one.made.gi_id)
    with watching(tmp_path, "h100-80x8", dynamic=True, library=library) as node:
        node.until(lambda: bool(node.device(name).taints))


def test_mig_mode_that_somebody_switches_withdraws_the_whole_gpu(tmp_path: Path) -> None:
    with watching(tmp_path, "a100-40x8") as node:
        Injector(node.library).set_mig_mode(3, enabled=True)
        node.until(lambda: node.core.inventory.get("gpu-3") is None)
        assert "gpu-2" in node.published()
        Injector(node.library).set_mig_mode(3, enabled=False)
        node.until(lambda: node.core.inventory.get("gpu-3") is not None)


def test_a_gpu_that_nvml_cannot_ask_now_has_not_lost_its_mig_devices(tmp_path: Path) -> None:
    with watching(tmp_path, "mixed", look_seconds=0.05) as node:
        node.core.prepare(make_claim(result("gpu-1-mig-3g20gb-9-4")))
        before = node.core.inventory
        Injector(node.library).fail("nvmlDeviceGetGpuInstances", "UNKNOWN", gpu=1)
        while node.looked.acquire(blocking=False):
            pass
        for _ in range(3):
            assert node.looked.acquire(timeout=15)
        assert node.core.inventory == before
        assert node.discoveries == 0


def test_a_lost_gpu_stays_published_when_others_are_found_anew(tmp_path: Path) -> None:
    with watching(tmp_path, "h100-80x8", dynamic=True) as node:
        machine = Injector(node.library)
        machine.fail("*", "GPU_IS_LOST", gpu=5)
        node.until(lambda: bool(node.device("gpu-5").taints))
        machine.set_mig_mode(0, enabled=True)
        machine.create_mig(0, 9, 0)
        node.until(lambda: node.core.inventory.get("gpu-0") is None)
        assert [taint.key for taint in node.device("gpu-5").taints] == ["gpu.nvidia.com/gpu-lost"]
        assert "gpu-5-mig-1g10gb-19-0" in node.published()
        assert "gpu-5-counter-set" in {each.name for each in node.core.inventory.counter_sets}


def test_a_gpu_that_cannot_be_published_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    """In MIG mode and without MIG devices: NVML shows it, and there is nothing to publish."""
    shown = with_gpu("a100-40x8", mig_mode="enabled")
    with watching(tmp_path, shown, look_seconds=0.02) as node:
        for _ in range(20):
            assert node.looked.acquire(timeout=15)
        assert node.discoveries <= 1
