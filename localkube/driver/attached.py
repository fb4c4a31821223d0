"""Whether a driver that was started is attached to a node's kubelet and has published its devices.

It counts as attached when all of these hold, whatever language it is written in:
- the kubelet has a registered plugin (leftovers of earlier ones are removed first). A registration
  socket that exists says little, because the kubelet may have refused the driver; the kubelet's
  own metric `plugin_manager_total_plugins{state="actual_state_of_world"}` counts those that it
  accepted (pkg/kubelet/pluginmanager/metrics, 1.12 and later).
- the driver calls itself by the name that its slices shall have. A kubelet reports a refusal to the
  driver alone, and accepts a driver under any name, so that pods would wait for one that never
  comes. Asking the same question on the same sockets shows both before a pod does.
- the API server has a ResourceSlice of the driver's name and this node, and as many slices of its
  pool's newest generation as `spec.pool.resourceSliceCount` says.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from kube.base.text import one_line
from kube.kubelet import pluginregistration_v1_pb2 as registration
from kube.kubelet.plugins import INFO_SECONDS, KNOWN_SERVICES, KUBELET_ROOT, PLUGIN_TYPE
from kube.kubelet.rpc import make_stub
from kube.slices import pools_complete
from localkube.api import LocalApi, accepts_connections

PUBLISHED_AGAIN_SECONDS = 120.0
"""Longest until a driver has published again what a kubelet has deleted at its start.

Kubernetes' helper does so 30 s after it heard of the deletion (resourceslice, DefaultSyncDelay);
after a restart of the API server it may hear of it 30 s late (client-go, reflector backoff).
"""

ATTACH_SECONDS = 60.0  # Longest that a driver may take for a step of becoming attached.

NAMED_SECONDS = 10.0
"""From the first plugin that is registered; one command may start several drivers."""


_SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"

_REGISTERED: Final = re.compile(
    r'^plugin_manager_total_plugins\{(?=[^}]*state="actual_state_of_world")'
    r'[^}]*socket_path="(?P<path>[^"]*)"[^}]*\} (?P<count>\S+)$',
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A driver's answer.

    ``endpoint``: the path of its service, as it is named to the kubelet.
    """

    name: str
    services: tuple[str, ...]
    endpoint: str


def list_offers(registrar: Path) -> list[Offer]:
    """Return what the DRA drivers below a kubelet's folder of registration sockets answer."""
    offered = []
    for path in sorted(path for path in registrar.rglob("*") if path.is_socket()):
        with grpc.insecure_channel(f"unix:{path}") as channel:
            ask = make_stub(registration, channel).GetInfo
            try:
                info = ask(registration.InfoRequest(), timeout=INFO_SECONDS)
            except grpc.RpcError:
                continue  # it does not serve yet, or not any more
        if info.type == PLUGIN_TYPE:
            endpoint = info.endpoint or str(path)
            offered.append(Offer(info.name, tuple(info.supported_versions), endpoint))
    return offered


def explain_refusal(driver_offers: Collection[Offer]) -> str:
    """Explain why no kubelet will register any of these drivers; "" if one can be, or none is."""
    if not driver_offers or any(
        set(offer.services) & set(KNOWN_SERVICES) for offer in driver_offers
    ):
        return ""
    descriptions = (
        f"{offer.name} offers {', '.join(offer.services) or 'no service'}"
        for offer in driver_offers
    )
    return (
        f"no kubelet registers it: {'; '.join(descriptions)}; what kubelets of Kubernetes "
        f"1.34 to 1.37 know is {', '.join(KNOWN_SERVICES)}"
    )


def explain_undiallable(driver_offers: Collection[Offer], root: Path) -> str:
    """Which of these drivers names a socket at which nobody answers; "" if none does.

    ``root``: the kubelet's root, which is `KUBELET_ROOT` on the node.
    """
    for offer in driver_offers:
        path = Path(offer.endpoint)
        below = path.is_relative_to(KUBELET_ROOT)
        if not accepts_connections(root / path.relative_to(KUBELET_ROOT) if below else path):
            return (
                f"{offer.name} registered the endpoint {one_line(offer.endpoint, 200)}, where no "
                "kubelet reaches it: it will be called for no claim, and its slices are deleted "
                f"30 s later. It must listen below KUBELET_PLUGINS_DIRECTORY_PATH or {KUBELET_ROOT}"
            )
    return ""


def registered_plugins(kubelet: LocalApi) -> dict[str, int]:
    """Return registration socket -> how often its plugin is registered, as the kubelet counts."""
    text = kubelet.text("/metrics") or ""
    return {
        match["path"]: int(float(match["count"]))
        for match in _REGISTERED.finditer(text)
        if float(match["count"]) > 0
    }


def has_published(api: LocalApi, driver_name: str, node_name: str) -> bool:
    """Return whether each of the driver's pools for this node is complete, and there is one."""
    document = api.get(_SLICES)
    items = [] if document is None else document["items"]
    specs = [item["spec"] for item in items]
    return pools_complete(
        [
            spec
            for spec in specs
            if spec["driver"] == driver_name and spec.get("nodeName") == node_name
        ]
    )


def delete_slices(api: LocalApi, driver_name: str, node_name: str = "") -> None:
    """Delete the driver's ResourceSlices, of one node or of all. Raises ApiError or TargetError."""
    selector = f"spec.driver%3D{driver_name}"
    if node_name:
        selector += f",spec.nodeName%3D{node_name}"
    api.delete(f"{_SLICES}?fieldSelector={selector}")
