"""What is recorded of third-party drivers is explained, and a driver that changed is noticed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.drivers import page
from ci.drivers.record import RECORDS, differences, of_check, pinned

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(file.stem for file in RECORDS.glob("*.json"))


def record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_of_the_pinned_version_and_every_failure_has_a_cause(name: str) -> None:
    script = ROOT / "ci/drivers" / name
    said = dict(
        line.split("=", 1)
        for line in script.read_text().splitlines()
        if line[:1].isupper() and "=" in line
    )
    found = record(name)
    assert pinned(name, said["PACKAGE"]) == {key: found[key] for key in ("module", "version")}
    assert found["profile"] == said["PROFILE"]
    assert (ROOT / f"scenarios/drivers/{said['PROFILE']}.yaml").exists()
    assert os.access(script, os.X_OK)
    bad = {one for part in found.values() if isinstance(part, dict) for one in part.get("bad", ())}
    explained = yaml.safe_load(page.EXPLAINED.read_text(encoding="utf-8"))
    harmless = {one for one, it in found["check"]["bad"].items() if it["outcome"] == "skipped"}
    assert bad - harmless - set(explained.get(name) or {}) == set()


def test_a_verdict_or_an_outcome_that_changed_is_a_difference() -> None:
    old = record("dra-example-driver")
    new = json.loads(json.dumps(old))
    assert differences(old, new, ("check",)) == []
    new["check"]["bad"].pop("refuse/device-in-use")
    new["check"]["bad"]["cdi/ids-resolve"] = {"outcome": "failed", "message": "none resolves"}
    new["check"]["verdict"] = "conformant"
    assert differences(old, new, ("check",)) == [
        "check: recorded not conformant; now conformant",
        "check: cdi/ids-resolve: recorded good; now failed none resolves",
        "check: refuse/device-in-use: recorded failed; now good",
    ]
    core = {"bad": {}, "skipped": {"why": ["core/a"]}}
    assert differences({"core": core}, {"core": {"bad": {}, "skipped": {}}}, ("core",)) == [
        "core: core/a: not skipped any more"
    ]
    assert differences({}, new, ("check",)) == [
        "check: nothing is recorded; run it without --as-recorded"
    ]


def test_a_recommended_check_that_failed_is_advice() -> None:
    check = {"name": "a/b", "outcome": "failed", "message": "m", "level": "recommended"}
    made = {"driver": "d", "devices": 1, "startedAt": "2026-11-25T00:00", "verdict": "conformant"}
    assert of_check({**made, "checks": [check]})["check"]["bad"] == {
        "a/b": {"outcome": "advised", "message": "m"}
    }


def test_the_shell_files_are_shell() -> None:
    shell = shutil.which("sh")
    assert shell is not None
    for file in (
        *(ROOT / "ci/drivers").glob("*.sh"),
        *(ROOT / "ci/drivers" / name for name in NAMES),
    ):
        subprocess.run((shell, "-n", file), check=True)
