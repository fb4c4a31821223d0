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
from conformance.scenario.driver.ways import published_attributes
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


class Held(NamedTuple):
    """A device that somebody has, or a share of one that claims may share (KEP-5075).

    ``share``: the share's id in the allocation; "" of a device that is had alone, or where the
    claim that would tell is gone.
    """

    device: Device
    share: str = ""


def allocated(claim: Obj, driver: str, requests: Iterable[str | None]) -> Iterator[Held]:
    """What a claim has of a driver for some of its requests; None is all of them."""
    wanted = set(requests)
    allocation = claim.get("status", {}).get("allocation", {})
    for result in allocation.get("devices", {}).get("results", ()):
        if result["driver"] == driver and {None, result["request"].partition("/")[0]} & wanted:
            device = Device(result["device"], frozenset({result["pool"]}))
            yield Held(device, result.get("shareID") or "")


def held(seen: Iterable[Device], pod: Obj, container: str, cluster: Cluster) -> frozenset[Held]:
    """The devices that a container sees, each as often as its pod has shares of it for it."""
    own = set(allocated_to(pod, container, cluster))
    return frozenset(
        one
        for device in seen
        for one in {each for each in own if each.device == device} or {Held(device)}
    )


def is_shareable(device: Device, cluster: Cluster) -> bool:
    """Whether several claims may have the device at once."""
    return bool(published(device, cluster).get("allowMultipleAllocations"))


def identified(
    names: Iterable[str], pod: Obj, container: str, cluster: Cluster
) -> frozenset[Device]:
    """The devices that a container of a pod shows by these names.

    A name that the pod was not allocated and that no pool of its node has is of no pool: else a
    profile could take any text for a device, and prove anything with it.
    """
    own = {one.device for one in allocated_to(pod, container, cluster)}
    others = {one.device for one in allocated_to(pod, None, cluster)}
    node = str(pod["spec"].get("nodeName"))
    found: set[Device] = set()
    for name in names:
        known = {device for device in own if device.name == name}
        if not known:
            pools = [device.pools for device in others if device.name == name]
            pools = pools or [frozenset(_published(name, node, cluster))]
            known = {Device(name, frozenset().union(*pools))}
        found |= known
    return frozenset(found)


def requested(shown: Collection[str], pod: Obj, cluster: Cluster) -> frozenset[Device]:
    """The devices of the requests that a container of a pod shows (`Probe.requests`).

    A request that has none now stands for a device of its own, and so does one of a claim that is
    gone, as those of a pod that has ended are; one of no claim of the pod, too, and that is of no
    pool.
    """
    if not shown:  # most drivers' containers show devices, not requests
        return frozenset()
    assert cluster.profile is not None, "scenarios with devices run with a driver profile"
    own: dict[str, set[Device]] = {}
    for claim, _ in _claims(pod, None, cluster):
        for request in claim["spec"]["devices"].get("requests", ()):
            text = _shown(f"{claim['metadata']['name']}_{request['name']}")
            its = allocated(claim, cluster.profile.driver, [request["name"]])
            own[text] = {one.device for one in its}
    gone = tuple(map(_shown, _gone(pod, cluster)))
    node = frozenset({str(pod["spec"].get("nodeName"))})
    return frozenset(
        device
        for text in shown
        for device in own.get(text)
        or {
            Device(
                f"claim_{text}", node if text in own or text.startswith(gone) else frozenset[str]()
            )
        }
    )


def _gone(pod: Obj, cluster: Cluster) -> Iterator[str]:
    """How the names of those requests begin whose claim a pod had, and that is gone.

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


def _shown(text: str) -> str:
    """A name as a container can have it in a variable's."""
    return re.sub("[^a-zA-Z0-9]", "_", text)


def allocated_to(pod: Obj, container: str | None, cluster: Cluster) -> Iterator[Held]:
    """What the claims of a pod have for one of its containers; None: for any."""
    assert cluster.profile is not None, "scenarios with devices run with a driver profile"
    for claim, requests in _claims(pod, container, cluster):
        yield from allocated(claim, cluster.profile.driver, requests)


