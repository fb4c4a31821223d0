"""The order in which scenarios of a cluster begin: the longest first, so that none is left over.

How long one takes is the cluster's to say. Known before are the times for which it must stay still,
and that a container takes a second or so to start and to end, where a kubelet runs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.engine.disruption import disturbed, last_disturbance, only_updates
from conformance.scenario.expectations.base import Timed
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Spec
from conformance.targets.seam.components import OF_A_NODE

KUBELET_SECONDS = 1.5
"""What a kubelet takes to start or to end the containers of a pod."""


def longest_first(scenarios: Sequence[LoadedScenario]) -> list[LoadedScenario]:
    """Scenarios in the order in which they should begin; as given where they are alike.

    Those that bear no others beside them come before all, or they would wait for all: first who
    disturbs everybody, then who disturbs nodes, and of those whose end may take longest, for
    then others may begin (neighbours.py).
    """

    def key(loaded: LoadedScenario) -> tuple[int, float, bool, bool, float]:
        spec = loaded.scenario.spec
        roles = disturbed(spec)
        rank = 2 if not roles else 1 if roles <= OF_A_NODE else 0
        alone = spec.requires.exclusive
        return rank, -longest_end(spec), not only_updates(spec), not alone, -least_seconds(spec)

    return sorted(scenarios, key=key)


def longest_end(spec: Spec) -> float:
    """How long a scenario says that it may take after it has disturbed something, in seconds."""
    last = last_disturbance(spec)
    end = spec.steps[last + 1 :] if last is not None else ()
    checks = [item for step in end for item in step.expect or () if isinstance(item, Timed)]
    return sum(item.consistently or item.eventually or 0 for item in checks)


def least_seconds(spec: Spec) -> float:
    """How long a scenario takes at least, in seconds."""
    seconds = 0.0
    for step in spec.steps:
        seconds += (step.wait or 0) + (step.churn.time if step.churn else 0)
        for expectation in step.expect or ():
            if isinstance(expectation, Timed):
                seconds += expectation.consistently or 0
                seconds += spec.timeouts.consistently if expectation.must_stay else 0
        if spec.tier != "allocation" and (step.expect or step.churn):
            seconds += KUBELET_SECONDS
        for manifest in step.apply or () if spec.tier != "allocation" else ():
            if manifest.get("kind") == "Job":
                job = manifest["spec"]
                seconds += KUBELET_SECONDS * job.get("completions", 1) / job.get("parallelism", 1)
    return seconds
