"""Defects of what the driver remembers across restarts, and of the next version of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nvml_driver.prepare import checkpoint
from nvml_driver.prepare.checkpoint import Checkpoint
from nvml_driver.running import RunningDriver
from nvml_driver.storage.files import write_atomic
from tests.mutants.real_driver.replacement import OfTheContract, PutIn, both, instead


def _in_place(_original: Any, path: Path, content: bytes, **_: Any) -> None:
    path.write_bytes(content)


def _without_boot_id(
    original: Callable[..., None], path: Path, content: bytes, **named: Any
) -> None:
    """Knows no bootID: drops it, and makes the checksum of what is left."""
    document = json.loads(content)
    del document["data"]["bootID"]
    document["checksum"] = checkpoint._checksum(document["data"])
    original(path, json.dumps(document).encode(), **named)


def _reads_without_boot_id(
    original: Callable[..., Any], self: Checkpoint, content: bytes
) -> tuple[Mapping[str, Any], str]:
    """Reads what it wrote itself, and what its predecessor wrote."""
    document = json.loads(content)
    document["data"].setdefault("bootID", "")
    document["checksum"] = checkpoint._checksum(document["data"])
    records, _ = original(self, json.dumps(document).encode())
    return records, ""


def _of_version_3() -> None:
    vars(checkpoint).update(VERSION=3)


NEXT_VERSIONS: Mapping[str, PutIn] = {
    "drops-boot-id": both(
        instead(write_atomic, _without_boot_id, at=checkpoint),
        instead(Checkpoint._read, _reads_without_boot_id),
    ),
    "reads-no-older-checkpoint": _of_version_3,
}
"""Right on their own, and not beside the driver as it is."""


def _takes_specs_away(original: Callable[[RunningDriver], None], running: RunningDriver) -> None:
    original(running)
    for path in Path(running.core.options.cdi_root).glob("*.json"):
        path.unlink()


OF_THE_CONTRACT: OfTheContract = {
    "takes-specs-away-at-its-end": (
        "a driver that ends removes the CDI specs of claims that are prepared",
        instead(RunningDriver.stop, _takes_specs_away),
        "restart/cdi-devices-stay-at-the-end",
    ),
    "writes-checkpoint-in-place": (
        "the checkpoint is emptied before it is written: a kill in between loses it for good",
        instead(write_atomic, _in_place, at=checkpoint),
        "restart/killed-while-unpreparing",
    ),
}
