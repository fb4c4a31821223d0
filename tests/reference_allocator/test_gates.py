"""Which feature gates a Kubernetes version takes, and what those that are gone count for."""

from __future__ import annotations

import pytest

from reference_allocator.features import Features
from reference_allocator.gates import (
    MINORS,
    check_gates,
    describe_rules,
    gates_for_version,
    known_to_binaries,
)

BINDING = "DRADeviceBindingConditions"
DRA = "DynamicResourceAllocation"


@pytest.mark.parametrize(
    ("version", "chosen", "complaint"),
    [
        ("1.37", {DRA: True}, ""),
        ("1.38.0-beta.0", {DRA: True}, "no feature gate DynamicResourceAllocation any more"),
        ("1.38", {DRA: False}, "always on; leave it out"),
        ("1.37", {"DRAPartitionableDevices": False}, ""),
        ("1.38", {"DRAPartitionableDevices": False}, "locked to true"),
        ("1.38", {"DRAConsumableCapacity": False, "DRAFractionalCapacityRange": False}, ""),
        ("1.38", {"DRAConsumableCapacity": False}, "DRAFractionalCapacityRange is on and depends"),
        ("1.36", {"SchedulerPreQueueingHints": True}, "1.36 has no DRA feature gate"),
        ("1.38", {"SchedulerPreQueueingHints": False}, ""),
        # A minor has the dependencies of its own gates, and 1.34 none at all.
        ("1.36", {"DRADeviceTaints": False, "DRADeviceTaintRules": True}, "depends on DRADevice"),
        ("1.35", {BINDING: True, "DRAResourceClaimDeviceStatus": False}, "depends on DRAResource"),
        ("1.34", {BINDING: True, "DRAResourceClaimDeviceStatus": False}, ""),
        ("1.39", {}, "known minors: 1.34, 1.35, 1.36, 1.37, 1.38"),
    ],
)
def test_gates_with_which_no_binary_would_start_are_refused(
    version: str, chosen: dict[str, bool], complaint: str
) -> None:
    if complaint:
        with pytest.raises(ValueError, match=complaint):
            check_gates(version, chosen)
    else:
        check_gates(version, chosen)


def test_what_a_gate_guarded_that_is_gone_is_on_and_no_binary_is_told_of_it() -> None:
    gates = gates_for_version("1.38")
    assert {name for name, gate in gates.items() if gate.removed} == {DRA}
    assert gates[DRA].default
    assert gates[DRA].locked
    assert gates.keys() - known_to_binaries("1.38") == {DRA}
    assert all(gates_for_version(minor).keys() == known_to_binaries(minor) for minor in MINORS[:-1])


@pytest.mark.parametrize(
    ("version", "rules"),
    [
        ("1.34.4", ""),
        ("v1.37.1-gke.5", ""),
        ("1.38.0-beta.0", "those of a pre-release of Kubernetes 1.38"),
        ("1.40.2", "those of Kubernetes 1.38, the nearest minor that is known"),
        ("1.33.1", "those of Kubernetes 1.34, the nearest minor that is known"),
        ("", "those of Kubernetes 1.37, the nearest minor that is known"),
    ],
)
def test_it_is_said_where_a_version_is_judged_by_other_rules_than_its_own(
    version: str, rules: str
) -> None:
    assert describe_rules(version).get("rules", "") == rules


def test_what_is_generally_available_in_1_38_is_on_there_by_default() -> None:
    was, now = Features.for_version("1.37").to_dict(), Features.for_version("1.38").to_dict()
    assert {name for name in was if was[name] != now[name]} == {"fractionalCapacityRange"}
