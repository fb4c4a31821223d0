"""One attempt at a scenario: where it runs, what its names are, and why it may not begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.engine.requirements import reason_to_skip, usable_nodes
from conformance.engine.schedule.pools import NodePool
from conformance.engine.setup import Setup
from conformance.scenario.documents.yamlfile import Problem
from conformance.scenario.driver.variables import Variables, make_suffix, name_namespace
from conformance.scenario.lint.objects import list_rules_for_every_device
from conformance.scenario.loader import LoadedScenario
from conformance.seam.values import SCENARIO_LABEL, WORKER_LABEL, Capabilities
from kube.base.errors import UsageError
from kube.nodes import RUN_LABEL


@dataclass(frozen=True, slots=True)
class ScenarioAttempt:
    """A scenario of a run, as it is tried once.

    Attributes:
        setup: what is given for the whole run.
        pool: the nodes on which the scenario runs; None is all of the target.
        number: how many attempts there were before this one.
    """

    setup: Setup
    loaded: LoadedScenario
    pool: NodePool | None = None
    number: int = 0

    @property
    def capabilities(self) -> Capabilities:
        """The target's, as if it had no other nodes than those of the pool."""
        return self.setup.opened.capabilities if self.pool is None else self.pool.capabilities

    def make_variables(self) -> Variables:
        """Return the values of the variables that the scenario may have."""
        spec, capabilities, opened = self.loaded.scenario.spec, self.capabilities, self.setup.opened
        return Variables(
            None if spec.tier == "allocation" else opened.profile,
            self._suffix,
            opened.image,
            usable_nodes(spec, capabilities),
            capabilities.free.last_by_node,
            different_on=capabilities.free.different_by_node,
            other=opened.other if spec.requires.other_devices else None,
            hardware=spec.tier == "device",
        )

    def explain_skip(self) -> str | None:
        """Say why the scenario cannot run on the target, None if it can."""
        opened, spec = self.setup.opened, self.loaded.scenario.spec
        lacking = opened.scheduler.explain_lack(spec.feature) if opened.scheduler else None
        return lacking or reason_to_skip(spec, self.capabilities, opened.profile, opened.other)

    def explain_useless(self) -> str | None:
        """Say why it is of no use to run the scenario, though it could run; None if it is."""
        if self.loaded.scenario.spec.tier == "allocation":
            return None
        nodes = self.pool.nodes if self.pool is not None else ()
        loss = self.setup.lost.explain(self.capabilities.driver, nodes)
        return None if loss is None else f"not run: {loss}"

    @property
    def namespace(self) -> str:
        return name_namespace(self._suffix)

    @property
    def _suffix(self) -> str:
        # Another one for each attempt: the namespace of the one before may still be terminating.
        name = f"{self.loaded.id}#{self.number}" if self.number else self.loaded.id
        return make_suffix(self.setup.run, name)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of everything that the scenario makes."""
        labels = {
            RUN_LABEL: self.setup.run,
            SCENARIO_LABEL: self.loaded.scenario.metadata.name[:63],
        }
        return labels | ({WORKER_LABEL: self.setup.worker} if self.setup.worker else {})


def check_bindings(scenarios: Iterable[LoadedScenario], setup: Setup) -> None:
    """Raise UsageError for a scenario that may not run as it is, before anything does.

    Its variables do not resolve; or it would taint every device of somebody's cluster.
    """
    belongs_to_others = setup.opened.options.cluster == "kubeconfig"
    for loaded in scenarios:
        attempt = ScenarioAttempt(setup, loaded)
        if attempt.explain_skip() is None:
            scenario = loaded.bind(attempt.make_variables())
            for path in list_rules_for_every_device(scenario) if belongs_to_others else ():
                text = (
                    "makes a DeviceTaintRule for every device, and so for the pods of others; name"
                    " driver, pool or device, or run it on the reference or a cluster of your own"
                )
                raise UsageError(loaded.document.tell(Problem(path, text)))
