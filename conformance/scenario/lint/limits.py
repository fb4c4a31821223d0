"""How much a scenario may do: more would flood a cluster, or not end in any time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conformance.scenario.documents.yamlfile import Problem
from conformance.scenario.expectations.base import Timed
from conformance.scenario.model import Scenario
from conformance.scenario.steps import Step, together

STEPS: Final = 100
OBJECTS: Final = 300
"""That are created by steps; as many as a claim's consumers and what belongs to them."""
EXPECTATIONS: Final = 300
PARALLEL: Final = 32
"""Steps that are carried out at the same time: each has a thread of its own."""
SECONDS: Final = 900.0
"""That pass whatever the target does."""


def check_limits(scenario: Scenario) -> Iterator[Problem]:
    """Problems where a scenario goes over one of them."""
    steps = scenario.spec.steps
    if len(steps) > STEPS:
        yield _most(STEPS, "steps", STEPS, f"{len(steps)}")
    for group in together(steps):
        if len(group) > PARALLEL:
            yield _most(group[PARALLEL], "parallel", PARALLEL, f"{len(group)}")
        elif len(group) == 1 and steps[group[0]].parallel:
            text = "needs a step with parallel: true directly before or after it"
            yield Problem(("spec", "steps", group[0], "parallel"), text)
    totals = {"objects": 0.0, "expectations": 0.0, "seconds": 0.0}
    limits = {"objects": OBJECTS, "expectations": EXPECTATIONS, "seconds": SECONDS}
    told = set()
    for index, step in enumerate(steps):
        totals["objects"] += len(step.apply or ())
        totals["expectations"] += len(step.expect or ())
        totals["seconds"] += _passing(step)
        for what, limit in limits.items():
            if totals[what] > limit and what not in told:
                told.add(what)
                yield _most(index, what, limit, f"{totals[what]:g} up to this step")


def _most(index: int, what: str, limit: float, found: str) -> Problem:
    text = {
        "steps": f"a scenario has at most {limit:g} steps",
        "parallel": f"at most {limit:g} steps are carried out at the same time",
        "objects": f"a scenario makes at most {limit:g} objects",
        "expectations": f"a scenario has at most {limit:g} expectations",
        "seconds": f"wait, consistently and churn take at most {limit:g} s of a scenario",
    }[what]
    return Problem(("spec", "steps", index), f"{text} (found {found}); write several scenarios")


def _passing(step: Step) -> float:
    """Seconds that a step takes at least where all is well."""
    churn = step.churn.time if step.churn is not None else 0.0
    held = (item.consistently or 0.0 for item in step.expect or () if isinstance(item, Timed))
    return (step.wait or 0.0) + churn + sum(held)
