"""What is given for a whole run, and what follows from it for each scenario before it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from conformance.engine.lost_driver import LostDriver
from conformance.engine.requirements import is_scheduled, reason_to_skip, usable_nodes
from conformance.engine.schedule.pools import NodePool
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from conformance.scenario.documents.yamlfile import Problem
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.driver.variables import Variables, make_suffix, name_namespace
from conformance.scenario.lint.objects import list_rules_for_every_device
from conformance.scenario.loader import LoadedScenario
from conformance.seam.values import SCENARIO_LABEL, WORKER_LABEL, Capabilities
from conformance.targets.opening.target import Opened
from kube.base.errors import UsageError
from kube.base.text import addresses_first
from kube.nodes import RUN_LABEL


@dataclass(frozen=True, slots=True)
class Setup:
    """What is given for a whole run.

    Of a scenario that has not begun it says where it would run and why it may not. A ``pool`` is
    the nodes on which it runs, None all of the target; ``number`` counts its earlier attempts.

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

    def select_capabilities(self, pool: NodePool | None) -> Capabilities:
        """Return what the target is, as if it had no other nodes than those of the pool."""
        return self.opened.capabilities if pool is None else pool.capabilities

    def explain_skip(self, loaded: LoadedScenario, pool: NodePool | None = None) -> str | None:
        """Say why a scenario cannot run on the target, None if it can."""
        opened, spec = self.opened, loaded.scenario.spec
        lack = opened.scheduler.explain_lack(spec.feature) if opened.scheduler else None
        return lack or reason_to_skip(
            spec, self.select_capabilities(pool), opened.profile, opened.other
        )

    def explain_useless(self, loaded: LoadedScenario, pool: NodePool | None = None) -> str | None:
        """Say why it is of no use to run a scenario, though it could run; None if it is."""
        if loaded.scenario.spec.tier == "allocation":
            return None
        nodes = pool.nodes if pool is not None else ()
        loss = self.lost.explain(self.select_capabilities(pool).driver, nodes)
        return None if loss is None else f"not run: {loss}"

    def check_bindings(self, scenarios: Iterable[LoadedScenario]) -> None:
        """Raise UsageError for a scenario that may not run as it is, before anything does.

        Its variables do not resolve; or it would taint every device of somebody's cluster.
        """
        belongs_to_others = self.opened.options.cluster == "kubeconfig"
        for loaded in scenarios:
            if self.explain_skip(loaded) is None:
                scenario = loaded.bind(self.make_variables(loaded))
                for path in list_rules_for_every_device(scenario) if belongs_to_others else ():
                    text = (
                        "makes a DeviceTaintRule for every device, and so for the pods of others;"
                        " name driver, pool or device, or run it on the reference or a cluster of"
                        " your own"
                    )
                    raise UsageError(loaded.document.tell(Problem(path, text)))

    def make_variables(
        self, loaded: LoadedScenario, pool: NodePool | None = None, number: int = 0
    ) -> Variables:
        """Return the values of the variables that a scenario may have."""
        spec, capabilities = loaded.scenario.spec, self.select_capabilities(pool)
        return Variables(
            None if spec.tier == "allocation" else self.opened.profile,
            self._make_suffix(loaded, number),
            self.opened.image,
            usable_nodes(spec, capabilities),
            capabilities.free.last_by_node,
            different_on=capabilities.free.different_by_node,
            other=self.opened.other if spec.requires.other_devices else None,
            hardware=spec.tier == "device",
        )

    def name_namespace(self, loaded: LoadedScenario, number: int = 0) -> str:
        return name_namespace(self._make_suffix(loaded, number))

    def _make_suffix(self, loaded: LoadedScenario, number: int) -> str:
        # Another one for each attempt: the namespace of the one before may still be terminating.
        return make_suffix(self.run, f"{loaded.id}#{number}" if number else loaded.id)

    def make_labels(self, loaded: LoadedScenario) -> dict[str, str]:
        """Return the labels of everything that a scenario makes."""
        labels = {RUN_LABEL: self.run, SCENARIO_LABEL: loaded.scenario.metadata.name[:63]}
        return labels | ({WORKER_LABEL: self.worker} if self.worker else {})

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
        kubernetes=spec.requires.versions,
        provisional=spec.provisional,
        needs=spec.requires.of_the_driver,
        scheduled=is_scheduled(spec),
    )


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
