"""Our driver keeps every rule, also those that are only recommended; and which rules there are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.result import Outcome
from conformance.drivercheck.run import CHECKS, chosen, run
from conformance.errors import UsageError
from tests.drivercheck.own_driver import OwnDriver


@pytest.fixture
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        made = Bench(Path(folder), OwnDriver())
        yield made
        made.close()


def test_our_driver_keeps_every_rule(bench: Bench) -> None:
    result = run(bench, CHECKS)
    bad = {one.name: one.message for one in result.checks if one.outcome is not Outcome.PASSED}
    assert bad == {}
    assert (result.verdict, result.driver, result.devices) == ("conformant", "gpu.nvidia.com", 4)


def test_each_check_has_a_name_of_its_own_and_a_source() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.summary.endswith("."), check
        assert "/" in check.source or "." in check.source, check


def test_checks_are_chosen_by_section_or_wildcard() -> None:
    assert {one.name.partition("/")[0] for one in chosen(["cdi"])} == {"cdi"}
    assert [one.name for one in chosen(["*/empty-call"])] == [
        "prepare/empty-call",
        "unprepare/empty-call",
    ]
    with pytest.raises(UsageError, match=r"no check is named 'cdj'; sections are registration, "):
        chosen(["cdj"])
