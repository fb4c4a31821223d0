"""What the scheduler says of a pod that it cannot place.

Source: FitError.Error in pkg/scheduler/framework/types.go, and the default preemption plugin,
whose opinion is appended: it looks at every pod that did not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from conformance.targets.reference.scheduling.nodefit import Misfit

NO_NODES = "no nodes available to schedule pods"


def prefilter(nodes: int, reason: str) -> str:
    """No node was looked at, for a reason that concerns the pod itself."""
    return f"0/{nodes} nodes are available: {reason}. {_preemption({}, nodes)}"


def unfit(nodes: Mapping[str, Sequence[Misfit]]) -> str:
    """Each node was looked at: node -> why it does not suit."""
    reasons = [misfit.reason for misfits in nodes.values() for misfit in misfits]
    return (
        f"0/{len(nodes)} nodes are available: {_histogram(reasons)}. "
        f"{_preemption(nodes, len(nodes))}"
    )


def _preemption(nodes: Mapping[str, Sequence[Misfit]], total: int) -> str:
    helpful = sum(1 for misfits in nodes.values() if misfits and all(m.resolvable for m in misfits))
    reasons = ["No preemption victims found for incoming pod"] * helpful
    reasons += ["Preemption is not helpful for scheduling"] * (total - helpful)
    return f"preemption: 0/{total} nodes are available: {_histogram(reasons)}."


def _histogram(reasons: Sequence[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))
