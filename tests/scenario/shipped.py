"""The shipped scenarios for tests: loaded once, and not before a test asks for them."""

from __future__ import annotations

from functools import cache

from conformance.data import scenarios_dir
from conformance.scenario.loader import LoadedScenario, load_scenarios

ROOT = scenarios_dir()


@cache
def on_reference() -> tuple[LoadedScenario, ...]:
    """Those that the reference can run: it has no admission policies."""
    policies = "admissionregistration.k8s.io/v1"
    return tuple(item for item in shipped() if policies not in item.scenario.spec.requires.apis)


@cache
def shipped() -> tuple[LoadedScenario, ...]:
    """All of them, by id."""
    return tuple(load_scenarios())
