"""Defects of the controllers that make pods: DaemonSets, Deployments and StatefulSets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from kube.values import Obj
from kubesim.controllers.daemonsets import DaemonSetController
from kubesim.controllers.deployments import DeploymentController
from kubesim.controllers.garbage_collection import GarbageCollector
from kubesim.controllers.statefulsets import StatefulSetController
from kubesim.store import name_of, uid_of
from kubesim.world import World
from tests.mutants.replacing import Defects, Original, instead, part, replace


@instead(DaemonSetController.list_nodes)
def daemon_sets_run_once(
    _: World, original: Callable[[Obj], list[str]], daemon_set: Obj
) -> list[str]:
    return original(daemon_set)[:1]


@instead(DeploymentController.reconcile)
def deployments_keep_their_pods(_: World, original: Callable[[Obj], None], deployment: Obj) -> None:
    if deployment["spec"]["replicas"]:
        original(deployment)


@instead(DeploymentController.resolve_fenceposts)
def rolls_without_waiting(
    _: World, original: Callable[[Obj], tuple[int, int]], deployment: Obj
) -> tuple[int, int]:
    return original(deployment)[0], deployment["spec"]["replicas"]


@instead(DeploymentController.rollout_recreate)
def recreates_while_old_pods_run(
    world: World, _: Callable[..., None], deployment: Obj, *sets: Any
) -> None:
    controller = part(world, DeploymentController)
    rolling = {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    spec = {**deployment["spec"], "strategy": rolling}
    controller.rollout_rolling({**deployment, "spec": spec}, *sets)


def stateful_pods_get_new_names(world: World) -> None:
    made = set()

    def pod_name(original: Callable[[Obj, int], str], stateful_set: Obj, ordinal: int) -> str:
        key = (uid_of(stateful_set), ordinal)
        if key in made:
            return f"{name_of(stateful_set)}-0{ordinal}"
        made.add(key)
        return original(stateful_set, ordinal)

    replace(part(world, StatefulSetController).pod_name, pod_name)


def stateful_sets_count_on(world: World) -> None:
    """A set that was scaled to 0 gives its next pods the numbers after those of the last."""
    first: defaultdict[str, int] = defaultdict(int)
    last: defaultdict[str, int] = defaultdict(int)

    def ordinals(original: Callable[[Obj], range], stateful_set: Obj) -> range:
        found, uid = original(stateful_set), uid_of(stateful_set)
        if not found:
            first[uid] = last[uid]
        shifted = range(found.start + first[uid], found.stop + first[uid])
        last[uid] = max(last[uid], shifted.stop)
        return shifted

    replace(part(world, StatefulSetController).list_ordinals, ordinals)


@instead(GarbageCollector.is_ownerless)
def running_pods_outlive_jobs(_: World, original: Callable[[Obj], bool], obj: Obj) -> bool:
    """Nobody takes the Job controller's finalizer from a pod that runs when its Job is deleted."""
    owners = obj["metadata"].get("ownerReferences") or []
    of_job = obj["kind"] == "Pod" and any(owner["kind"] == "Job" for owner in owners)
    return original(obj) and not (of_job and obj["status"].get("phase") == "Running")


def stateful_sets_keep_old_pods(world: World) -> None:
    replace(part(world, StatefulSetController).replace_outdated, lambda *_: None)


@instead(StatefulSetController.update_stateful_set)
def stateful_sets_keep_their_pods(
    _: World, original: Original, stateful_set: Obj, there: Any
) -> None:
    if stateful_set["spec"]["replicas"]:
        original(stateful_set, there)


def stateful_sets_wait_for_no_pod(world: World) -> None:
    replace(part(world, StatefulSetController).in_order, lambda *_: False)


@instead(StatefulSetController.end_last)
def stateful_sets_end_first_pods_first(
    _: World, original: Callable[[Sequence[Obj]], None], over: Sequence[Obj]
) -> None:
    original(over[::-1])


DEFECTS: Defects = {
    "daemon-sets-run-once": daemon_sets_run_once,
    "deployments-keep-their-pods": deployments_keep_their_pods,
    "recreates-while-old-pods-run": recreates_while_old_pods_run,
    "rolls-without-waiting": rolls_without_waiting,
    "running-pods-outlive-their-job": running_pods_outlive_jobs,
    "stateful-pods-get-new-names": stateful_pods_get_new_names,
    "stateful-sets-count-on": stateful_sets_count_on,
    "stateful-sets-end-first-pods-first": stateful_sets_end_first_pods_first,
    "stateful-sets-keep-old-pods": stateful_sets_keep_old_pods,
    "stateful-sets-keep-their-pods": stateful_sets_keep_their_pods,
    "stateful-sets-wait-for-no-pod": stateful_sets_wait_for_no_pod,
}
