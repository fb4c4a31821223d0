"""The PodResources API of a reference's kubelet.

Follows List of pkg/kubelet/apis/podresources/server_v1.go, GetDynamicResources of
pkg/kubelet/cm/container_manager_linux.go and GetContainerClaimInfos of
pkg/kubelet/cm/dra/manager.go:
pods that have not ended, without init containers that end; of claims those that a container names,
each as a whole; none of a container if one of them is not known yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.scenario.observation import ListedClaim, ListedDevice
from conformance.targets.reference import pods
from conformance.targets.reference.nodes.dra_manager import DRAManager
from conformance.targets.reference.store import name_of, namespace_of, uid_of
from conformance.targets.seam.values import Obj


class PodResources:
    """What one kubelet lists."""

    def __init__(self, manager: DRAManager) -> None:
        self._manager = manager

    def listed(self, pod: Obj, container: str) -> Sequence[ListedClaim] | None:
        """The claims of a container of a pod of the node; None: it is not listed."""
        spec = pod["spec"]
        sidecars = [
            one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"
        ]
        for one in (*sidecars, *spec["containers"]):
            if one["name"] == container and not pods.is_finished(pod):
                claims = self.claims_of(pod, one)
                known = all(uid_of(claim) in self._manager.prepared for claim in claims)
                return [self._claim(claim) for claim in claims] if known else []
        return None

    def claims_of(self, pod: Obj, container: Obj) -> list[Obj]:
        """The claims that a container names, or has for extended resources."""
        named = {one["name"] for one in (container.get("resources") or {}).get("claims") or []}
        special = pod["status"].get("extendedResourceClaimStatus") or {}
        mappings = special.get("requestMappings") or []
        if any(one["containerName"] == container["name"] for one in mappings):
            named.add("")
        claims = self._manager.claims_of(pod)
        return [claim for name, claim in claims if claim is not None and name in named]

    def _claim(self, claim: Obj) -> ListedClaim:
        devices = tuple(
            ListedDevice(driver, one.pool_name, one.device_name, tuple(one.cdi_device_ids))
            for driver, given in self._manager.prepared[uid_of(claim)].devices.items()
            for one in given
        )
        return ListedClaim(namespace_of(claim), name_of(claim), devices)
