"""What is written about the driver's defects: all were met, and each was noticed somewhere."""

from __future__ import annotations

from tests.mutants.real_driver.faults import FAULTS
from tests.mutants.real_driver.measure import ANYBODYS, COMMAND, MET, read_noticed

NOTICED = read_noticed()
STALE = f"run: {COMMAND}"


def test_every_defect_was_met() -> None:
    assert NOTICED.keys() == MET.keys(), STALE


def test_every_defect_was_noticed_and_the_driver_without_one_was_not() -> None:
    assert {name for name, found in NOTICED.items() if not any(found.values())} == {"none"}


def test_what_anybodys_cluster_does_not_show_is_explained() -> None:
    unseen = {name for name, found in NOTICED.items() if not found[ANYBODYS]} - {"none"}
    assert unseen == {name for name, fault in FAULTS.items() if fault.hidden}
