"""A driver may know by the kernel's boot id that what it prepared is gone: it is shown another."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.process import BOOT_ID, CommandStarter
from conformance.drivercheck.result import CheckResult, Outcome
from conformance.drivercheck.run import choose_checks, run
from tests.drivercheck.own_driver import OwnDriver


class OfAnotherUser(OwnDriver):
    """Nobody can show it another boot id."""

    def with_boot_id(self, boot_id: Path) -> None:  # type: ignore[override]
        return None


def lost_spec(driver: OwnDriver) -> CheckResult:
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), driver))
        try:
            (result,) = run(bench, choose_checks(["cdi/lost-spec-is-written-again"])).checks
        finally:
            bench.driver.close()
    return result


def test_where_no_other_boot_id_can_be_shown_a_lost_spec_is_no_failure() -> None:
    found = lost_spec(OfAnotherUser("cdi-specs-written-once"))
    assert found.outcome is Outcome.SKIPPED
    assert "boot id" in found.message
    assert lost_spec(OfAnotherUser()).outcome is Outcome.PASSED


@pytest.mark.needs_root
def test_the_driver_alone_sees_another_boot_id(tmp_path: Path) -> None:
    other, log = tmp_path / "boot_id", tmp_path / "log"
    other.write_text("00000000-0000-4000-8000-000000000000\n")
    starter = CommandStarter(["cat", BOOT_ID]).with_boot_id(other)
    assert starter is not None
    assert starter({}, log).wait(10)
    assert log.read_text() == other.read_text() != Path(BOOT_ID).read_text()


def test_it_takes_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert CommandStarter(["cat", BOOT_ID]).with_boot_id(tmp_path) is None
