"""Defects of the kubelet and the driver: what is prepared, and what containers get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from conformance.targets.base import Obj
from conformance.targets.reference import pods
from conformance.targets.reference.nodes.dra_manager import DRAManager
from conformance.targets.reference.nodes.driver import NodeDriver
from conformance.targets.reference.store import clone, uid_of
from conformance.targets.reference.world import World
from tests.mutants.faults import Fault
from tests.mutants.replacing import Mutation, replace

Ids = Callable[[Obj, Obj], Iterator[str]]


def take_any_reservation(world: World) -> None:
    """The kubelet does not look whether a claim is reserved for the pod."""

    def claims_of(original: Callable[..., Any], pod: Obj) -> Any:
        for name, claim in original(pod):
            status = {**claim["status"], "reservedFor": [pods.reservation(pod)]} if claim else {}
            yield name, claim and {**claim, "status": status}

    for kubelet in world.kubelets:
        replace(kubelet.dra_manager, "claims_of", claims_of)


def gives_containers(
    ids: Callable[[DRAManager, Ids, Obj, Obj], Iterator[str]],
) -> Mutation:
    """Containers get other CDI devices than those of the claims that they name."""

    def mutate(world: World) -> None:
        for kubelet in world.kubelets:
            manager = kubelet.dra_manager

            def cdi_device_ids(
                original: Ids, pod: Obj, container: Obj, manager: DRAManager = manager
            ) -> Iterator[str]:
                return ids(manager, original, pod, container)

            replace(manager, "cdi_device_ids", cdi_device_ids)

    return mutate


def first_container_only(
    _manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    return original(pod, container) if container == pod["spec"]["containers"][0] else iter(())


def all_claims(manager: DRAManager, _original: Ids, pod: Obj, _container: Obj) -> Iterator[str]:
    for _, claim in manager.claims_of(pod):
        if claim is not None:
            yield from manager.devices_of(uid_of(claim))


def all_requests(manager: DRAManager, _original: Ids, pod: Obj, container: Obj) -> Iterator[str]:
    named = {item["name"] for item in (container.get("resources") or {}).get("claims") or []}
    for name, claim in manager.claims_of(pod):
        if claim is not None and name in named:
            yield from manager.devices_of(uid_of(claim))


def others_for_pods_without_claims(
    manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    if pod["spec"].get("resourceClaims"):
        yield from original(pod, container)
        return
    for claim_uid in manager.prepared:
        yield from manager.devices_of(claim_uid)


def wrong_device_in_container(world: World) -> None:
    for driver in drivers(world):
        names = driver.devices

        def prepare(original: Callable[..., Any], claim: Obj, names: list[str] = names) -> Any:
            other = clone(claim)
            for result in other["status"]["allocation"]["devices"]["results"]:
                if result["device"] in names:
                    index = names.index(result["device"])
                    result["device"] = names[(index + 1) % len(names)]
            return original(other)

        replace(driver, "prepare", prepare)


def leak_cdi(world: World) -> None:
    for driver in drivers(world):
        replace(driver, "unprepare", lambda *_: None)


def drivers(world: World) -> list[NodeDriver]:
    return [kubelet.driver for kubelet in world.kubelets if kubelet.driver is not None]


MUTATIONS: dict[Fault, Mutation] = {
    Fault.FIRST_CONTAINER_ONLY: gives_containers(first_container_only),
    Fault.LEAKS_TO_OTHER_PODS: gives_containers(others_for_pods_without_claims),
    Fault.LEAK_CDI: leak_cdi,
    Fault.REQUEST_FILTER_IGNORED: gives_containers(all_requests),
    Fault.SEES_ALL_CLAIMS: gives_containers(all_claims),
    Fault.WRONG_DEVICE_IN_CONTAINER: wrong_device_in_container,
}
