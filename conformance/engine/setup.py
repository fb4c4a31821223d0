"""What all scenarios of a run have in common, and the names of each in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from conformance.engine.requirements import reason_to_skip, usable_nodes
from conformance.engine.schedule.pools import NodePool
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.driver.variables import Variables, make_suffix, name_namespace
from conformance.scenario.lint.manifest_claims import pod_specs
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.steps import Step
from conformance.seam.values import SCENARIO_LABEL, WORKER_LABEL, Capabilities
from conformance.targets.opening.target import Opened
from kube.base.text import addresses_first
from kube.nodes import RUN_LABEL


@dataclass(frozen=True, slots=True)
class Setup:
    """What all scenarios of a run have in common.

    Attributes:
        run: the run's id, a valid label value.
        compare: compares a scenario that ended with the reference; None without ``--compare``.
        stop: set when the run must end.
        worker: the process of a run with several; "" where it is the only one.
        retries: how often a failed scenario is retried.
        attempt: which of these attempts this is; 0 is the first.
        time_factor: by what time limits are multiplied.
        pool: the nodes on which a scenario runs; None is all of the target.
        lost: node -> id of the scenario after which the driver publishes nothing for it any more.
    """

    run: str
    opened: Opened
    compare: Callable[[ScenarioFinished], ScenarioCompared] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    worker: str = ""
    retries: int = 0
    attempt: int = 0
    time_factor: float = 1.0
    pool: NodePool | None = None
    lost: dict[str, str] = field(default_factory=dict)

    @property
    def capabilities(self) -> Capabilities:
        return self.opened.capabilities if self.pool is None else self.pool.capabilities

    def variables(self, loaded: LoadedScenario) -> Variables:
        spec, has = loaded.scenario.spec, self.capabilities
        tier = spec.tier
        return Variables(
            None if tier == "allocation" else self.opened.profile,
            self._suffix(loaded),
            self.opened.image,
            usable_nodes(spec, has),
            has.one_device_on,
            different_on=has.different_on,
            other=self.opened.other if spec.requires.other_devices else None,
            hardware=tier == "device",
        )

    def reason_to_skip(self, loaded: LoadedScenario) -> str | None:
        """Why the scenario cannot run on the target, None if it can."""
        opened = self.opened
        spec = loaded.scenario.spec
        lacking = opened.scheduler.explain_lack(spec.feature) if opened.scheduler else None
        return lacking or reason_to_skip(spec, self.capabilities, opened.profile, opened.other)

    def reason_to_end(self, loaded: LoadedScenario) -> str | None:
        """Why it is of no use to run a scenario that could run; None if it is."""
        nodes = self.pool.nodes if self.pool is not None else ()
        lost = {node: by for node, by in self.lost.items() if not nodes or node in nodes}
        if not lost or loaded.scenario.spec.tier == "allocation":
            return None
        told = ", ".join(f"{node} since {by}" for node, by in sorted(lost.items()))
        return f"not run: driver {self.capabilities.driver} is lost: no ResourceSlices for {told}"

    def profiles(self, scenarios: Iterable[LoadedScenario]) -> list[DriverProfile]:
        """Profiles of the drivers whose devices the scenarios use."""
        needs = [item.scenario.spec for item in scenarios]
        uses = any(spec.tier != "allocation" for spec in needs)
        both = any(spec.requires.other_devices for spec in needs)
        opened = self.opened
        found = (opened.profile if uses else None, opened.other if both else None)
        return [profile for profile in found if profile is not None]

    def namespace(self, loaded: LoadedScenario) -> str:
        return name_namespace(self._suffix(loaded))

    def _suffix(self, loaded: LoadedScenario) -> str:
        # Another one for each attempt: the namespace of the one before may still be terminating.
        return make_suffix(self.run, f"{loaded.id}#{self.attempt}" if self.attempt else loaded.id)

    def labels(self, loaded: LoadedScenario) -> dict[str, str]:
        """Labels of everything that a scenario makes."""
        labels = {RUN_LABEL: self.run, SCENARIO_LABEL: loaded.scenario.metadata.name[:63]}
        return labels | ({WORKER_LABEL: self.worker} if self.worker else {})


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


def check_bindings(scenarios: list[LoadedScenario], setup: Setup) -> None:
    """Raise UsageError for a scenario whose variables do not resolve, before anything runs."""
    for loaded in scenarios:
        if setup.reason_to_skip(loaded) is None:
            loaded.bind(setup.variables(loaded))
