"""The shipped scenarios for tests: loaded once, and not before a test asks for them."""

from __future__ import annotations

from functools import cache

from conformance.data import scenarios_dir
from conformance.scenario.loader import LoadedScenario, default_paths, load_scenarios
from conformance.scenario.registry import load_registry

ROOT = scenarios_dir()


@cache
def shipped() -> tuple[LoadedScenario, ...]:
    """All of them, by id."""
    return tuple(load_scenarios(default_paths(ROOT), ROOT, load_registry(ROOT / "features.yaml")))
