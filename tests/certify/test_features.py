"""What a report says of each feature, and what a driver's claims change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.certify.model import ConformanceReport, FeatureResult, Support
from conformance.certify.profiles import load_profiles
from conformance.certify.values import Result
from conformance.digest import document_digest
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from conformance.scenario.driver.profile import ProfileSpec
from tests.certify.test_conformance_report import REAL, built, recorded
from tests.compare.cluster import allocation, claim, decision
from tests.report.builders import finished, planned

EXTENDED = load_profiles().select(["dra-extended"])


def taints(number: int, **changes: Any) -> PlannedScenario:
    return replace(
        planned(f"extended/taints/{number}"), level="extended", feature="DeviceTaints", **changes
    )


def of(
    folder: Path,
    ended: dict[PlannedScenario, Outcome],
    claims: tuple[str, ...] = (),
    catalogue: list[PlannedScenario] | None = None,
) -> ConformanceReport:
    events = [
        replace(
            finished(item.id, outcome, "" if outcome is Outcome.PASSED else "why"), scenario=item
        )
        for item, outcome in ended.items()
    ]
    profile = {"metadata": {"name": "own"}, "spec": {"claims": list(claims)}}
    start = {**REAL, "driver_profile": profile, "driver_profile_digest": document_digest(profile)}
    result = recorded(folder, list(ended), events, start=start)
    return built(result, EXTENDED, catalogue)


def feature(report: ConformanceReport, name: str = "DeviceTaints") -> FeatureResult:
    [found] = [item for item in report.features if item.name == name]
    return found


A, B = taints(1), taints(2)
CORE = replace(planned("core/x"), feature="DeviceTaints")
PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED


@pytest.mark.parametrize(
    ("ended", "claimed", "support"),
    [
        ({A: PASSED, B: PASSED}, False, Support.SUPPORTED),
        ({A: PASSED, B: SKIPPED}, False, Support.SUPPORTED),
        ({A: PASSED, B: SKIPPED}, True, Support.FAILED),
        ({A: SKIPPED, B: SKIPPED}, False, Support.UNSUPPORTED),
        ({A: SKIPPED, B: SKIPPED}, True, Support.FAILED),
        ({A: PASSED, B: FAILED}, False, Support.FAILED),
        ({A: PASSED, B: Outcome.ERROR}, True, Support.NOT_TESTED),
        ({A: PASSED, B: Outcome.LOST}, False, Support.NOT_TESTED),
        ({A: PASSED, CORE: SKIPPED}, False, Support.NOT_TESTED),
    ],
)
def test_a_feature_is_supported_by_what_passed(
    tmp_path: Path, ended: dict[PlannedScenario, Outcome], claimed: bool, support: Support
) -> None:
    found = feature(of(tmp_path, ended, ("DeviceTaints",) if claimed else ()))
    assert (found.support, found.claimed, found.stage) == (support, claimed, "GA")
    assert found.kep.endswith("/5055")


def test_what_was_not_selected_is_not_tested(tmp_path: Path) -> None:
    found = feature(of(tmp_path, {A: PASSED}, (), [A, B]))
    assert (found.support, found.not_tested) == (Support.NOT_TESTED, (B.id,))


def test_a_claim_that_was_skipped_fails_the_profile_that_allows_skips(tmp_path: Path) -> None:
    report = of(tmp_path, {A: PASSED, B: SKIPPED}, ("DeviceTaints",))
    assert (report.profiles[0].result, report.profiles[0].unproven) == (Result.FAILURE, (B.id,))
    report = of(tmp_path, {A: PASSED, B: SKIPPED})
    assert (report.profiles[0].unproven, report.profiles[0].failed) == ((), ())


def test_a_provisional_scenario_counts_for_nothing(tmp_path: Path) -> None:
    tried = taints(3, provisional=True)
    report = of(tmp_path, {A: PASSED, tried: FAILED}, ("DeviceTaints",))
    assert feature(report).support is Support.SUPPORTED
    assert feature(report).failed == report.profiles[0].failed == ()


def test_a_profile_claims_only_features_that_there_are() -> None:
    spec = {"driver": "d.example.com", "classes": {}}
    with pytest.raises(ValueError, match=r"unknown feature DeviceTaint; did you mean DeviceTaints"):
        ProfileSpec.model_validate({**spec, "claims": ["DeviceTaint"]})


def test_the_inventory_counts_devices_and_names_no_node(tmp_path: Path) -> None:
    event: ScenarioFinished = replace(
        finished("core/a"), decisions=(decision([claim()], [allocation("gpu-0")]),)
    )
    snapshot = event.decisions[0]["snapshot"]
    start = {**REAL, "driver": snapshot["slices"][0]["spec"]["driver"]}
    report = built(recorded(tmp_path, [event.scenario], [event], start=start))
    devices = sum(len(item["spec"]["devices"]) for item in snapshot["slices"])
    assert report.inventory is not None
    assert sum(item.count for item in report.inventory.devices) == devices > 0
    for node in snapshot["nodes"]:
        assert node["metadata"]["name"] not in report.to_yaml()
