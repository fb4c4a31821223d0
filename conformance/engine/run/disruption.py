"""Disrupts components of the target and restores them; starts and removes another driver."""

from __future__ import annotations

from conformance.clusters.base import OTHER_DRIVER, REMOVE
from conformance.engine.run.awaiting import Divergence
from conformance.engine.run.context import Context
from conformance.engine.run.lost import publishing
from conformance.scenario.steps import Fault
from conformance.targets.seam.components import (
    OF_A_NODE,
    in_start_order,
    role_of,
)
from conformance.targets.seam.values import Capabilities


def disturb(fault: Fault, context: Context) -> None:
    """Carry out a step ``fault``, and note what it has stopped.

    Raises:
        Divergence: the pod of ``nodeOf`` is on no node.
        TargetError: the target cannot do it, or what was started did not get ready.
    """
    node = fault.node
    if fault.node_of is not None:
        node = context.node_of(fault.node_of)
        if node is None:
            raise Divergence(f"pod {fault.node_of} on a node, to {fault.describe()}", "it is not")
    if node is None and role_of(fault.component) in OF_A_NODE:
        node = context.node
    component = f"{node}/{fault.component}" if node else fault.component
    if context.progress.published is None:
        context.progress.published = frozenset(publishing(context))
    if fault.action != "start":
        context.progress.stopped.append(component)  # also by a restart that breaks off
    context.scope.faults.disturb(component, fault.action)


def start_other_driver(context: Context, capabilities: Capabilities) -> None:
    """Start the other driver on targets where the suite starts it; raises TargetError."""
    if f"fault:{OTHER_DRIVER}" in capabilities.abilities:
        context.progress.other_driver = True  # also one that did not get ready
        context.scope.faults.disturb(_other(context), "start")


def remove_other_driver(context: Context) -> None:
    """Remove it and what it has published; raises TargetError if something stays."""
    if context.progress.other_driver:
        context.progress.other_driver = False
        context.scope.faults.disturb(_other(context), REMOVE)


def _other(context: Context) -> str:
    return OTHER_DRIVER if context.node is None else f"{context.node}/{OTHER_DRIVER}"


def restore(context: Context) -> None:
    """Start what the scenario has stopped, and end second instances of a driver.

    Raises:
        TargetError: something did not get ready.
    """
    for component in in_start_order(context.progress.stopped):
        context.scope.faults.disturb(component, "start")
    context.progress.stopped.clear()
