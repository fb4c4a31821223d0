"""Kills drivers: ``python -m tests.nvml_driver.prepare.crashing_driver ROOT``.

One process forks a driver for each crash point of a fixed history, and the driver kills itself
there with SIGKILL. Then it starts drivers in the same directory that die at the first, second, ...
point of their recovery, until one survives. What is on disk then is left to be examined, and
``ROOT/<n>/story.json`` says what was acknowledged before the first kill.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nvml_driver.core import DriverCore
from nvml_driver.devices.discovery import discover
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions
from nvml_driver.prepare.timeslicing import TimeSlices
from nvml_driver.storage import faults
from tests.nvml_driver.fake_mig import FileMig, partitionable
from tests.nvml_driver.fake_smi import FileSmi
from tests.nvml_driver.helpers import NOWHERE, gpu_config, make_claim, opaque, result

HISTORY: tuple[tuple[str, str], ...] = (
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


def start(root: Path) -> DriverCore:
    """A driver with its files below ``root``."""
    options = DriverOptions(
        node_name="node-a",
        cdi_root=root / "cdi",
        state_dir=root / "state",
        device_nodes="declare",
        device_metadata=True,
    )
    library = NvmlLibrary.simulated("t4x4")
    found = partitionable(discover(library, NOWHERE, salt="node-a"))
    return DriverCore(
        options,
        library,
        partitions=FileMig(root / "mig"),
        inventory=found,
        time_slices=TimeSlices(smi(root)),
    )


def smi(root: Path) -> FileSmi:
    """What the GPUs of that driver are set to."""
    return FileSmi(root / "time-slices.json")


def act(driver: DriverCore, what: str, uid: str) -> None:
    if what == "prepare":
        driver.prepare(CLAIMS[uid])
    else:
        driver.unprepare(uid)


def _die_at(number: int, points: list[str]) -> None:
    def hook(point: str) -> None:
        points.append(point)
        if len(points) - 1 == number:
            raise_kill(point)

    faults.install(hook)


def raise_kill(point: str) -> None:
    Path(f"died-at-{point.replace(':', '-')}").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def _child(work: Callable[[], None]) -> int:
    """Run in a process of its own; the signal that ended it, 0: none."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001, the parent must hear of it
            Path("failed").write_text(f"{type(error).__name__}: {error}")
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _run(number: int) -> None:
    points: list[str] = []
    done: list[tuple[str, str]] = []
    story = Path("story.json")
    driver = start(Path.cwd())
    _die_at(number, points)
    for step in HISTORY:
        act(driver, *step)
        done.append(step)
        story.write_text(json.dumps({"done": done, "points": points}))


def _recover(number: int) -> None:
    _die_at(number, [])
    start(Path.cwd())


def main() -> int:
    root = Path(sys.argv[1])
    for number in range(10_000):
        here = root / f"{number:03d}"
        here.mkdir()
        os.chdir(here)
        if _child(lambda number=number: _run(number)) != signal.SIGKILL:  # type: ignore[misc]
            return 0
        for again in range(100):
            if _child(lambda again=again: _recover(again)) != signal.SIGKILL:  # type: ignore[misc]
                break
            Path(f"recovery-died-{again}").touch()
    return 1


if __name__ == "__main__":
    sys.exit(main())
