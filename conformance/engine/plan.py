"""What a run would do, without doing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.engine.setup import Setup, check_bindings
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Spec


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do with one scenario.

    Attributes:
        skipped: why it would be skipped, "" if it would run.
        objects: kind -> number; controllers may add pods and claims.
        disturbed: what it does to components and devices, in words.
    """

    id: str
    skipped: str
    objects: Counter[str]
    disturbed: tuple[str, ...]


def plan(scenarios: Sequence[LoadedScenario], setup: Setup) -> tuple[Plan, ...]:
    """What a run would do with each scenario; raises UsageError as a run does."""
    check_bindings(list(scenarios), setup)
    plans = []
    for loaded in scenarios:
        spec = loaded.scenario.spec
        skipped = setup.reason_to_skip(loaded) or ""
        done = (step.fault or step.stimulate for step in spec.steps)
        faults = (item.describe() for item in done if item is not None)
        made = Counter[str]() if skipped else _made(spec)
        plans.append(Plan(loaded.id, skipped, made, () if skipped else tuple(faults)))
    return tuple(plans)


def _made(spec: Spec) -> Counter[str]:
    kinds = Counter(["Namespace"] + ["Node"] * len(spec.nodes))
    for step in spec.steps:
        kinds.update(str(manifest.get("kind")) for manifest in step.apply or ())
        if step.churn is not None:  # at once at most, in each of its namespaces
            places = max(1, len(step.churn.namespaces))
            for kind in (str(manifest.get("kind")) for manifest in step.churn.objects):
                each = step.churn.copies if kind in {"Pod", "ResourceClaim"} else 1
                kinds[kind] += each * (1 if kind == "ResourceSlice" else places)
    return kinds
