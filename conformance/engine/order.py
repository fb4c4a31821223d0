"""The order in which scenarios of a cluster begin: the longest first, so that none is left over.

How long one takes is the cluster's to say. Known before are the times for which it must stay still,
and that a container takes a second or so to start and to end, where a kubelet runs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.scenario.expectations.base import Timed
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Spec

KUBELET_SECONDS = 1.5
"""What a kubelet takes to start or to end the containers of a pod."""


def longest_first(scenarios: Sequence[LoadedScenario]) -> list[LoadedScenario]:
    """Scenarios in the order in which they should begin; as given where they are alike.

    Those that bear no others beside them come before all, or they would wait for all.
    """

    def key(loaded: LoadedScenario) -> tuple[bool, float]:
        spec = loaded.scenario.spec
        return not spec.requires.exclusive, -least_seconds(spec)

    return sorted(scenarios, key=key)


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
