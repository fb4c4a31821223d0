"""Defects of what kubelets tell of devices where claims have another feature; of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kube.observations import ListedClaim
from kube.values import Obj
from kubesim.nodes.dra_manager import DRAManager
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.podstatus import PodResources
from kubesim.world import World
from tests.mutants.allocation.inputs import requests
from tests.mutants.driver.preparation import drivers
from tests.mutants.kubelet.health import Status, shows
from tests.mutants.replacing import Defects, instead, replace


def says_nothing(original: Status, pod: Obj, container: Obj) -> list[Obj]:
    found = original(pod, container)
    for item in found:
        for one in item["resources"]:
            one.pop("message", None)
    return found


def remembers_messages(world: World) -> None:
    """A message stays when there is no newer one."""
    for driver in drivers(world):
        said: dict[str, str] = {}

        def health(
            original: Callable[[str], tuple[str, str]], device: str, said: dict[str, str] = said
        ) -> tuple[str, str]:
            found, message = original(device)
            said[device] = message or said.get(device, "")
            return found, said[device]

        replace(driver.health, health)


@instead(NodeDriver.health)
def one_message_of_all(
    driver: NodeDriver, original: Callable[[str], tuple[str, str]], device: str
) -> tuple[str, str]:
    every = [original(other) for other in driver.devices]
    message = next((message for _, message in every if message), "")
    return original(device)[0], message


def by_full_names(world: World) -> None:
    """A request is looked for among the names of the alternatives that were taken."""

    def change(original: Status, pod: Obj, container: Obj) -> list[Obj]:
        listed = {
            f"claim:{entry['name']}/{request['name']}"
            for entry, claim in world.cluster.claims_of(pod)
            if claim is not None
            for request in requests(claim)
            if request.get("firstAvailable")
        }
        return [item for item in original(pod, container) if item["name"] not in listed]

    shows(change)(world)


@instead(DRAManager.allocated_resources_status)
def of_first_driver(manager: DRAManager, original: Status, pod: Obj, container: Obj) -> list[Obj]:
    every = manager.drivers
    manager.drivers = every[:1]
    try:
        return original(pod, container)
    finally:
        manager.drivers = every


@instead(PodResources.list_claims)
def lists_first_driver(
    _: object, original: Callable[..., Sequence[ListedClaim] | None], pod: Obj, container: str
) -> Sequence[ListedClaim] | None:
    found = original(pod, container)
    return found and [
        ListedClaim(
            claim.namespace,
            claim.name,
            tuple(one for one in claim.devices if one.driver == claim.devices[0].driver),
        )
        for claim in found
    ]


DEFECTS: Defects = {
    "alternatives-show-no-health": by_full_names,
    "health-of-the-first-driver-only": of_first_driver,
    "health-messages-are-lost": shows(says_nothing),
    "health-messages-are-of-any-device": one_message_of_all,
    "health-messages-stay": remembers_messages,
    "lists-devices-of-the-first-driver": lists_first_driver,
}
