"""Does a scenario declare what it needs, so that it is skipped where that is missing?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.scenario.expectations import (
    CdiExpectation,
    DevicesExpectation,
    EnvironmentExpectation,
    PodExpectation,
)
from conformance.scenario.lint.claims import Problem
from conformance.scenario.model import Scenario
from conformance.scenario.near import hint
from conformance.scenario.yamlfile import PathTuple


def check_needs(scenario: Scenario) -> Iterator[Problem]:
    """Problems of ``tier`` and ``requires``, measured by what the steps do."""
    spec = scenario.spec
    if spec.tier != "allocation" and not spec.requires.devices:
        used = next(_uses_driver(scenario), None)
        if used is not None:
            yield Problem(
                ("spec", "requires", "devices"),
                f"the scenario uses devices of the driver ({used}), but requires none; say how many"
                " it needs: requires: {devices: N}",
            )
    for index, step in enumerate(spec.steps):
        place: PathTuple = ("spec", "steps", index)
        if step.fault is not None:
            ability = f"fault:{step.fault.component}"
            yield from _ability(ability, spec.requires.abilities, (*place, "fault"))
        for position, wanted in enumerate(step.expect or ()):
            where = (*place, "expect", position)
            if isinstance(wanted, CdiExpectation):
                yield from _ability("cdi", spec.requires.abilities, (*where, "cdi"))
            if isinstance(wanted, EnvironmentExpectation):
                config = wanted.environment.config
                if config not in spec.requires.config:
                    yield Problem(
                        (*where, "environment", "config"),
                        f"not every driver profile has the configuration {config!r}; add requires:"
                        f" {{config: [{config}]}} (spec.requires.config:"
                        f" {hint(config, spec.requires.config)})",
                    )
            if spec.tier == "allocation":
                yield from _needs_kubelet(wanted, where)


def _ability(name: str, declared: tuple[str, ...], path: PathTuple) -> Iterator[Problem]:
    if name not in declared:
        yield Problem(
            path,
            f"not every target can do this; add requires: {{abilities: ['{name}']}}"
            f" (spec.requires.abilities: {hint(name, declared)})",
        )


def _needs_kubelet(wanted: object, path: PathTuple) -> Iterator[Problem]:
    """In the allocation tier pods are bound to hollow nodes, and never run."""
    key = None
    if isinstance(wanted, PodExpectation) and wanted.phase not in {None, "Pending"}:
        key = "phase"
    elif isinstance(wanted, DevicesExpectation):
        key = "devices"
    elif isinstance(wanted, EnvironmentExpectation):
        key = "environment"
    elif isinstance(wanted, CdiExpectation):
        key = "cdi"
    if key is not None:
        yield Problem(
            (*path, key),
            "no pod runs in the allocation tier; use tier: node, or expect where it is scheduled",
        )


def _uses_driver(scenario: Scenario) -> Iterator[str]:
    """What shows that devices of the driver are used, for the message."""
    for step in scenario.spec.steps:
        for manifest in step.apply or ():
            yield from _classes(manifest)


def _classes(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _classes(item)
        if value.get("resourceClaims") and isinstance(value.get("containers"), list):
            yield "resourceClaims of a pod"
    elif isinstance(value, list):
        for item in value:
            yield from _classes(item)
    elif isinstance(value, str) and "${class." in value:
        yield value
