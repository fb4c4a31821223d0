"""The driver is killed at every point where it changes something, and started again.

What SIGKILL leaves of a process is what is on disk at that moment. So one driver goes through the
history and its folder is copied at each point: each copy is a driver that was killed there. Its
recovery is killed in the same way, at its first, second, ... point, until one comes to its end.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nvml_driver.core import DriverCore
from nvml_driver.devices.discovery import discover_devices
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.prepare.timeslicing import TimeSlices
from nvml_driver.storage import faults
from tests.nvml_driver import claim_invariants
from tests.nvml_driver.fake_mig import FileMig, partitionable
from tests.nvml_driver.fake_smi import FileSmi
from tests.nvml_driver.helpers import NOWHERE, gpu_config, make_claim, opaque, options_below, result
from tests.scenario.sampling import SAMPLE, sample

BOUNDARIES = ("begin", "written", "replaced", "synced")
"""Of a file that is replaced: before anything, scratch file complete, renamed, directory synced."""
WRITTEN = ("checkpoint", "cdi-spec", "metadata", "nvidia-smi")
POINTS = {
    *(f"{file}:{at}" for file in WRITTEN for at in BOUNDARIES),
    *(f"{file}:{at}" for file in ("cdi-spec", "metadata") for at in ("removing", "removed")),
    *(f"mig-{what}:{at}" for what in ("create", "destroy") for at in ("begin", "done")),
    *(f"time-slice{what}:{at}" for what in ("", "-reset") for at in ("begin", "done")),
}
"""All points that are named where the driver says that it reached them (``faults.reach``)."""
HISTORY = (
    ("prepare", "a"),
    ("prepare", "mig"),
    ("prepare", "b"),
    ("unprepare", "a"),
    ("prepare", "c"),
    ("unprepare", "mig"),
    ("prepare", "full"),
    ("unprepare", "b"),
)
CLAIMS: dict[str, dict[str, Any]] = {
    "a": make_claim(result("gpu-1"), result("gpu-2", "more"), uid="a"),
    "b": make_claim(result("gpu-3"), uid="b", config=[opaque(gpu_config("Long"))]),
    "c": make_claim(result("gpu-1"), uid="c", config=[opaque(gpu_config("Short"))]),
    "mig": make_claim(
        result("gpu-0-mig-1g5gb-19-0"), result("gpu-0-mig-1g5gb-19-1", "two"), uid="mig"
    ),
    "full": make_claim(result("gpu-0"), uid="full"),
}
MEMORY = Path("/dev/shm")
"""A file system where fsync costs nothing: killing a process loses nothing of what it wrote."""


@dataclass
class Killed:
    """A copy of a driver's folder; ``done``: the steps of the history that were acknowledged."""

    point: str
    done: int
    folder: Path


@pytest.fixture
def here() -> Iterator[Path]:
    """Where each driver lives: its files name its folder, so that a copy is moved back to it."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="crashes-", dir=place) as folder:
        yield Path(folder) / "node"


def start(here: Path) -> DriverCore:
    options = options_below(here, durable=True, device_metadata=True)
    library = NvmlLibrary.load_simulated("t4x4")
    return DriverCore(
        options,
        library,
        partitions=FileMig(here / "mig"),
        inventory=partitionable(discover_devices(library, NOWHERE, salt="node-a")),
        time_slices=TimeSlices(smi(here)),
    )


def smi(here: Path) -> FileSmi:
    return FileSmi(here / "time-slices.json")


def act(driver: DriverCore, what: str, uid: str) -> None:
    if what == "prepare":
        driver.prepare(CLAIMS[uid])
    else:
        driver.unprepare(uid)


def copied(here: Path, copy: Path) -> None:
    """Copy all but the simulated sysfs, which every start writes anew."""
    shutil.copytree(here, copy, symlinks=True, ignore=shutil.ignore_patterns("sys"))


@contextmanager
def at_each_point(hook: Callable[[str], None]) -> Iterator[None]:
    faults.install_hook(hook)
    try:
        yield
    finally:
        faults.install_hook(None)


def content(here: Path) -> frozenset[tuple[Path, bytes]]:
    files = (path for path in here.rglob("*") if path.is_file() and "sys" not in path.parts)
    return frozenset((path, path.read_bytes()) for path in files)


def crashes(here: Path) -> list[Killed]:
    """One for each state of the disk at the points that the history reaches."""
    found: list[Killed] = []
    seen: set[object] = set()
    reached: set[str] = set()

    def kill(point: str) -> None:
        reached.add(point)
        if (state := (done, content(here))) in seen:
            return  # as at the point before
        seen.add(state)
        copy = here.with_name(f"{len(found):03d}")
        copied(here, copy)
        found.append(Killed(point, done, copy))

    here.mkdir()
    driver, done = start(here), 0
    with at_each_point(kill):
        for step in HISTORY:
            act(driver, *step)
            done += 1
    assert reached == POINTS
    shutil.rmtree(here)
    return found


def recover(here: Path) -> int:
    """Recover, and kill that at its first, second, ... point; how often there was such a point."""
    for number in range(100):
        copy = here.with_name("recovering")
        reached = 0

        def kill(_: str, number: int = number, copy: Path = copy) -> None:
            nonlocal reached
            if reached == number:
                copied(here, copy)
            reached += 1

        with at_each_point(kill):
            start(here)
        if not copy.exists():
            return number
        shutil.rmtree(here)
        copy.rename(here)
    raise AssertionError("a recovery that never ends")


@pytest.mark.parametrize("among", [25, pytest.param(10_000, marks=pytest.mark.everything)])
def test_a_driver_killed_anywhere_starts_again_as_if_it_had_not_been(
    here: Path, subtests: pytest.Subtests, among: int
) -> None:
    killed = sample(crashes(here), among, "crashes")
    recoveries = 0
    for crash in killed:
        crash.folder.rename(here)
        with subtests.test(SAMPLE, point=crash.point, done=crash.done):
            recoveries += recover(here)
            check(here, crash.done)
        shutil.rmtree(here)
    assert recoveries > len(killed)


def check(here: Path, done: int) -> None:
    in_flight = HISTORY[done][1]
    driver = start(here)
    claim_invariants.check(driver, smi=smi(here))
    expected = {uid for what, uid in HISTORY[:done] if what == "prepare"}
    expected -= {uid for what, uid in HISTORY[:done] if what == "unprepare"}
    assert set(driver.list_prepared()) - {in_flight} == expected - {in_flight}

    for step in HISTORY[done:]:  # as the kubelet does: what was not answered, again
        act(driver, *step)
        claim_invariants.check(driver, smi=smi(here))
    assert set(driver.list_prepared()) == {"c", "full"}
    assert list(smi(here).set_now().values()) == [1]
    for uid in driver.list_prepared():
        devices = driver.prepare(CLAIMS[uid])
        assert driver.list_prepared()[uid] == tuple(devices)
