"""Defects of the health of devices in a pod's status: whose it is, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.nodes.dra_manager import DRAManager
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.kubelet import Kubelet
from kubesim.store import uid_of
from kubesim.world import World
from nvml_driver.model.prepared import PreparedDevice
from tests.mutants.driver.preparation import drivers
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


Told = tuple[str, str]
"""Health and message."""


def each_device(change: Callable[[str, NodeDriver, PreparedDevice, Obj], Obj]) -> Mutation:
    """What is said of a device is something else: by the driver, the device and what is right."""

    @instead(DRAManager._read_health)
    def mutate(
        _: DRAManager, original: Callable[..., Obj], driver: NodeDriver, device: PreparedDevice
    ) -> Obj:
        return change(driver.name, driver, device, original(driver, device))

    return mutate


def no_message(_name: str, _driver: NodeDriver, _device: PreparedDevice, found: Obj) -> Obj:
    return {key: value for key, value in found.items() if key != "message"}


def unknown_is_healthy(_name: str, _driver: NodeDriver, _device: PreparedDevice, found: Obj) -> Obj:
    return {**found, "health": "Healthy"} if found["health"] == "Unknown" else found


def unknown_as_it_was(_name: str, driver: NodeDriver, device: PreparedDevice, found: Obj) -> Obj:
    message = driver.known_health(device.device_name)[1]
    return {**found, "message": message} if found["health"] == "Unknown" and message else found


def named_by_device(name: str, _driver: NodeDriver, device: PreparedDevice, found: Obj) -> Obj:
    return {**found, "resourceID": f"{name}/{device.pool_name}/{device.device_name}"}


def keeps_messages(world: World) -> None:
    """The message of a device that is healthy again is the one of its trouble."""
    for driver in drivers(world):
        last: dict[str, str] = {}

        def health(
            original: Callable[[str], Told], device: str, last: dict[str, str] = last
        ) -> Told:
            found, message = original(device)
            if message:
                last[device] = message
            return found, last.get(device, "")

        replace(driver.health, health)


def never_known_again(world: World) -> None:
    """A kubelet does not ask a driver that came back for its devices' health."""
    for driver in drivers(world):
        gone: set[str] = set()

        def health(
            original: Callable[[str], Told],
            device: str,
            driver: NodeDriver = driver,
            gone: set[str] = gone,
        ) -> Told:
            if driver.stopped_at is not None:
                gone.add(driver.name)
            return ("Unknown", "") if gone else original(device)

        replace(driver.health, health)


def of_the_first_claim(original: Status, pod: Obj, container: Obj) -> list[Obj]:
    return original(pod, container)[:1]


def of_the_first_request(original: Status, pod: Obj, container: Obj) -> list[Obj]:
    """Of several requests of a claim that a container names it shows the first."""
    found: dict[str, Obj] = {}
    for item in original(pod, container):
        found.setdefault(item["name"].partition("/")[0], item)
    return [*found.values()]


def of_named_claims(original: Status, pod: Obj, container: Obj) -> list[Obj]:
    """Claims are looked for by what the pod's spec says, which names no generated one."""
    named = {
        entry["name"]
        for entry in pod["spec"].get("resourceClaims") or []
        if "resourceClaimName" in entry
    }
    resources = container.get("resources") or {}
    kept = [entry for entry in resources.get("claims") or [] if entry["name"] in named]
    return original(pod, {**container, "resources": {**resources, "claims": kept}})


def of_the_first_device(original: Status, pod: Obj, container: Obj) -> list[Obj]:
    found = original(pod, container)
    return [{**item, "resources": item["resources"][:1]} for item in found]


def of_all_containers(original: Status, pod: Obj, container: Obj) -> list[Obj]:
    """Each container shows what the others of its pod use, too."""
    entries = [
        entry
        for other in pod["spec"]["containers"]
        for entry in (other.get("resources") or {}).get("claims") or []
    ]
    return original(pod, {**container, "resources": {"claims": entries}})


DEFECTS: Defects = {
    "health-is-shown-to-the-first-pod": to_the_first_pod,
    "health-is-the-worst-of-the-node": worst_of_the_node,
    "health-never-comes-back": never_healthy_again,
    "health-of-all-requests": shows(of_all_requests),
    "health-outlives-drivers": outlives_drivers,
    "health-without-requests": shows(by_claims_alone),
    "kubelet-ends-unhealthy-containers": restarts_containers,
    "health-counts-unknown-as-healthy": each_device(unknown_is_healthy),
    "unknown-health-keeps-its-message": each_device(unknown_as_it_was),
    "health-has-no-message": each_device(no_message),
    "health-is-never-known-again": never_known_again,
    "health-keeps-old-messages": keeps_messages,
    "health-names-devices-otherwise": each_device(named_by_device),
    "health-of-all-containers": shows(of_all_containers),
    "health-of-named-claims-only": shows(of_named_claims),
    "health-of-the-first-claim-only": shows(of_the_first_claim),
    "health-of-the-first-request-only": shows(of_the_first_request),
    "health-of-the-first-device-only": shows(of_the_first_device),
}
