"""Does a scenario declare the devices that it needs, so that it is skipped where there are none?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.scenario.model import Scenario
from conformance.scenario.yamlfile import Problem


def check_needs(scenario: Scenario) -> Iterator[Problem]:
    """Problems of ``requires.devices``, measured by what the steps apply."""
    spec = scenario.spec
    if spec.tier != "allocation" and not spec.requires.devices:
        used = next(_uses_driver(scenario), None)
        if used is not None:
            yield Problem(
                ("spec", "requires", "devices"),
                f"the scenario uses devices of the driver ({used}), but requires none; say how many"
                " it needs: requires: {devices: N}",
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
