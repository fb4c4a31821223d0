"""Disturb components of the target, and leave none stopped; start another driver, and end it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from conformance.clusters.base import OTHER_DRIVER, REMOVE
from conformance.engine.awaiting import Divergence
from conformance.engine.context import Context
from conformance.scenario.model import Spec
from conformance.scenario.steps import Fault, Step
from conformance.targets.seam.components import (
    OF_A_NODE,
    in_start_order,
    role_of,
)
from conformance.targets.seam.values import Capabilities

_UPDATES: Final = frozenset({"startNext", "startUnregistered", "replace"})


def disturbed(spec: Spec) -> frozenset[str]:
    """Roles of the components that a scenario stops or restarts, or starts for itself."""
    brought = frozenset({OTHER_DRIVER} if spec.requires.other_devices else ())
    return brought.union(role_of(step.fault.component) for step in spec.steps if step.fault)


def only_updates(spec: Spec) -> bool:
    """Whether what a scenario disturbs is no more than a rolling update of the driver, if that.

    Claims are prepared all the while (k8s.io/dynamic-resource-allocation/kubeletplugin,
    RollingUpdate), so others may run.
    """
    if spec.requires.other_devices:
        return False
    return all(step.fault.action in _UPDATES for step in spec.steps if step.fault)


def disturbs(spec: Spec, other: Spec) -> bool:
    """Whether a scenario disturbs, at some time, components that another one needs or disturbs.

    Nodes of scenarios of tier allocation are objects alone, which no kubelet stands behind. One
    that is exclusive has nobody beside it anyway, and waits as if it disturbed all.
    """
    roles = disturbed(spec)
    if not roles or (other.tier == "allocation" and roles <= OF_A_NODE):
        return False
    return bool(disturbed(other)) or not only_updates(spec) or spec.requires.exclusive


def first_disturbance(steps: Sequence[Step]) -> int | None:
    """Index of the step before which a scenario disturbs nothing; None if it never does."""
    return next((index for index, step in enumerate(steps) if step.fault), None)


def last_disturbance(spec: Spec) -> int | None:
    """Index of the step after which all runs as before; None if that is the scenario's end."""
    if spec.requires.other_devices:
        return None
    faults = {index: step.fault for index, step in enumerate(spec.steps) if step.fault}
    missing: set[str] = set()
    added: set[str] = set()
    for fault in faults.values():
        component = fault.component
        if fault.action in {"kill", "stop"}:
            missing.add(component)
        elif fault.action in {"startNext", "startUnregistered"}:
            added.add(component)
        elif fault.action == "killNext":
            added.discard(component)
        else:
            missing.discard(component)
            added.discard(component)
    return max(faults) if faults and not missing | added else None


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
    if node is None and role_of(fault.component) in OF_A_NODE:
        node = context.node
    component = f"{node}/{fault.component}" if node else fault.component
    if fault.action != "start":
        context.progress.stopped.append(component)  # also by a restart that breaks off
    context.scope.faults.disturb(component, fault.action)


def bring_other(context: Context, capabilities: Capabilities) -> None:
    """Have another driver run while the scenario does, where that is the target's to start.

    Raises:
        TargetError: it did not get ready.
    """
    if f"fault:{OTHER_DRIVER}" in capabilities.abilities:
        context.progress.brought = True  # also one that did not get ready
        context.scope.faults.disturb(_other(context), "start")


def remove_other(context: Context) -> None:
    """End the other driver that was started for the scenario, and what it has published.

    Raises:
        TargetError: something of it stays.
    """
    if context.progress.brought:
        context.progress.brought = False
        context.scope.faults.disturb(_other(context), REMOVE)


def _other(context: Context) -> str:
    return OTHER_DRIVER if context.node is None else f"{context.node}/{OTHER_DRIVER}"


def restore(context: Context) -> None:
    """Start all that the scenario has stopped, each driver alone; what runs so is left alone.

    Raises:
        TargetError: something did not get ready.
    """
    for component in in_start_order(context.progress.stopped):
        context.scope.faults.disturb(component, "start")
    context.progress.stopped.clear()