def share_a_device(entries: Collection[str], cluster: Cluster) -> bool:
    """Whether two of these containers, ``pod/container``, have shares of one device."""
    shared: Counter[Device] = Counter()
    for entry in entries:
        name, _, container = entry.partition("/")
        pod = cluster.get("Pod", name)
        if pod is not None:
            own = allocated_to(pod, container, cluster)
            shared.update({one.device for one in own if one.share})
    return any(count > 1 for count in shared.values())


def _claims(
    pod: Obj, container: str | None, cluster: Cluster
) -> Iterator[tuple[Obj, list[str | None]]]:
    """The claims that one of a pod's containers uses (None: any), with its requests of each."""
    name = pod["metadata"]["name"]
    for claim_name, requests in _named(pod, container):
        claim = cluster.claim_of(name, claim_name)
        if claim is not None:
            yield claim, requests
    extended: dict[str, Any] = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
    claim = cluster.get("ResourceClaim", extended["resourceClaimName"]) if extended else None
    if claim is not None:
        mappings = extended.get("requestMappings", ())
        mine = (item for item in mappings if container in (None, item["containerName"]))
        yield claim, [item["requestName"] for item in mine]


def _named(pod: Obj, container: str | None) -> Iterator[tuple[str, list[str | None]]]:
    """Names in ``spec.resourceClaims`` that a container uses, with their requests."""
    spec = pod["spec"]
    if container is None:
        for entry in spec.get("resourceClaims", ()):
            yield entry["name"], [None]
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        if one["name"] == container:
            for entry in one.get("resources", {}).get("claims", ()):
                request = entry.get("request")
                yield entry["name"], [request and request.partition("/")[0]]


def shown(view: ContainerView, pod: Obj, cluster: Cluster) -> dict[str, frozenset[str]]:
    """Way -> names of the devices that a container of a pod shows so; for messages, too."""
    assert cluster.profile is not None, "scenarios with devices run with a driver profile"
    probe, driver = cluster.profile.spec.probe, cluster.profile.driver
    devices = (
        [device for _, device in _there(str(pod["spec"].get("nodeName")), cluster)]
        if any(way.attribute for way in probe.ways.values())
        else ()
    )
    return probe.seen(view, driver, published_attributes(devices, driver))


def _published(name: str, node: str, cluster: Cluster) -> Iterator[str]:
    """The pools with a device of that name that is on a node, or on no one node."""
    return (pool for pool, device in _there(node, cluster) if device["name"] == name)


def _there(node: str, cluster: Cluster) -> Iterator[tuple[str, Obj]]:
    """The driver's devices that are on a node, or on no one node, each with its pool."""
    for place, pool, device in _devices(cluster):
        if place in ("", node):
            yield pool, dict(device)


def published(device: Device, cluster: Cluster) -> Obj:
    """A device as its ResourceSlice has it, or had it last; empty if none ever had."""
    for _, pool, found in _devices(cluster):
        if pool in device.pools and found["name"] == device.name:
            return dict(found)
    return {}


def _devices(cluster: Cluster) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Node ("": none), pool and device: what the driver publishes, then what it did before."""
    assert cluster.profile is not None, "scenarios with devices run with a driver profile"
    now: set[tuple[str, str, str]] = set()
    for found in cluster.find(ObjectSelector(kind="ResourceSlice")):
        spec = found["spec"]
        if spec["driver"] == cluster.profile.driver:
            node, pool = spec.get("nodeName") or "", spec["pool"]["name"]
            for device in spec.get("devices") or ():
                now.add((node, pool, device["name"]))
                yield node, pool, device
    for one in cluster.observe.published_before(cluster.profile.driver):
        if (one.node, one.pool, one.device["name"]) not in now:
            yield one.node, one.pool, one.device
