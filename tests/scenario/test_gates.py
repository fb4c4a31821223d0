"""A feature gate that is off is a reason to skip, never to fail; one that is on is tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from packaging.specifiers import SpecifierSet

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.registry import load_registry
from conformance.seam.abilities import Ability
from conformance.targets.opening.inventory import choose_other_source
from conformance.targets.opening.options import OTHER_PROFILE, TargetOptions
from conformance.targets.opening.target import Opened
from conformance.targets.reference import ReferenceOptions, ReferenceTarget
from reference_allocator.gates import MINORS, gates_for_version
from tests.scenario.kill_matrix import driver_profile
from tests.scenario.sampling import SAMPLE, sample
from tests.scenario.shipped import on_reference, shipped

STABLE = "DynamicResourceAllocation"
OWN = "nvml-dra-driver"


def finished(
    minor: str, scenarios: Sequence[LoadedScenario], *, on: bool
) -> dict[str, ScenarioFinished]:
    """Scenarios on a reference of that minor with all gates on or off that may be."""
    with open_reference(minor, on=on) as (_, opened):
        result = run_suite(scenarios, Setup("gates", opened), ())
    return {item.scenario.id: item for item in result.finished}


@contextmanager
def open_reference(minor: str, *, on: bool) -> Iterator[tuple[ReferenceTarget, Opened]]:
    """A reference of that minor with all gates on or off that may be."""
    gates = {
        name: gate.default if gate.locked else on
        for name, gate in gates_for_version(minor).items()
        if name != STABLE
    }
    profile, other = (driver_profile(name) for name in (OWN, OTHER_PROFILE))
    options = ReferenceOptions(
        kubernetes_version=f"{minor}.0",
        feature_gates=gates,
        other=choose_other_source(TargetOptions(), other, None),
    )
    with ReferenceTarget(options) as target:
        yield target, Opened.of(target, profile, "image", other=other)


LACKING = {Ability.ANOTHER_SCHEDULER, Ability.PARTITIONS, Ability.SHARED_DEVICES}


def by_itself() -> list[LoadedScenario]:
    """Those that the reference can run with one scheduler and whole GPUs."""
    return [
        one for one in on_reference() if LACKING.isdisjoint(one.scenario.spec.requires.abilities)
    ]


ALL = 10_000
NO_MORE_SERVED = {"1.38": {"resource.k8s.io/v1beta1"}}
"""Versions of the API that a minor took away."""
GATED = {"scheduling.k8s.io/v1beta1"}
"""Versions of the API of which nothing is served without a gate."""
EVERY_MINOR = [pytest.param(minor, ALL, marks=pytest.mark.everything) for minor in MINORS]


@pytest.mark.parametrize(("minor", "among"), [(MINORS[0], 100), (MINORS[-1], 100), *EVERY_MINOR])
def test_without_any_gate_nothing_fails(minor: str, among: int) -> None:
    found = finished(minor, sample(by_itself(), among, f"off {minor}"), on=False)
    fine = {Outcome.PASSED, Outcome.SKIPPED}
    assert {name: item.message for name, item in found.items() if item.outcome not in fine} == {}, (
        SAMPLE
    )
    skipped = {item.message for item in found.values() if item.outcome is Outcome.SKIPPED}
    gone = {f"API {api} is not served" for api in NO_MORE_SERVED.get(minor, set()) | GATED}
    assert [why for why in skipped - gone if "gate" not in why and "Kubernetes" not in why] == []


@pytest.mark.parametrize(("minor", "among"), [(MINORS[0], 100), (MINORS[-1], 100), *EVERY_MINOR])
def test_with_every_gate_all_runs_that_the_minor_has(minor: str, among: int) -> None:
    met = sample(by_itself(), among, f"on {minor}")
    found = finished(minor, met, on=True)
    newer = {
        loaded.id
        for loaded in met
        if not SpecifierSet(loaded.scenario.spec.requires.versions).contains(f"{minor}.0")
        or loaded.scenario.spec.requires.feature_gates_off
        or not NO_MORE_SERVED.get(minor, set()).isdisjoint(loaded.scenario.spec.requires.apis)
    }
    assert {name for name, item in found.items() if item.outcome is not Outcome.PASSED} == newer, (
        SAMPLE
    )


def test_a_scenario_asks_for_the_gate_of_its_feature_on_or_off() -> None:
    features = load_registry().features
    gates = {item.id: features[item.scenario.spec.feature].gate for item in shipped()}
    required = {item.id: item.scenario.spec.requires for item in shipped()}
    needs = {
        name: {*item.feature_gates, *item.feature_gates_off, STABLE}
        for name, item in required.items()
    }
    assert [name for name, gate in gates.items() if gate not in needs[name]] == []
