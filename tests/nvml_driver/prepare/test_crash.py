"""The driver is killed (SIGKILL) at every point where it changes something, and started again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvml_driver import claim_invariants
from tests.nvml_driver.prepare import crashing_driver
from tests.nvml_driver.prepare.crashing_driver import CLAIMS, HISTORY

REPOSITORY = Path(__file__).resolve().parents[3]
WRITE_BOUNDARIES = ("begin", "written", "replaced", "synced")
"""Of a file that is replaced: before anything, scratch file complete, renamed, directory synced."""
WRITTEN = ("checkpoint", "cdi-spec", "metadata", "nvidia-smi")
POINTS = (
    *(f"{file}:{at}" for file in WRITTEN for at in WRITE_BOUNDARIES),
    *(f"{file}:{at}" for file in ("cdi-spec", "metadata") for at in ("removing", "removed")),
    *(f"mig-{what}:{at}" for what in ("create", "destroy") for at in ("begin", "done")),
    *(f"time-slice{what}:{at}" for what in ("", "-reset") for at in ("begin", "done")),
)
"""All points that are named where the driver says that it reached them (``faults.reach``)."""

MEMORY = Path("/dev/shm")
"""A file system where fsync costs nothing: killing a process loses nothing of what it wrote."""


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="crashes-", dir=place) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def crashes(root: Path) -> dict[str, list[Path]]:
    """Fault point to the directories of the drivers that were killed there."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.nvml_driver.prepare.crashing_driver", str(root)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    *killed, whole = sorted(root.iterdir())
    story = json.loads((whole / "story.json").read_text())
    assert [tuple(step) for step in story["done"]] == list(HISTORY)
    assert len(killed) == len(story["points"])
    found: dict[str, list[Path]] = {}
    for folder, point in zip(killed, story["points"], strict=True):
        assert (folder / f"died-at-{point.replace(':', '-')}").exists()
        found.setdefault(point, []).append(folder)
    return found


@pytest.mark.parametrize("point", POINTS)
def test_a_driver_killed_anywhere_starts_again_as_if_it_had_not_been(
    point: str, crashes: dict[str, list[Path]]
) -> None:
    assert crashes.get(point), f"the history does not reach {point}"
    for folder in crashes[point]:
        assert not (folder / "failed").exists(), (folder / "failed").read_text()
        story = folder / "story.json"
        done = (
            [tuple(step) for step in json.loads(story.read_text())["done"]]
            if (story.exists())
            else []
        )
        in_flight = HISTORY[len(done)][1]
        driver = crashing_driver.start(folder)
        smi = crashing_driver.smi(folder)
        claim_invariants.check(driver, smi=smi)
        expected = {uid for what, uid in done if what == "prepare"}
        expected -= {uid for what, uid in done if what == "unprepare"}
        assert set(driver.prepared()) - {in_flight} == expected - {in_flight}

        for step in HISTORY[len(done) :]:  # as the kubelet does: what was not answered, again
            crashing_driver.act(driver, *step)
            claim_invariants.check(driver, smi=smi)
        assert set(driver.prepared()) == {"c", "full"}
        assert list(smi.set_now().values()) == [1]
        for uid in driver.prepared():
            devices = driver.prepare(CLAIMS[uid])
            assert driver.prepared()[uid] == tuple(devices)


def test_recovery_itself_was_killed_too(crashes: dict[str, list[Path]]) -> None:
    killed = [
        path for folders in crashes.values() for f in folders for path in f.glob("recovery-*")
    ]
    assert len(killed) >= len(WRITE_BOUNDARIES) * 2
