"""What all scenarios of a run have in common, and what is known of each before it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from conformance.engine.lost_driver import LostDriver
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.lint.manifest_claims import pod_specs
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.steps import Step
from conformance.targets.opening.target import Opened
from kube.base.text import addresses_first


@dataclass(frozen=True, slots=True)
class Setup:
    """What all scenarios of a run have in common.

    Attributes:
        run: the run's id, a valid label value.
        compare: compares a scenario that ended with the reference; None without ``--compare``.
        stop: set when the run must end.
        worker: the process of a run with several; "" where it is the only one.
        retries: how often a failed scenario is retried.
        time_factor: by what time limits are multiplied.
        lost: the nodes for which the driver publishes nothing any more. Beside ``stop`` the only
            part that changes while the run goes on: what a scenario has to tell all later ones.
    """

    run: str
    opened: Opened
    compare: Callable[[ScenarioFinished], ScenarioCompared] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    worker: str = ""
    retries: int = 0
    time_factor: float = 1.0
    lost: LostDriver = field(default_factory=LostDriver)

    def profiles(self, scenarios: Iterable[LoadedScenario]) -> list[DriverProfile]:
        """Profiles of the drivers whose devices the scenarios use."""
        needs = [item.scenario.spec for item in scenarios]
        uses = any(spec.tier != "allocation" for spec in needs)
        both = any(spec.requires.other_devices for spec in needs)
        opened = self.opened
        found = (opened.profile if uses else None, opened.other if both else None)
        return [profile for profile in found if profile is not None]


def planned(loaded: LoadedScenario) -> PlannedScenario:
    spec = loaded.scenario.spec
    return PlannedScenario(
        id=loaded.id,
        name=loaded.scenario.metadata.name,
        summary=spec.summary,
        level=spec.level,
        feature=spec.feature,
        tier=spec.tier,
        references=addresses_first(spec.references),
        file=str(loaded.document.file),
        line=1,
        digest=loaded.digest,
        kubernetes=spec.requires.kubernetes,
        provisional=spec.provisional,
        needs=spec.requires.of_the_driver,
        scheduled=any(map(_has_pods, spec.steps)),
    )


def _has_pods(step: Step) -> bool:
    """Whether a step makes pods that a scheduler must find a node for."""
    specs = (spec for obj in step.apply or () for _, spec in pod_specs(obj))
    return step.churn is not None or any("nodeName" not in spec for spec in specs)


def without_steps(loaded: LoadedScenario, outcome: Outcome, message: str) -> ScenarioFinished:
    """The end of a scenario of which nothing was run, or that could not report its own."""
    return ScenarioFinished(
        scenario=planned(loaded),
        outcome=outcome,
        message=message,
        where=loaded.locate(()),
        cleanup=Outcome.SKIPPED,
        left=(),
        seconds=0.0,
        steps=(),
    )
