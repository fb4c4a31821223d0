"""Which scenarios may run beside one another."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.scenario.loader import LoadedScenario


def fits_beside(loaded: LoadedScenario, running: Sequence[LoadedScenario], devices: int) -> bool:
    """Whether a scenario may run beside others, given how many devices there are in all.

    A scenario that disturbs components runs alone.
    """
    if not running:
        return True
    if any(_disturbs(item) for item in [loaded, *running]):
        return False
    sharing = [item.scenario.spec for item in running if item.scenario.spec.tier != "allocation"]
    spec = loaded.scenario.spec
    if spec.tier == "allocation" or not sharing:
        return True
    if spec.requires.exclusive or any(other.requires.exclusive for other in sharing):
        return False
    return spec.requires.devices + sum(other.requires.devices for other in sharing) <= devices


def _disturbs(loaded: LoadedScenario) -> bool:
    return any(step.fault is not None for step in loaded.scenario.spec.steps)
