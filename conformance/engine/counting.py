"""Read metrics before a step of which a later expectation says how much they have grown since."""

from __future__ import annotations

from typing import Final

from conformance.engine.awaiting import Divergence
from conformance.engine.context import Context
from conformance.errors import TargetError
from conformance.scenario.metrics import MetricOf

_SECONDS: Final = 30.0
"""A component that was restarted tells its metrics again by then."""


def count(step: str, context: Context) -> None:
    """Note what is asked for, before a step makes its first request.

    Raises:
        Divergence: the pod whose kubelet is asked is on no node.
        TargetError: a component does not tell.
    """
    for later in context.scenario.spec.steps:
        for expectation in later.expect or ():
            wanted = expectation.counted
            if wanted is not None and wanted.grown_since == step:
                context.counted[step, wanted.told()] = _read(wanted, context)


def _read(wanted: MetricOf, context: Context) -> tuple[str | None, float]:
    node = wanted.node
    if wanted.node_of is not None:
        node = context.node_of(wanted.node_of)
        if node is None:
            expected = f"pod {wanted.node_of} on a node, to read {wanted.told()}"
            raise Divergence(expected, f"it is not when step {wanted.grown_since} begins")
    found = context.wait(lambda: context.read(wanted, node), context.limit(_SECONDS))
    if found is None:
        raise TargetError(f"{wanted.component} did not tell {wanted.name} for {_SECONDS:g} s")
    return node, found
