"""Each defect of our driver is caught by the rule that it breaks, by name."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest

from conformance.drivercheck import driver
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.checks import health, slices
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.result import Outcome
from conformance.drivercheck.run import CHECKS, choose_checks, run
from kube.values import Obj
from tests.drivercheck.own_driver import OwnDriver
from tests.mutants.real_driver.faults import FAULTS
from tests.scenario.sampling import SAMPLE, sample

CAUGHT = {name: fault.breaks for name, fault in FAULTS.items() if fault.breaks}
ALSO = [("publishes-what-is-refused", "slices/refused-slices-are-not-given-up")]
"""Caught by a second rule, too."""

SOME = sample(list(CAUGHT), 26, "defects of the driver")
"""Those of today in `make test`; the others in `make everything`."""

ONLY_IN_CONTAINERS = {
    "device-files-cannot-be-opened",
    "devices-of-other-requests",
    "ignores-class-configuration",
    "no-device-files",
}


def test_there_are_forty_and_those_that_are_not_caught_are_known() -> None:
    assert len(CAUGHT) >= 40
    assert set(CAUGHT.values()) <= {check.name for check in CHECKS}
    assert FAULTS.keys() - CAUGHT.keys() == {"none", *ONLY_IN_CONTAINERS}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What will not come is not waited for as long as a stranger's driver may need."""
    monkeypatch.setattr(driver, "REGISTER_SECONDS", 2.5)
    monkeypatch.setattr(driver, "START_SECONDS", 2.5)
    monkeypatch.setattr(driver, "STOP_SECONDS", 2.0)
    monkeypatch.setattr(slices, "_BACK_SECONDS", 3.0)
    monkeypatch.setattr(health, "_FIRST_SECONDS", 2.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        *(pytest.param(*one, marks=pytest.mark.everything) for one in ALSO),
        *(
            pytest.param(*one, marks=() if one[0] in SOME else pytest.mark.everything)
            for one in CAUGHT.items()
        ),
    ],
)
def test_it_is_caught(fault: str, rule: str) -> None:
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), OwnDriver(fault)))
        try:
            result = run(bench, choose_checks([rule]))
        finally:
            bench.driver.close()
    assert [one.outcome for one in result.checks] == [Outcome.FAILED], (SAMPLE, result.checks)


def test_a_slice_may_come_back_later_than_other_checks_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Upstream's helper takes a minute where its slice is deleted as soon as it is made."""
    monkeypatch.setattr(driver, "CHECK_SECONDS", 1.0)
    monkeypatch.setattr(slices, "_BACK_SECONDS", 20.0)
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), OwnDriver("publishes-once")))
        objects, delete = bench.api.objects, bench.api.objects.delete

        def delete_for_a_while(slice_: Obj) -> None:
            delete(slice_)
            again = {**slice_, "metadata": {"generateName": "again-"}}
            threading.Timer(2.0, objects.create, [again]).start()

        monkeypatch.setattr(objects, "delete", delete_for_a_while)
        try:
            result = run(bench, choose_checks(["slices/deleted-slice-comes-back"]))
        finally:
            bench.driver.close()
    assert [one.outcome for one in result.checks] == [Outcome.PASSED], result.checks
