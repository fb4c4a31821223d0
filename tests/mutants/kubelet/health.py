"""Defects of the health of devices in a pod's status: whose it is, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.nodes.dra_manager import DRAManager
from kubesim.nodes.driver import NodeDriver
from kubesim.world import World
from nvml_driver.model.prepared import PreparedDevice
from tests.mutants.driver import drivers
from tests.mutants.health import Status, shows
from tests.mutants.replacing import Defects, Mutation, instead, replace

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
    "health-counts-unknown-as-healthy": each_device(unknown_is_healthy),
    "health-has-no-message": each_device(no_message),
    "health-is-never-known-again": never_known_again,
    "health-keeps-old-messages": keeps_messages,
    "health-names-devices-otherwise": each_device(named_by_device),
    "health-of-all-containers": shows(of_all_containers),
    "health-of-named-claims-only": shows(of_named_claims),
    "health-of-the-first-claim-only": shows(of_the_first_claim),
    "health-of-the-first-device-only": shows(of_the_first_device),
}
