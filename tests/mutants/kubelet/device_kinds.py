"""Defects of nodes with devices of a kind: shared, partitioned, tainted, waited for, reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace as changed
from typing import Any

from kube.observations import ListedClaim
from kube.values import Obj
from kubesim.controllers.claims import ClaimController
from kubesim.nodes.dra_manager import DRAManager
from kubesim.nodes.podstatus import PodResources
from kubesim.scheduling.binding import Binder
from kubesim.world import World
from nvml_driver.model.prepared import PreparedDevice
from tests.mutants.allocator.inputs import results
from tests.mutants.driver import drivers
from tests.mutants.replacing import Defects, Mutation, instead, replace

Prepared = list[PreparedDevice]


def answers(change: Callable[[Prepared], Prepared]) -> Mutation:
    """The driver tells the kubelet something else than what it has prepared."""

    def mutate(world: World) -> None:
        for driver in drivers(world):
            replace(driver.prepare, lambda original, claim: change(original(claim)))

    return mutate


def without_share_ids(devices: Prepared) -> Prepared:
    return [changed(device, share_id=None) for device in devices]


def first_of_each_gpu(devices: Prepared) -> Prepared:
    """Of several partitions of a GPU the first is given for all."""
    ids = {device.gpu_name: device.cdi_device_ids for device in reversed(devices)}
    return [changed(device, cdi_device_ids=ids[device.gpu_name]) for device in devices]


@instead(PodResources.list_claims)
def lists_shares_without_ids(
    _: Any, original: Callable[[Obj, str], list[ListedClaim] | None], pod: Obj, container: str
) -> list[ListedClaim] | None:
    """PodResources says of a share which device it is of, and not which share."""
    found = original(pod, container)
    return found and [
        changed(one, devices=tuple(changed(device, share="") for device in one.devices))
        for one in found
    ]


def lets_go(
    change: Callable[[World, DRAManager, Callable[[str], None], str], None],
) -> Mutation:
    """The kubelet lets go of the claims of evicted pods in another way."""

    def mutate(world: World) -> None:
        for kubelet in world.kubelets:
            manager = kubelet.dra_manager

            def unprepare(
                original: Callable[[str], None], pod_uid: str, manager: DRAManager = manager
            ) -> None:
                pod = world.cluster.store.by_uid(pod_uid)
                found = ((pod or {}).get("status") or {}).get("conditions") or []
                if any(one["type"] == "DisruptionTarget" for one in found):
                    change(world, manager, original, pod_uid)
                else:
                    original(pod_uid)

            replace(manager.unprepare, unprepare)

    return mutate


def not_at_all(_: World, manager: DRAManager, original: Callable[[str], None], uid: str) -> None:
    for prepared in manager.prepared.values():
        if uid in prepared.pods:
            prepared.unprepare = ()
    original(uid)


def of_the_neighbours(
    _: World, manager: DRAManager, original: Callable[[str], None], uid: str
) -> None:
    original(uid)
    for claim_uid in manager.prepared:
        for driver in manager.drivers:
            driver.unprepare(claim_uid)


def of_tainted_devices(
    world: World, manager: DRAManager, original: Callable[[str], None], uid: str
) -> None:
    for claim_uid, prepared in manager.prepared.items():
        if uid in prepared.pods and not _is_tainted(world, claim_uid):
            prepared.unprepare = ()
    original(uid)


def _is_tainted(world: World, claim_uid: str) -> bool:
    claim = world.cluster.store.by_uid(claim_uid)
    if world.cluster.store.all("DeviceTaintRule"):
        return True
    tainted = {
        (item["spec"]["driver"], item["spec"]["pool"]["name"], device["name"])
        for item in world.cluster.store.all("ResourceSlice")
        for device in item["spec"].get("devices") or ()
        if device.get("taints")
    }
    allocation = claim["status"].get("allocation") if claim else None
    return any((r["driver"], r["pool"], r["device"]) in tainted for r in results(allocation or {}))


@instead(Binder.report_waiting)
def prepares_before_binding(
    world: World, original: Callable[[Obj, str], None], pod: Obj, node: str
) -> None:
    """The node prepares the claims of a pod while the scheduler waits for its devices."""
    for kubelet in world.kubelets:
        if kubelet.node == node and kubelet.driver is not None:
            for _, claim in kubelet.dra_manager.claims_of(pod):
                if claim is not None:
                    kubelet.driver.prepare(claim)
    original(pod, node)


@instead(ClaimController.set_users)
def reports_go_with_a_pod(
    world: World, original: Callable[..., Obj], claim: Obj, users: Iterable[Obj], **how: Any
) -> Obj:
    """What is reported of devices is dropped when one of several pods is done with the claim."""
    claim = original(claim, users, **how)
    store = world.cluster.store
    return store.modify(claim, lambda new: new["status"].pop("devices", None)) if users else claim


DEFECTS: Defects = {
    "driver-answers-without-share-ids": answers(without_share_ids),
    "driver-gives-first-partition-twice": answers(first_of_each_gpu),
    "kubelet-keeps-claims-of-evicted-pods": lets_go(not_at_all),
    "kubelet-lists-shares-without-ids": lists_shares_without_ids,
    "kubelet-unprepares-neighbours-of-evicted-pods": lets_go(of_the_neighbours),
    "kubelet-unprepares-tainted-devices-only": lets_go(of_tainted_devices),
    "node-prepares-before-binding": prepares_before_binding,
    "reports-go-with-a-pod": reports_go_with_a_pod,
}
