"""What is recorded of schedulers says why what failed did."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from ci.schedulers import page

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(file.stem for file in page.RECORDS.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_a_record_has_its_command_and_every_failure_a_cause(name: str) -> None:
    assert os.access(ROOT / "ci/schedulers" / name, os.X_OK)
    record = json.loads((page.RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    assert record["version"] == page.version_of(ROOT / "ci/schedulers/modules" / name) or (
        not (ROOT / "ci/schedulers/modules" / name).exists()
    )
    explained = yaml.safe_load(page.EXPLAINED.read_text(encoding="utf-8")).get(name) or {}
    told = {scenario for one in explained.values() for scenario in one["scenarios"]}
    bad = {one for one, it in record["core"]["bad"].items() if it["outcome"] != "known"}
    assert bad == told
