"""Which device is it that a container shows by a name, or by the request that it was allocated for?

A device is identified by driver, pool and name (`DeviceRequestAllocationResult`); its
name alone says nothing where there are several nodes or pools. A container shows names only, so the
pool comes from what its pod was allocated, or failing that from what its node has published. That
a driver publishes a device while a pod has it is nowhere asked for: what it had published counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from conformance.scenario.base import ObjectSelector
from conformance.scenario.driver.probe_ways import published_attributes
from conformance.scenario.expectations.base import Cluster
from kube.observations import ContainerView
from kube.values import Obj, generate_name


class Device(NamedTuple):
    """A device of the driver, and the pools that it may be of.

    More than one: pools of a node use the same name, and the claim that would tell is gone. None:
    nobody published or allocated such a device.
    """

    name: str
    pools: frozenset[str]

    def __str__(self) -> str:
        return " or ".join(f"{pool}/{self.name}" for pool in sorted(self.pools)) or self.name


class HeldDevice(NamedTuple):
    """A device that somebody has, or a share of one that claims may share (KEP-5075).

    ``share``: the share's id in the allocation; "" of a device that is had alone, or where the
    claim that would tell is gone.
    """

    device: Device
    share: str = ""


def list_allocated(claim: Obj, driver: str, requests: Iterable[str | None]) -> Iterator[HeldDevice]:
    """Yield what a claim has of a driver for some of its requests; None is all of them."""
    wanted_requests = set(requests)
    allocation = claim.get("status", {}).get("allocation", {})
    for result in allocation.get("devices", {}).get("results", ()):
        if (
            result["driver"] == driver
            and {None, result["request"].partition("/")[0]} & wanted_requests
        ):
            device = Device(result["device"], frozenset({result["pool"]}))
            yield HeldDevice(device, result.get("shareID") or "")


def share_devices(
    shown_devices: Iterable[Device], pod: Obj, container: str, cluster: Cluster
) -> frozenset[HeldDevice]:
    """Return the devices that a container sees, each as often as its pod has shares of it."""
    held_devices = set(list_allocated_to_pod(pod, container, cluster))
    return frozenset(
        held_device
        for device in shown_devices
        for held_device in {candidate for candidate in held_devices if candidate.device == device}
        or {HeldDevice(device)}
    )


def is_shareable(device: Device, cluster: Cluster) -> bool:
    """Return whether several claims may have the device at once."""
    return bool(find_published_device(device, cluster).get("allowMultipleAllocations"))


def identify_devices(
    names: Iterable[str], pod: Obj, container: str, cluster: Cluster
) -> frozenset[Device]:
    """Return the devices that a container of a pod shows by these names.

    A name that the pod was not allocated and that no pool of its node has is of no pool: else a
    profile could take any text for a device, and prove anything with it.
    """
    container_devices = {
        held_device.device for held_device in list_allocated_to_pod(pod, container, cluster)
    }
    pod_devices = {held_device.device for held_device in list_allocated_to_pod(pod, None, cluster)}
    node = str(pod["spec"].get("nodeName"))
    identified: set[Device] = set()
    for name in names:
        same_name_devices = {device for device in container_devices if device.name == name}
        if not same_name_devices:
            pools = [device.pools for device in pod_devices if device.name == name]
            pools = pools or [frozenset(_list_pools_with_device(name, node, cluster))]
            same_name_devices = {Device(name, frozenset().union(*pools))}
        identified |= same_name_devices
    return frozenset(identified)


def identify_requested_devices(
    shown_requests: Collection[str], pod: Obj, cluster: Cluster
) -> frozenset[Device]:
    """Return the devices of the requests that a container of a pod shows (`Probe.read_requests`).

    A request that has none now stands for a device of its own, and so does one of a claim that is
    gone, as those of a pod that has ended are; one of no claim of the pod, too, and that is of no
    pool.
    """
    if not shown_requests:  # most drivers' containers show devices, not requests
        return frozenset()
    assert cluster.profile is not None, "scenarios with devices run with a driver profile"
    devices_by_request: dict[str, set[Device]] = {}
    for claim, _ in _list_claims(pod, None, cluster):
        for request in claim["spec"]["devices"].get("requests", ()):
            text = _as_variable_name(f"{claim['metadata']['name']}_{request['name']}")
            held_devices = list_allocated(claim, cluster.profile.driver, [request["name"]])
            devices_by_request[text] = {held_device.device for held_device in held_devices}
    gone_prefixes = tuple(map(_as_variable_name, _list_prefixes_of_gone_claims(pod, cluster)))
    node = frozenset({str(pod["spec"].get("nodeName"))})
    return frozenset(
        device
        for text in shown_requests
        for device in devices_by_request.get(text)
        or {
            Device(
                f"claim_{text}",
                node
                if text in devices_by_request or text.startswith(gone_prefixes)
                else frozenset[str](),
            )
        }
    )


def _list_prefixes_of_gone_claims(pod: Obj, cluster: Cluster) -> Iterator[str]:
    """Yield how the names of requests begin whose claim a pod had, and that is gone.

    For a pod that has ended the resource claim controller may generate the claim again, and name
    that one in its status (kubernetes/kubernetes#141274): then only the name's beginning is known.
    """
    status = pod.get("status", {})
    named = [*pod["spec"].get("resourceClaims", ()), *(status.get("resourceClaimStatuses") or ())]
    for entry in named:
        name = entry.get("resourceClaimName")
        if name and cluster.get("ResourceClaim", name) is None:
            yield f"{name}_"
        if "resourceClaimTemplateName" in entry and status.get("phase") in ("Succeeded", "Failed"):
            yield generate_name(pod["metadata"]["name"], entry["name"])


def _as_variable_name(text: str) -> str:
    """Return a name as a container can have it in the name of a variable."""
    return re.sub("[^a-zA-Z0-9]", "_", text)


def list_allocated_to_pod(
    pod: Obj, container: str | None, cluster: Cluster
) -> Iterator[HeldDevice]:
    """Yield what the claims of a pod have for one of its containers; None is any of them."""
    assert cluster.profile is not None, "scenarios with devices run with a driver profile"
    for claim, requests in _list_claims(pod, container, cluster):
        yield from list_allocated(claim, cluster.profile.driver, requests)


def share_a_device(entries: Collection[str], cluster: Cluster) -> bool:
    """Return whether two of these containers, ``pod/container``, have shares of one device."""
    shared: Counter[Device] = Counter()
    for entry in entries:
        name, _, container = entry.partition("/")
        pod = cluster.get("Pod", name)
        if pod is not None:
            held_devices = list_allocated_to_pod(pod, container, cluster)
            shared.update({held_device.device for held_device in held_devices if held_device.share})
    return any(count > 1 for count in shared.values())


def _list_claims(
    pod: Obj, container: str | None, cluster: Cluster
) -> Iterator[tuple[Obj, list[str | None]]]:
    """Yield the claims that one of a pod's containers uses (None: any), with its requests."""
    name = pod["metadata"]["name"]
    for claim_name, requests in _list_claim_names(pod, container):
        claim = cluster.claim_of(name, claim_name)
        if claim is not None:
            yield claim, requests
    extended: dict[str, Any] = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
    claim = cluster.get("ResourceClaim", extended["resourceClaimName"]) if extended else None
    if claim is not None:
        mappings = extended.get("requestMappings", ())
        mine = (item for item in mappings if container in (None, item["containerName"]))
        yield claim, [item["requestName"] for item in mine]


def _list_claim_names(pod: Obj, container: str | None) -> Iterator[tuple[str, list[str | None]]]:
    """Yield the names in ``spec.resourceClaims`` that a container uses, with their requests."""
    spec = pod["spec"]
    if container is None:
        for entry in spec.get("resourceClaims", ()):
            yield entry["name"], [None]
    for container_spec in (*spec["containers"], *spec.get("initContainers", ())):
        if container_spec["name"] == container:
            for entry in container_spec.get("resources", {}).get("claims", ()):
                request = entry.get("request")
                yield entry["name"], [request and request.partition("/")[0]]


def read_shown_names(view: ContainerView, pod: Obj, cluster: Cluster) -> dict[str, frozenset[str]]:
    """Return the devices that a container of a pod shows: way -> names, also for messages."""
    assert cluster.profile is not None, "scenarios with devices run with a driver profile"
    probe, driver = cluster.profile.spec.probe, cluster.profile.driver
    devices = (
        [device for _, device in _list_devices_on_node(str(pod["spec"].get("nodeName")), cluster)]
        if any(way.attribute for way in probe.ways.values())
        else ()
    )
    return probe.read_devices(view, driver, published_attributes(devices, driver))


def _list_pools_with_device(name: str, node: str, cluster: Cluster) -> Iterator[str]:
    """Return the pools with a device of that name that is on a node, or on no one node."""
    return (pool for pool, device in _list_devices_on_node(node, cluster) if device["name"] == name)


def _list_devices_on_node(node: str, cluster: Cluster) -> Iterator[tuple[str, Obj]]:
    """Yield the driver's devices that are on a node, or on no one node, each with its pool."""
    for device_node, pool, device in _list_published_devices(cluster):
        if device_node in ("", node):
            yield pool, dict(device)


def find_published_device(device: Device, cluster: Cluster) -> Obj:
    """Return a device as its ResourceSlice has it, or had it last; empty if none ever had."""
    for _, pool, published_device in _list_published_devices(cluster):
        if pool in device.pools and published_device["name"] == device.name:
            return dict(published_device)
    return {}


def _list_published_devices(cluster: Cluster) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield node ("": none), pool and device of what the driver publishes, then published."""
    assert cluster.profile is not None, "scenarios with devices run with a driver profile"
    published_keys: set[tuple[str, str, str]] = set()
    for resource_slice in cluster.find(ObjectSelector(kind="ResourceSlice")):
        spec = resource_slice["spec"]
        if spec["driver"] == cluster.profile.driver:
            node, pool = spec.get("nodeName") or "", spec["pool"]["name"]
            for device in spec.get("devices") or ():
                published_keys.add((node, pool, device["name"]))
                yield node, pool, device
    for earlier in cluster.observe.published_before(cluster.profile.driver):
        if (earlier.node, earlier.pool, earlier.device["name"]) not in published_keys:
            yield earlier.node, earlier.pool, earlier.device
