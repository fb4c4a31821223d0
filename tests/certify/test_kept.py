"""The submissions that this repository keeps: each says what its evidence says."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.certify.profiles import load_profiles
from conformance.certify.submission import check_folder, submissions
from conformance.certify.values import Result
from conformance.engine.setup import planned
from tests.certify.submitted import shipped

REPORTS = Path(__file__).parents[2] / "reports"


@pytest.mark.parametrize("folder", list(submissions(REPORTS)), ids=lambda path: path.name)
def test_it_says_what_its_evidence_says(folder: Path) -> None:
    catalogue = [planned(item) for item in shipped()]
    checked = check_folder(folder, load_profiles(), catalogue)
    assert checked.verification.discrepancies == ()
    assert (folder / "evidence.tar.xz").stat().st_size < 1 << 20
    assert sorted(path.name for path in folder.iterdir() if path.name != "attestation.json") == [
        "README.md",
        "evidence.tar.xz",
        "report.yaml",
    ]
    # What is kept here is simulated or made up.
    report = checked.verification.report
    assert report.uncertified
    assert Result.SUCCESS not in {item.result for item in report.profiles}
