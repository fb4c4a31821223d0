"""What one version of a driver prepared, the next must know, and the other way round."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.result import Outcome
from conformance.drivercheck.run import choose_checks, run
from tests.drivercheck.own_driver import OwnDriver

KNOWS = "upgrade/next-version-knows-prepared-claims"
UNDOES = "upgrade/next-version-unprepares"
LEFT = "upgrade/cdi-devices-go-with-the-next-version"
BACK = "upgrade/this-version-takes-back"


def slow(*case: Any) -> Any:
    return pytest.param(*case, marks=pytest.mark.everything)


@pytest.mark.parametrize(
    ("following", "options", "broken", "message"),
    [
        slow("none", ("--simulate", "t4x1"), set(), ""),
        slow("reads-no-older-checkpoint", (), {KNOWS, UNDOES, LEFT, BACK}, "is of version 2"),
        ("loses-checkpoint", (), {KNOWS, BACK}, "expected specs in .* to define each CDI id"),
        slow("never-unprepares", (), {UNDOES, LEFT}, "expected (no spec|claim) "),
        ("drops-boot-id", (), {BACK}, "the driver has ended: .*bootID"),
    ],
)
def test_a_version_that_does_not_take_over_is_found(
    following: str, options: tuple[str, ...], broken: set[str], message: str
) -> None:
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        starters = OwnDriver("none", *options), OwnDriver(following, *options)
        bench = Bench(DriverUnderCheck(Path(folder), starters[0], next_starter=starters[1]))
        try:
            result = run(bench, choose_checks(["upgrade"]))
        finally:
            bench.driver.close()
    failed = {one.name for one in result.checks if one.outcome is Outcome.FAILED}
    passed = {one.name for one in result.checks if one.outcome is Outcome.PASSED}
    assert (failed, passed) == (broken, {KNOWS, UNDOES, LEFT, BACK} - broken), result.checks
    for one in result.checks:
        assert one.name in passed or re.search(message, one.message), one
