"""The shipped scenarios for tests: loaded once, and not before a test asks for them."""

from __future__ import annotations

from functools import cache

from conformance.data import scenarios_dir
from conformance.scenario.loader import LoadedScenario, load_scenarios
from conformance.seam.abilities import Ability

ROOT = scenarios_dir()


@cache
def on_reference() -> tuple[LoadedScenario, ...]:
    """Those that the reference can run: it has no admission policies, and is of one version."""
    lacking = {"admissionregistration.k8s.io/v1", Ability.FEATURE_GATES, Ability.UPGRADE}

    def can(item: LoadedScenario) -> bool:
        needs = item.scenario.spec.requires
        return lacking.isdisjoint({*needs.apis, *needs.abilities})

    return tuple(filter(can, shipped()))


@cache
def shipped() -> tuple[LoadedScenario, ...]:
    """All of them, by id."""
    return tuple(load_scenarios())
