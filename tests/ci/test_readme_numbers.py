"""README.md states the numbers that are kept; `make everything` asks whether they are true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci import readme_numbers as numbers

KEPT = numbers.read_numbers()


def test_readme_states_the_kept_numbers_at_each_place() -> None:
    page = numbers.README.read_text(encoding="utf-8")
    assert numbers.state(page, KEPT) == page, f"run: {numbers.AGAIN}"
    others = {
        "reference": {"passed": 11, "skipped": 22},
        "features": {name: {"failed": 33} for name in KEPT["features"]},
        "submission": {"passed": 44},
    }
    shown = "conformant; 44 passed"
    changed = [line for line in numbers.state(page, others).splitlines() if line not in page]
    assert [line.split("regressions")[0] for line in changed] == [
        "[32/33] passed     0.01 s  ",
        "[33/33] passed     0.01 s  ",
        "feature OptionalNodeOperations: 33 failed",
        "feature PartitionableDevices: 33 failed",
        "feature ResourceClaim: 33 failed",
        "feature Upgrades: 33 failed",
        f"0 of {len(KEPT['features'])} features passed in full",
        "11 passed, 22 skipped in 2.78 s",
        f"![The report page: {shown}; what was judged of allocations](docs/report.png)",
    ]


def test_the_kept_numbers_are_of_the_kept_submission() -> None:
    assert KEPT["submission"] == numbers.measure_submission()["submission"]


def test_another_number_is_told_and_how_to_measure_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "summary.json"
    run = {"scenarios": KEPT["reference"], "features": KEPT["features"]}
    file.write_text(json.dumps(run))
    assert numbers.main(["--check", str(file)]) == 0
    file.write_text(json.dumps(run | {"scenarios": {"passed": 1}}))
    assert numbers.main(["--check", str(file)]) == 1
    assert f"is of another state; run: {numbers.AGAIN}" in capsys.readouterr().err
    assert numbers.main(["--check", str(tmp_path / "none")]) == 2
    assert "No such file or directory; run:" in capsys.readouterr().err
