"""Defects of the controllers that make pods: DaemonSets and Deployments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.targets.base import Obj
from conformance.targets.reference.controllers.daemonsets import DaemonSetController
from conformance.targets.reference.controllers.deployments import DeploymentController
from conformance.targets.reference.world import World
from tests.mutants.faults import Fault
from tests.mutants.replacing import Mutation, part, replace


def daemon_sets_run_once(world: World) -> None:
    def nodes(original: Callable[[Obj], list[str]], daemon_set: Obj) -> list[str]:
        return original(daemon_set)[:1]

    replace(part(world, DaemonSetController), "nodes", nodes)


def deployments_keep_their_pods(world: World) -> None:
    def reconcile(original: Callable[[Obj], None], deployment: Obj) -> None:
        if deployment["spec"]["replicas"]:
            original(deployment)

    replace(part(world, DeploymentController), "reconcile", reconcile)


def rolls_without_waiting(world: World) -> None:
    def limits(original: Callable[[Obj], tuple[int, int]], deployment: Obj) -> tuple[int, int]:
        return original(deployment)[0], deployment["spec"]["replicas"]

    replace(part(world, DeploymentController), "limits", limits)


def recreates_while_old_pods_run(world: World) -> None:
    controller = part(world, DeploymentController)

    def recreate(_: Callable[..., None], deployment: Obj, *sets: Any) -> None:
        rolling = {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
        spec = {**deployment["spec"], "strategy": rolling}
        controller.roll({**deployment, "spec": spec}, *sets)

    replace(controller, "recreate", recreate)


MUTATIONS: dict[Fault, Mutation] = {
    Fault.DAEMON_SETS_RUN_ONCE: daemon_sets_run_once,
    Fault.DEPLOYMENTS_KEEP_THEIR_PODS: deployments_keep_their_pods,
    Fault.RECREATES_WHILE_OLD_PODS_RUN: recreates_while_old_pods_run,
    Fault.ROLLS_WITHOUT_WAITING: rolls_without_waiting,
}
