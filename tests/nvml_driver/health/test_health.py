"""What is the matter with GPUs, as taints and health, and that it ends when it is over."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from nvml_driver.devices.discovery import discover_devices
from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.health.conditions import Condition, HealthReport, apply_health
from nvml_driver.health.monitor import HealthMonitor
from nvml_driver.mig.instances import NvmlPartitions
from nvml_driver.model.inventory import Inventory, Taint
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import Features
from nvml_driver.simulated.node import make_node
from tests.nvml_driver.injecting import Injector

DRIVER = "gpu.nvidia.com"
RESET = pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET


class Watched:
    """A running monitor and the reports that it made."""

    def __init__(self, library: NvmlLibrary, monitor: HealthMonitor) -> None:
        self.library = library
        self.monitor = monitor
        self.reports: queue.Queue[HealthReport] = queue.Queue()

    def until(self, wanted: Callable[[HealthReport], bool]) -> HealthReport:
        while True:
            report = self.reports.get(timeout=10)
            if wanted(report):
                return report

    def kinds(self, *expected: tuple[str, str]) -> HealthReport:
        """The first report whose conditions are these, as (GPU, kind)."""
        return self.until(
            lambda report: sorted((c.gpu, c.kind) for c in report.conditions) == sorted(expected)
        )


@contextmanager
def watch(
    shown: str = "t4x4", *, library: NvmlLibrary | None = None, quiet: float = 300.0
) -> Iterator[Watched]:
    library = library or NvmlLibrary.load_simulated(shown)
    reports: queue.Queue[HealthReport] = queue.Queue()
    monitor = HealthMonitor(library, reports.put, wait_seconds=0.1, quiet_seconds=quiet)
    watched = Watched(library, monitor)
    watched.reports = reports
    monitor.start()
    try:
        yield watched
    finally:
        monitor.stop(timeout=10)
    assert not monitor._thread.is_alive()


def inventory(shown: str, root: Path, features: Features | None = None) -> Inventory:
    library = NvmlLibrary.load_simulated(shown)
    assert library.profile is not None
    return discover_devices(
        library, make_node(library.profile, root), features=features or Features()
    )


def test_gpus_that_are_well_are_reported_once_and_without_conditions() -> None:
    with watch() as watched:
        first = watched.until(lambda _: True)
        assert first == HealthReport(present=frozenset({"gpu-0", "gpu-1", "gpu-2", "gpu-3"}))
        with pytest.raises(queue.Empty):
            watched.reports.get(timeout=0.4)
        assert 0 <= time.time() - watched.monitor.checked_at < 5


def test_a_critical_xid_stays_until_nvml_says_that_nothing_has_to_be_done() -> None:
    with watch() as watched:
        watched.kinds()
        Injector(watched.library).xid(1, 79, recovery=RESET)
        [condition] = watched.kinds(("gpu-1", "xid")).conditions
        assert (condition.xid, condition.fatal, condition.gi_id) == (79, True, None)
        with pytest.raises(queue.Empty):
            watched.reports.get(timeout=0.4)
        Injector(watched.library).recover(1)
        assert watched.kinds().conditions == ()


def test_an_xid_stays_where_the_driver_cannot_say_what_has_to_be_done() -> None:
    with watch() as watched:
        watched.kinds()
        Injector(watched.library).fail("nvmlDeviceGetFieldValues", "FUNCTION_NOT_FOUND")
        Injector(watched.library).xid(1, 48)
        watched.kinds(("gpu-1", "xid"))
        with pytest.raises(queue.Empty):
            watched.reports.get(timeout=0.5)


def test_an_applications_error_is_harmless_and_forgotten_after_a_while() -> None:
    with watch(quiet=0.3) as watched:
        watched.kinds()
        Injector(watched.library).xid(2, 13)
        [condition] = watched.kinds(("gpu-2", "xid")).conditions
        assert not condition.fatal
        watched.kinds()


def test_a_lost_gpu_is_reported_from_the_others_and_comes_back() -> None:
    with watch() as watched:
        watched.kinds()
        Injector(watched.library).xid(3, 79, recovery=RESET)
        watched.kinds(("gpu-3", "xid"))
        Injector(watched.library).fail("*", "GPU_IS_LOST", gpu=3)
        report = watched.kinds(("gpu-3", "gpu-lost"), ("gpu-3", "xid"))
        assert "gpu-3" not in report.present
        Injector(watched.library).heal(gpu=3)
        back = watched.kinds()
        assert "gpu-3" in back.present


def test_when_nvml_does_not_say_which_gpu_is_lost_none_is_trusted_until_waiting_works() -> None:
    with watch() as watched:
        watched.kinds()
        Injector(watched.library).fail("nvmlEventSetWait_v2", "GPU_IS_LOST")
        everyone = [(f"gpu-{n}", "gpu-lost") for n in range(4)]
        watched.kinds(*everyone)
        with pytest.raises(queue.Empty):
            watched.reports.get(timeout=1.5)
        Injector(watched.library).heal("nvmlEventSetWait_v2")
        watched.kinds()


@pytest.mark.parametrize(
    ("function", "error"),
    [
        ("nvmlDeviceGetSupportedEventTypes", "FUNCTION_NOT_FOUND"),
        ("nvmlDeviceRegisterEvents", "NOT_SUPPORTED"),
        ("nvmlEventSetCreate", "UNKNOWN"),
    ],
)
def test_a_gpu_whose_events_cannot_be_watched_is_unmonitored(function: str, error: str) -> None:
    library = NvmlLibrary.load_simulated("a30x4")
    Injector(library).fail(function, error)
    with watch(library=library) as watched:
        report = watched.kinds(*((f"gpu-{n}", "unmonitored") for n in range(4)))
        assert all("not watched" in condition.message for condition in report.conditions)


def test_nvml_that_does_not_initialise_is_tried_again() -> None:
    library = NvmlLibrary.load_simulated("t4x4")
    Injector(library).fail("nvmlInit_v2", "DRIVER_NOT_LOADED", last=1)
    with watch(library=library) as watched:
        assert len(watched.until(lambda report: bool(report.present)).present) == 4


def test_a_report_that_nobody_can_take_does_not_end_the_watch() -> None:
    taken: queue.Queue[HealthReport] = queue.Queue()

    def refuse_first(report: HealthReport) -> None:
        taken.put(report)
        if taken.qsize() == 1:
            raise RuntimeError("not now")

    library = NvmlLibrary.load_simulated("t4x4")
    monitor = HealthMonitor(library, refuse_first, wait_seconds=0.1)
    monitor.start()
    try:
        taken.get(timeout=10)
        Injector(library).xid(0, 62, recovery=RESET)
        taken.get(timeout=10)
    finally:
        monitor.stop(timeout=10)


def test_a_long_wait_for_events_does_not_hold_up_the_end() -> None:
    reports: queue.Queue[HealthReport] = queue.Queue()
    monitor = HealthMonitor(NvmlLibrary.load_simulated("t4x4"), reports.put, wait_seconds=600)
    monitor.start()
    reports.get(timeout=10)
    monitor.stop(timeout=60)
    assert not monitor._thread.is_alive()


def test_events_reach_a_running_process_through_the_control_file(tmp_path: Path) -> None:
    control = tmp_path / "control"
    library = NvmlLibrary.load_simulated("t4x4", control_file=control)
    with watch(library=library) as watched:
        watched.kinds()
        with control.open("a") as file:
            file.write("recovery 2 1\nevent 2 8 95\n")
        [condition] = watched.kinds(("gpu-2", "xid")).conditions
        assert condition.xid == 95
        with control.open("a") as file:
            file.write("recovery 2 0\n")
        watched.kinds()


def test_a_gpu_can_be_called_by_its_pci_bus_id() -> None:
    library = NvmlLibrary.load_simulated("t4x4")
    assert library.machine is not None
    assert library.profile is not None
    with watch(library=library) as watched:
        watched.kinds()
        library.machine.control(f"event {library.profile.gpus[3].pci_bus_id} 8 79")
        watched.kinds(("gpu-3", "xid"))
    for wrong in ("0000:ff:1e.0", "0000:00:1e.1", "0000:00:1e.0x", "4", "-1"):
        with pytest.raises(NvmlUnavailableError, match="there is no such GPU"):
            library.machine.control(f"event {wrong} 8 79")


def test_an_xid_in_a_gpu_instance_concerns_the_devices_in_its_place(tmp_path: Path) -> None:
    library = NvmlLibrary.load_simulated("a30x4")
    assert library.profile is not None
    roots = make_node(library.profile, tmp_path)
    found = discover_devices(library, roots, features=Features(dynamic_mig=True))
    place = found.devices[4].place
    assert place is not None
    assert (place.profile, place.start) == ("2g.12gb", 0)
    made = NvmlPartitions(library, roots).create_instance(place)
    with watch(library=library) as watched:
        watched.kinds()
        Injector(library).xid(0, 94, instances=(made.gi_id, made.ci_id or 0), recovery=RESET)
        report = watched.kinds(("gpu-0", "xid"))
    tainted = {d.name for d in apply_health(found, report, DRIVER) if d.taints}
    assert tainted == {
        "gpu-0-mig-1g6gb-14-0",
        "gpu-0-mig-1g6gb-14-1",
        "gpu-0-mig-1g6gb-me-21-0",
        "gpu-0-mig-1g6gb-me-21-1",
        "gpu-0-mig-2g12gb-5-0",
        "gpu-0-mig-2g12gb-me-6-0",
        "gpu-0-mig-4g24gb-0-0",
    }


def test_an_xid_in_a_static_mig_device_concerns_only_that_one(tmp_path: Path) -> None:
    found = inventory("mixed", tmp_path)
    target = found.get("gpu-1-mig-2g10gb-14-0")
    assert target is not None
    assert target.instance is not None
    condition = Condition(
        gpu="gpu-1", kind="xid", since="t", xid=94, gi_id=target.instance.gi_id, slices=(0, 2)
    )
    tainted = apply_health(found, HealthReport(conditions=(condition,)), DRIVER)
    assert [d.name for d in tainted if d.taints] == [target.name]


def test_taints_have_the_keys_and_effects_of_nvidias_driver(tmp_path: Path) -> None:
    since = "2026-11-21T10:00:00Z"
    conditions = (
        Condition(gpu="gpu-0", kind="xid", since=since, xid=79, message="XID 79"),
        Condition(gpu="gpu-0", kind="xid", since="2026-11-21T11:00:00Z", xid=13, fatal=False),
        Condition(gpu="gpu-1", kind="gpu-lost", since=since),
        Condition(gpu="gpu-2", kind="unmonitored", since=since),
    )
    found = apply_health(inventory("t4x4", tmp_path), HealthReport(conditions=conditions), DRIVER)
    assert [device.taints for device in found] == [
        (
            Taint(f"{DRIVER}/xid", "79", "NoSchedule", since),
            Taint(f"{DRIVER}/xid", "13", "None", "2026-11-21T11:00:00Z"),
        ),
        (Taint(f"{DRIVER}/gpu-lost", "", "NoSchedule", since),),
        (Taint(f"{DRIVER}/unmonitored", "", "None", since),),
        (),
    ]
    assert [device.health for device in found] == ["Unhealthy", "Unhealthy", "Unknown", "Healthy"]


def test_a_later_report_takes_taints_away_but_not_those_of_others(tmp_path: Path) -> None:
    found = inventory("t4x4", tmp_path)
    lost = Condition(gpu="gpu-0", kind="gpu-lost", since="t")
    sick = apply_health(found, HealthReport(conditions=(lost,)), DRIVER)
    foreign = Taint("example.com/maintenance", "", "NoExecute")
    both = sick.with_devices(
        tuple(replace(d, taints=(*d.taints, foreign)) if d.name == "gpu-0" else d for d in sick)
    )
    well = apply_health(both, HealthReport(), DRIVER)
    assert well.devices[0].taints == (foreign,)
    assert apply_health(sick, HealthReport(), DRIVER) == found


def test_devices_of_vfio_pci_are_of_unknown_health(tmp_path: Path) -> None:
    found = inventory("mixed", tmp_path, Features(vfio=True))
    healthy = apply_health(found, HealthReport(), DRIVER)
    assert {d.kind: d.health for d in healthy}["vfio"] == "Unknown"
