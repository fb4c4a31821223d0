"""Defects of what containers get: of several requests, claims and ids of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kube.cdi.edits import ContainerEdits
from kube.cdi.spec import DeviceNode
from kube.values import Obj
from kubesim.nodes.dra_manager import DRAManager
from kubesim.nodes.driver import PreparedDevice
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.kubelet.pods import Ids, gives_containers
from tests.mutants.replacing import Defects, instead, replace


def of_entries(choose: Callable[[list[Obj]], list[Obj]]) -> Callable[..., Iterator[str]]:
    """Of what a container names in its ``resources.claims`` it gets some entries alone."""

    def ids(_manager: DRAManager, original: Ids, pod: Obj, container: Obj) -> Iterator[str]:
        resources = container.get("resources") or {}
        kept = choose(resources.get("claims") or [])
        return original(pod, {**container, "resources": {**resources, "claims": kept}})

    return ids


def last_of_each_claim(entries: list[Obj]) -> list[Obj]:
    return [*{entry["name"]: entry for entry in entries}.values()]


def first_claim(entries: list[Obj]) -> list[Obj]:
    return [entry for entry in entries if entry["name"] == entries[0]["name"]]


def no_mappings_of_init_containers(
    _manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    if container in (pod["spec"].get("initContainers") or []):
        pod = {**pod, "status": {**pod["status"], "extendedResourceClaimStatus": {}}}
    return original(pod, container)


@instead(DRAManager.devices_of)
def first_id_of_a_device(
    manager: DRAManager, _original: object, claim_uid: str, request: str = ""
) -> Iterator[str]:
    for devices in manager.prepared[claim_uid].devices.values():
        for device in devices:
            if _is_for(device, request):
                yield from device.cdi_device_ids[:1]


def _is_for(device: PreparedDevice, request: str) -> bool:
    return not request or not device.request_names or request in device.request_names


def all_of_extended_resources(
    manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    """A container without extended resources gets those of its pod."""
    yield from original(pod, container)
    made = pod["status"].get("extendedResourceClaimStatus") or {}
    mapped = {one["containerName"] for one in made.get("requestMappings") or []}
    for name, claim in manager.claims_of(pod):
        if not name and claim is not None and container["name"] not in mapped:
            yield from manager.devices_of(uid_of(claim))


def one_device_of_a_mapping(
    manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    """However many of an extended resource a container asks for, it gets one."""
    made = pod["status"].get("extendedResourceClaimStatus") or {}
    mine = [
        one["requestName"]
        for one in made.get("requestMappings") or []
        if one["containerName"] == container["name"]
    ]
    claim = dict(manager.claims_of(pod)).get("") if mine else None
    if claim is None:
        yield from original(pod, container)
        return
    every = manager.prepared[uid_of(claim)].devices.values()
    for request in mine:
        devices = [device for found in every for device in found if _is_for(device, request)]
        for device in devices[:1]:
            yield from device.cdi_device_ids


def named(container: Obj) -> list[Obj]:
    found: list[Obj] = (container.get("resources") or {}).get("claims") or []
    return found


def all_where_none_is_named(
    manager: DRAManager, original: Ids, pod: Obj, container: Obj
) -> Iterator[str]:
    """Where no container of a pod names a claim, each gets all of them."""
    every = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    if any(map(named, every)) or not pod["spec"].get("resourceClaims"):
        return original(pod, container)
    return all_claims(manager, pod)


def all_claims(manager: DRAManager, pod: Obj) -> Iterator[str]:
    for name, claim in manager.claims_of(pod):
        if name and claim is not None:
            yield from manager.devices_of(uid_of(claim))


def the_only_device(manager: DRAManager, original: Ids, pod: Obj, container: Obj) -> Iterator[str]:
    """A pod that has one device has it in all of its containers."""
    claims = [claim for _, claim in manager.claims_of(pod) if claim is not None]
    prepared = [manager.prepared[uid_of(claim)].devices.values() for claim in claims]
    count = sum(len(devices) for drivers in prepared for devices in drivers)
    used = any(map(named, pod["spec"]["containers"]))
    return all_claims(manager, pod) if used and count == 1 else original(pod, container)


def adds_what_is_asked_by_name(world: World) -> None:
    """The runtime gives all GPUs to a container that sets NVIDIA_VISIBLE_DEVICES=all."""
    nodes = tuple(
        DeviceNode(path=f"/dev/nvidia{minor}", type="c", major=195, minor=minor, permissions="rw")
        for minor in range(4)
    )
    for kubelet in world.kubelets:

        def edits(
            original: Callable[..., ContainerEdits], pod: Obj, container: Obj
        ) -> ContainerEdits:
            found = original(pod, container)
            asked = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
            if asked not in (container.get("env") or []):
                return found
            return ContainerEdits(found.env, (*found.device_nodes, *nodes), found.mounts)

        replace(kubelet.dra_manager.resolve_edits, edits)


@instead(DRAManager.devices_of)
def _names_that_begin_so(
    manager: DRAManager, _: Callable[..., Iterator[str]], claim_uid: str, request: str = ""
) -> Iterator[str]:
    """A container gets the devices of all requests whose names begin as that which it names."""
    for found in manager.prepared[claim_uid].devices.values():
        for device in found:
            if any(name.startswith(request) for name in device.request_names or [request]):
                yield from device.cdi_device_ids


DEFECTS: Defects = {
    "claims-of-no-container-reach-all": gives_containers(all_where_none_is_named),
    "extended-resources-reach-all-containers": gives_containers(all_of_extended_resources),
    "one-device-of-an-extended-resource": gives_containers(one_device_of_a_mapping),
    "the-only-device-reaches-all-containers": gives_containers(the_only_device),
    "first-claim-of-a-container-only": gives_containers(of_entries(first_claim)),
    "first-cdi-id-of-a-device-only": first_id_of_a_device,
    "init-containers-see-no-extended-devices": gives_containers(no_mappings_of_init_containers),
    "last-request-of-a-claim-only": gives_containers(of_entries(last_of_each_claim)),
    "runtime-gives-what-containers-ask-for": adds_what_is_asked_by_name,
    "requests-are-found-by-their-beginning": _names_that_begin_so,
}
