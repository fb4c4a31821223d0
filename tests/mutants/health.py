"""Defects of what a pod's status says of its devices' health, and of who gets unhealthy ones."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.nodes.dra_manager import DRAManager
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.kubelet import Kubelet
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.driver import drivers
from tests.mutants.replacing import Defects, Mutation, instead, replace

Status = Callable[[Obj, Obj], list[Obj]]
"""``allocatedResourcesStatus`` of a container of a pod."""


def shows(change: Callable[[Status, Obj, Obj], list[Obj]]) -> Mutation:
    """The kubelet writes something else of the health of a container's devices."""

    def mutate(world: World) -> None:
        for kubelet in world.kubelets:
            replace(kubelet.dra_manager.allocated_resources_status, change)

    return mutate


def of_all_requests(original: Status, pod: Obj, container: Obj) -> list[Obj]:
    """The name is that of the request, the devices are all of its claim."""
    found = []
    for entry in (container.get("resources") or {}).get("claims") or []:
        named = original(pod, {**container, "resources": {"claims": [entry]}})
        whole = {**container, "resources": {"claims": [{"name": entry["name"]}]}}
        for item, every in zip(named, original(pod, whole), strict=True):
            found.append({**item, "resources": every["resources"]})
    return found


def by_claims_alone(original: Status, pod: Obj, container: Obj) -> list[Obj]:
    found = original(pod, container)
    return [{**item, "name": item["name"].partition("/")[0]} for item in found]


def never_healthy_again(world: World) -> None:
    for driver in drivers(world):
        seen: dict[str, tuple[str, str]] = {}

        def health(
            original: Callable[[str], tuple[str, str]],
            device: str,
            seen: dict[str, tuple[str, str]] = seen,
        ) -> tuple[str, str]:
            found = original(device)
            if found[0] == "Unhealthy":
                seen[device] = found
            return seen.get(device, found)

        replace(driver.health, health)


def outlives_drivers(world: World) -> None:
    for driver in drivers(world):
        replace(driver.health, lambda _original, device, driver=driver: driver.known_health(device))


@instead(NodeDriver.health)
def worst_of_the_node(
    driver: NodeDriver, original: Callable[[str], tuple[str, str]], device: str
) -> tuple[str, str]:
    found = [original(other) for other in driver.devices]
    return next((one for one in found if one[0] == "Unhealthy"), original(device))


def to_the_first_pod(world: World) -> None:
    """Of pods that share a claim, one shows what happens to its device after it has started."""
    for kubelet in world.kubelets:
        manager = kubelet.dra_manager
        first: dict[str, str] = {}
        told: dict[tuple[str, str], list[Obj]] = {}

        def status(
            original: Status,
            pod: Obj,
            container: Obj,
            manager: DRAManager = manager,
            first: dict[str, str] = first,
            told: dict[tuple[str, str], list[Obj]] = told,
        ) -> list[Obj]:
            found = original(pod, container)
            own = uid_of(pod)
            claims = [uid_of(claim) for _, claim in manager.claims_of(pod) if claim]
            if not found or all(first.setdefault(uid, own) == own for uid in claims):
                return found
            return told.setdefault((own, container["name"]), found)

        replace(manager.allocated_resources_status, status)


def restarts_containers(world: World) -> None:
    """A container whose device gets unhealthy is ended."""
    for kubelet in world.kubelets:

        def status(
            original: Status, pod: Obj, container: Obj, kubelet: Kubelet = kubelet
        ) -> list[Obj]:
            found = original(pod, container)
            if any(each["health"] == "Unhealthy" for item in found for each in item["resources"]):
                for run in kubelet._pods.values():
                    if uid_of(run.pod) == uid_of(pod):
                        run.runs[container["name"]].ends_at = world.clock.now
            return found

        replace(kubelet.dra_manager.allocated_resources_status, status)


def offers_unhealthy_devices(world: World) -> None:
    for driver in drivers(world):
        replace(driver._publish, lambda original, _taints: original({}))


DEFECTS: Defects = {
    "driver-offers-unhealthy-devices": offers_unhealthy_devices,
    "health-is-shown-to-the-first-pod": to_the_first_pod,
    "health-is-the-worst-of-the-node": worst_of_the_node,
    "health-never-comes-back": never_healthy_again,
    "health-of-all-requests": shows(of_all_requests),
    "health-outlives-drivers": outlives_drivers,
    "health-without-requests": shows(by_claims_alone),
    "kubelet-ends-unhealthy-containers": restarts_containers,
}
