"""Our driver keeps every rule, also those that are only recommended; and which rules there are."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.checks import restart
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.objects import NODE
from conformance.drivercheck.rbac.policy import read_policy
from conformance.drivercheck.result import DriverCheckResult, Outcome
from conformance.drivercheck.run import CHECKS, choose_checks, run
from kube.base.errors import UsageError
from tests.drivercheck.own_driver import OwnDriver


def checked(driver: OwnDriver, **more: Any) -> DriverCheckResult:
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), driver, **more))
        try:
            return run(bench, CHECKS)
        finally:
            bench.driver.close()


def not_passed(result: DriverCheckResult) -> dict[str, Outcome]:
    return {one.name: one.outcome for one in result.checks if one.outcome is not Outcome.PASSED}


ROLES = Path(__file__).resolve().parents[2] / "ci" / "deploy" / "base" / "rbac.yaml"
NOT_ASKED = {
    *(check.name for check in CHECKS if check.name.startswith("upgrade/")),
    "rbac/roles-allow-what-is-asked",
}
"""Without the next version and roles."""


@pytest.fixture(autouse=True)
def _kills_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kills are in test_kills."""
    monkeypatch.setattr(restart, "_KILL_SECONDS", 1.0)


def test_our_driver_keeps_every_rule() -> None:
    policy = read_policy(ROLES, "", NODE)
    result = checked(OwnDriver(), policy=policy, next_starter=OwnDriver())
    bad = [(one.name, one.message) for one in result.checks if one.outcome is not Outcome.PASSED]
    assert bad == []
    assert result.unused_rights == (
        "ClusterRole nvml-dra-driver: resourceslices.resource.k8s.io: delete",
    )
    assert (result.verdict, result.driver, result.devices) == ("conformant", "gpu.nvidia.com", 4)


@pytest.mark.everything
@pytest.mark.parametrize(
    ("driver", "not_offered"),
    [
        (
            OwnDriver("none", "--simulate", "t4x4", "--consumable-shares", "memory"),
            {
                "refuse/device-in-use",
                "prepare/claim-allocated-anew",
                "concurrent/prepare-that-comes-late",
                "restart/device-in-use-is-remembered",
            },
        ),
        (
            OwnDriver("none", "--simulate", "t4x1"),
            {
                "prepare/requests-are-named",
                "prepare/devices-are-told-apart",
                "prepare/several-devices-of-a-request",
                "prepare/several-claims-in-a-call",
                "prepare/prepared-and-new-together",
                "prepare/claim-allocated-anew",
                "unprepare/claim-allocated-anew-gets-its-new-device",
                "unprepare/namespace-tells-claims-apart",
                "unprepare/other-claims-stay-prepared",
                "cdi/other-claims-keep-theirs",
                "cdi/devices-have-ids-of-their-own",
                "concurrent/prepare-beside-unprepare",
                "concurrent/slow-claim-holds-up-no-other",
            },
        ),
        (
            OwnDriver("names-no-devices"),
            {
                "prepare/devices-are-those-allocated",
                "prepare/requests-are-named",
                "prepare/devices-are-told-apart",
                "prepare/subrequests-name-their-request",
                *(check.name for check in CHECKS if check.name.startswith("cdi/")),
                "restart/cdi-devices-outlive-a-kill",
                "restart/cdi-devices-stay-at-the-end",
                "restart/cdi-devices-go-with-another-process",
            },
        ),
    ],
    ids=["shareable devices", "one device", "names no devices"],
)
def test_a_driver_of_another_shape_is_conformant(driver: OwnDriver, not_offered: set[str]) -> None:
    result = checked(driver)
    wanted = dict.fromkeys(not_offered | NOT_ASKED, Outcome.NOT_OFFERED)
    assert not_passed(result) == wanted, result.checks
    assert result.verdict == "conformant"


def test_each_check_has_a_name_of_its_own_and_a_source() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.summary.endswith("."), check
        assert "/" in check.source or "." in check.source, check


def test_checks_are_chosen_by_section_or_wildcard() -> None:
    assert {one.name.partition("/")[0] for one in choose_checks(["cdi"])} == {"cdi"}
    assert [one.name for one in choose_checks(["*/empty-call"])] == [
        "prepare/empty-call",
        "unprepare/empty-call",
    ]
    with pytest.raises(UsageError, match=r"no check is named 'cdj'; sections are registration, "):
        choose_checks(["cdj"])
