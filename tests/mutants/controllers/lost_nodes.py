"""Defects of what becomes of pods and claims when their node is lost."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim import pods
from kubesim.controllers.claims import ClaimController
from kubesim.controllers.node_lifecycle import NodeLifecycleController
from kubesim.scheduling import nodefit
from kubesim.scheduling.scheduler import Scheduler
from kubesim.world import World
from tests.mutants.replacing import Defects, instead, part, replace


@instead(ClaimController.remaining_users)
def releases_on_lost_nodes(
    world: World, original: Callable[[Obj], list[Obj]], claim: Obj
) -> list[Obj]:
    """A claim is released as soon as its pod is deleted, though nobody knows that it has ended."""
    store = world.cluster.store

    def lost(user: Obj) -> bool:
        pod = store.by_uid(user["uid"])
        node = store.get("Node", "", pod["spec"].get("nodeName") or "") if pod else None
        taints = (node or {}).get("spec", {}).get("taints") or []
        unreachable = any("unreachable" in taint["key"] for taint in taints)
        return pod is not None and pods.is_deleted(pod) and unreachable

    return [user for user in original(claim) if not lost(user)]


def leaves_pods_on_lost_nodes(world: World) -> None:
    replace(part(world, NodeLifecycleController)._evict, lambda *_: None)


@instead(Scheduler._nodes)
def uses_nodes_that_are_not_ready(_: World, original: Callable[[], list[Obj]]) -> list[Obj]:
    """The scheduler looks neither at a node's condition nor at the taint for it."""
    return [believed_ready(node) for node in original()]


def believed_ready(node: Obj) -> Obj:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    taints = [t for t in spec.get("taints") or [] if t["key"] != nodefit._NOT_READY["key"]]
    ready = [{"type": "Ready", "status": "True"}]
    return {**node, "spec": {**spec, "taints": taints}, "status": {**status, "conditions": ready}}


DEFECTS: Defects = {
    "leaves-pods-on-lost-nodes": leaves_pods_on_lost_nodes,
    "releases-claims-on-lost-nodes": releases_on_lost_nodes,
    "uses-nodes-that-are-not-ready": uses_nodes_that_are_not_ready,
}
