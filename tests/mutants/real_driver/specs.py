"""Defects of the driver's CDI specs, and of what it keeps over a restart."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from nvml_driver.cdi.claim_spec import SpecBuilder
from nvml_driver.core import DriverCore
from nvml_driver.prepare.checkpoint import FILE_NAME
from nvml_driver.prepare.claim_files import ClaimFiles
from tests.mutants.real_driver.replacement import Json, OfTheContract, PutIn, instead


def _ids(change: Callable[[str, str], str]) -> PutIn:
    """Answer with other CDI ids: from an id and the device's name."""

    def prepare(original: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return [
            replace(
                one,
                cdi_device_ids=tuple(change(i, one.device_name) for i in one.cdi_device_ids),
            )
            for one in original(*args, **named)
        ]

    return instead(DriverCore.prepare, prepare)


def _too_old(original: Callable[..., Json], *args: Any) -> Json:
    return {**original(*args), "cdiVersion": "0.3.0"}


def _later(original: Callable[..., None], *args: Any) -> None:
    def write() -> None:
        time.sleep(0.5)
        original(*args)

    threading.Thread(target=write, daemon=True).start()


def _with_scraps(original: Callable[..., None], files: ClaimFiles, record: Any) -> None:
    original(files, record)
    Path(files._options.cdi_root, f"scrap-{record.uid}").touch()


def _not_twice(original: Callable[..., None], files: ClaimFiles, record: Any) -> None:
    written = files._options.state_dir / f"written-{record.uid}"
    if not written.exists():
        original(files, record)
        written.touch()


def _by_name(original: Callable[..., None], files: ClaimFiles, record: Any) -> None:
    original(files, record)
    file = files._spec_path(record.uid)
    file.replace(file.with_name(f"claim-{record.name}.json"))


def _of_nothing(original: Callable[..., Json], *args: Any) -> Json:
    spec = original(*args)
    mount = {"hostPath": "/no/such/library.so", "containerPath": "/usr/lib/library.so"}
    edits = spec.get("containerEdits", {})
    return {**spec, "containerEdits": {**edits, "mounts": [*edits.get("mounts", ()), mount]}}


def _with_a_file_of_its_own(original: Callable[..., None], files: ClaimFiles, record: Any) -> None:
    original(files, record)
    (files._options.state_dir / f"shares-of-{record.uid}").touch()


def _kept_open(original: Callable[..., None], files: ClaimFiles, record: Any) -> None:
    original(files, record)
    os.open(files._options.state_dir, os.O_RDONLY)


def _starts_without_specs(original: Callable[..., None], *args: Any, **named: Any) -> None:
    original(*args, **named)
    for file in Path(args[1].cdi_root).glob("*.json"):
        file.unlink()


def _unreadable(
    original: Callable[..., None], core: DriverCore, options: Any, *a: Any, **n: Any
) -> None:
    (Path(options.state_dir) / FILE_NAME).unlink(missing_ok=True)
    for file in Path(options.cdi_root).glob("*.json"):
        file.rename(file.with_name(f"kept-{file.name}"))
    original(core, options, *a, **n)


OF_THE_CONTRACT: OfTheContract = {
    "cdi-ids-without-class": (
        "CDI ids are no qualified names",
        _ids(lambda name, _: name.replace("/", "-")),
        "cdi/ids-are-qualified-names",
    ),
    "cdi-ids-used-again": (
        "a device has the same CDI id in every claim",
        _ids(lambda name, device: f"{name.partition('=')[0]}={device}"),
        "cdi/ids-are-not-used-again",
    ),
    "cdi-ids-of-nothing": (
        "no spec defines the CDI ids",
        _ids(lambda name, _: f"{name}-nothing"),
        "cdi/ids-resolve",
    ),
    "cdi-version-too-old": (
        "specs use what their version does not have",
        instead(SpecBuilder.build, _too_old),
        "cdi/specs-are-valid",
    ),
    "cdi-specs-come-later": (
        "the spec is written half a second after the answer",
        instead(ClaimFiles.write, _later),
        "cdi/ids-resolve",
    ),
    "cdi-scraps": (
        "other files are left in the CDI folder",
        instead(ClaimFiles.write, _with_scraps),
        "cdi/no-scraps",
    ),
    "cdi-specs-written-once": (
        "a spec that was lost is not written again",
        instead(ClaimFiles.write, _not_twice),
        "cdi/lost-spec-is-written-again",
    ),
    "starts-without-specs": (
        "a driver that starts removes the specs of prepared claims",
        instead(DriverCore.__init__, _starts_without_specs),
        "restart/cdi-devices-outlive-a-kill",
    ),
    "forgets-and-leaves-specs": (
        "a driver that starts knows nothing of specs and claims of the one before",
        instead(DriverCore.__init__, _unreadable),
        "restart/cdi-devices-go-with-another-process",
    ),
    "specs-by-claim-name": (
        "the spec of a claim replaces that of a claim of its name in another namespace",
        instead(ClaimFiles.write, _by_name),
        "unprepare/namespace-tells-claims-apart",
    ),
    "mounts-what-is-not-there": (
        "specs mount a file that the node does not have",
        instead(SpecBuilder.build, _of_nothing),
        "cdi/paths-are-on-the-node",
    ),
    "leaves-files-of-claims": (
        "a file is written for each claim, and never removed",
        instead(ClaimFiles.write, _with_a_file_of_its_own),
        "unprepare/no-file-of-the-claim-is-left",
    ),
    "keeps-files-open": (
        "each prepare leaves a file open",
        instead(ClaimFiles.write, _kept_open),
        "unprepare/nothing-stays-open",
    ),
    "one-cdi-id-for-all": (
        "all devices of a claim have the same CDI id",
        _ids(lambda name, _: f"{name.partition('=')[0]}=all"),
        "cdi/devices-have-ids-of-their-own",
    ),
}
