"""Disturb components of the target, and leave none stopped."""

from __future__ import annotations

from conformance.engine.awaiting import Divergence
from conformance.engine.context import Context
from conformance.scenario.model import Fault
from conformance.targets.components import in_start_order


def disturb(fault: Fault, context: Context) -> None:
    """Carry out a step ``fault``, and note what it has stopped.

    Raises:
        Divergence: the pod on whose node it shall be is on none.
        TargetError: the target cannot do it, or what was started did not get ready.
    """
    node = fault.node
    if fault.node_of is not None:
        node = context.node_of(fault.node_of)
        if node is None:
            raise Divergence(f"pod {fault.node_of} on a node, to {fault.describe()}", "it is not")
    component = f"{node}/{fault.component}" if node else fault.component
    if fault.action != "start":
        context.stopped.append(component)  # also by a restart that breaks off
    context.scope.fault(component, fault.action)


def restore(context: Context) -> None:
    """Start all that the scenario has stopped, each driver alone; what runs so is left alone.

    Raises:
        TargetError: something did not get ready.
    """
    for component in in_start_order(context.stopped):
        context.scope.fault(component, "start")
    context.stopped.clear()
