"""Every pair of features has an answer, and features are seen where they are used."""

from __future__ import annotations

import pytest

from conformance.scenario.loader import LoadedScenario
from tests.pairs.page import PAIRS, read_reasons, scenarios_of_pairs
from tests.pairs.uses import meetings
from tests.scenario.shipped import shipped


def scenario(name: str) -> LoadedScenario:
    return next(item for item in shipped() if item.id.endswith(f"/{name}"))


def test_every_pair_has_scenarios_or_a_reason_and_not_both() -> None:
    found, reasons = scenarios_of_pairs(shipped()), read_reasons()
    assert set(reasons) <= set(PAIRS)
    assert [pair for pair in PAIRS if (pair in found) == (pair in reasons)] == []


@pytest.mark.parametrize(
    ("name", "together"),
    [
        ("two-devices-in-a-container", {"CELSelectors", "ExtendedResource"}),
        ("alternatives-of-two-drivers", {"PrioritizedList", "SeveralDrivers"}),
        ("takes-no-capacity", {"AdminAccess", "ConsumableCapacity"}),
        ("tolerates-no-taint", {"DeviceTaintRules", "DeviceTaints", "ExtendedResource"}),
        ("claims-of-two-drivers", {"SeveralDrivers"}),
        ("report-goes-with-the-allocation", {"DeviceStatus"}),
        ("pod-status-shows-health", {"DeviceHealth", "CELSelectors"}),
        ("class-config-reaches-container", {"OpaqueConfiguration"}),
        ("pod-resources-lists-claims", {"PodResources"}),
    ],
)
def test_features_are_seen_in_what_a_scenario_does(name: str, together: set[str]) -> None:
    assert together in meetings(scenario(name))


def test_features_of_two_pods_do_not_meet() -> None:
    """One pod has a claim for all devices, another one asks for two requests."""
    assert not any(
        {"AdminAccess", "MultipleRequests"} <= found
        for found in meetings(scenario("shares-device-in-use"))
    )


def test_what_is_refused_does_not_meet() -> None:
    assert not any(
        "AdminAccess" in found for found in meetings(scenario("limits-satisfied-by-dra"))
    )
    assert not meetings(scenario("refused-without-namespace-label"))
