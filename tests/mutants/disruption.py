"""Defects that show when a component is stopped, starts again, or loses its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.cdi.edits import UnresolvableError
from kube.values import Obj
from kubesim import pods
from kubesim.controllers.claims import ClaimController
from kubesim.controllers.node_lifecycle import NodeLifecycleController
from kubesim.nodes.dra_manager import NotPreparedError
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.kubelet import Kubelet
from kubesim.scheduling import nodefit
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead, part, replace


def when_started(change: Callable[[Kubelet], None]) -> Mutation:
    """A kubelet does something wrong when it starts."""

    @instead("kubelets.start")
    def mutate(kubelet: Kubelet, original: Callable[[], None]) -> None:
        change(kubelet)
        original()

    return mutate


def forget_gone_pods(kubelet: Kubelet) -> None:
    for uid in list(kubelet._pods):
        if kubelet._store.by_uid(uid) is None:
            del kubelet._pods[uid]


def unprepare_everything(kubelet: Kubelet) -> None:
    for claim_uid, prepared in kubelet.dra_manager.prepared.items():
        if kubelet.driver is not None:
            kubelet.driver.unprepare(claim_uid)
        prepared.devices = {}


def restart_containers(kubelet: Kubelet) -> None:
    for run in kubelet._pods.values():
        for current in run.runs.values():
            current.ends_at = kubelet._cluster.clock.now


@instead("kubelets.wipe_slices")
def keeps_slices_of_gone_drivers(
    _: Kubelet, original: Callable[[], None], driver: str = ""
) -> None:
    if not driver:
        original()


@instead("kubelets.stop_driver")
def wipes_slices_at_once(
    kubelet: Kubelet, original: Callable[[str], None], role: str = "driver"
) -> None:
    original(role)
    if role == "driver":
        kubelet.wipe_slices()


def gives_up_unregistered_drivers(world: World) -> None:
    """A pod whose driver is not registered is not prepared later, either."""
    for kubelet in world.kubelets:
        given_up: set[str] = set()

        def prepare(
            original: Callable[[Obj], None], pod: Obj, given_up: set[str] = given_up
        ) -> None:
            if uid_of(pod) in given_up:
                raise NotPreparedError("given up")
            try:
                original(pod)
            except NotPreparedError as error:
                if "is not registered" in str(error):
                    given_up.add(uid_of(pod))
                raise

        replace(kubelet.dra_manager, "prepare", prepare)


def loses_cdi_specs(world: World) -> None:
    """A driver that starts believes its checkpoint, whether the CDI specs are there or not."""
    lost: set[str] = set()
    for kubelet in world.kubelets:
        assert kubelet.driver is not None

        def reboot(original: Callable[[], None], driver: NodeDriver = kubelet.driver) -> None:
            lost.update(driver.spec_files())
            original()

        def edits(original: Callable[..., Any], ids: list[str]) -> Any:
            if any(uid in one for one in ids for uid in lost):
                raise UnresolvableError("unresolvable CDI devices")
            return original(ids)

        replace(kubelet.driver, "reboot", reboot)
        replace(kubelet.driver, "edits", edits)


@instead("scheduler.restart")
def frees_half_bound(world: World, original: Callable[[], None]) -> None:
    """A scheduler that starts takes back what pods have that are not bound yet."""
    original()
    store = world.cluster.store
    for pod in store.all("Pod"):
        for _, claim in world.cluster.claims_of(pod):
            if claim is not None and not pod["spec"].get("nodeName"):
                store.modify(claim, lose_allocation)


def lose_allocation(claim: Obj) -> None:
    for field in ("allocation", "reservedFor"):
        claim["status"].pop(field, None)


def only_new_pods(world: World) -> None:
    """A scheduler that starts looks only at pods that come later."""
    old: set[str] = set()

    def restart(original: Callable[[], None]) -> None:
        original()
        old.update(uid_of(pod) for pod in world.cluster.store.all("Pod"))

    def ready_claims(original: Callable[..., Any], pod: Obj) -> Any:
        return None if uid_of(pod) in old else original(pod)

    replace(world.scheduler, "restart", restart)
    replace(world.scheduler, "ready_claims", ready_claims)


def misses_what_happened(world: World) -> None:
    """A controller manager that starts does not notice pods that went while it was down."""
    controller, store = part(world, ClaimController), world.cluster.store
    kept: dict[str, list[Obj]] = {}

    def restart(original: Callable[[], None]) -> None:
        original()
        for claim in store.all("ResourceClaim"):
            kept[uid_of(claim)] = claim["status"].get("reservedFor") or []

    def remaining_users(original: Callable[[Obj], list[Obj]], claim: Obj) -> list[Obj]:
        users = original(claim)
        old = [user for user in kept.get(uid_of(claim), ()) if user not in users]
        return users + [user for user in old if store.by_uid(user["uid"]) is None]

    replace(controller, "restart", restart)
    replace(controller, "remaining_users", remaining_users)


@instead("ClaimController.remaining_users")
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
    replace(part(world, NodeLifecycleController), "_evict", lambda *_: None)


@instead("scheduler._nodes")
def uses_nodes_that_are_not_ready(_: World, original: Callable[[], list[Obj]]) -> list[Obj]:
    """The scheduler looks neither at a node's condition nor at the taint for it."""
    return [believed_ready(node) for node in original()]


def believed_ready(node: Obj) -> Obj:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    taints = [t for t in spec.get("taints") or [] if t["key"] != nodefit._NOT_READY["key"]]
    ready = [{"type": "Ready", "status": "True"}]
    return {**node, "spec": {**spec, "taints": taints}, "status": {**status, "conditions": ready}}


DEFECTS: Defects = {
    "driver-loses-cdi-specs": loses_cdi_specs,
    "kubelet-forgets-gone-pods": when_started(forget_gone_pods),
    "kubelet-gives-up-unregistered-drivers": gives_up_unregistered_drivers,
    "kubelet-keeps-slices-of-gone-drivers": keeps_slices_of_gone_drivers,
    "kubelet-restarts-containers": when_started(restart_containers),
    "kubelet-unprepares-at-start": when_started(unprepare_everything),
    "kubelet-wipes-slices-at-once": wipes_slices_at_once,
    "leaves-pods-on-lost-nodes": leaves_pods_on_lost_nodes,
    "manager-misses-what-happened": misses_what_happened,
    "releases-claims-on-lost-nodes": releases_on_lost_nodes,
    "scheduler-frees-half-bound": frees_half_bound,
    "scheduler-sees-only-new-pods": only_new_pods,
    "uses-nodes-that-are-not-ready": uses_nodes_that_are_not_ready,
}
