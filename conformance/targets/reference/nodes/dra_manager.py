"""The kubelet's DRA manager: which claims are prepared, for which pods, and what containers get.

Follows pkg/kubelet/cm/dra/manager.go: a claim is prepared once on a node and unprepared after the
last of its pods stopped; a container gets the devices of the claims and requests that it names. A
claim counts as prepared once all claims of a pod are, so after a refusal the driver is asked for
each of them again; and what it was asked for is unprepared, whether it was refused or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from conformance.targets.base import Obj
from conformance.targets.reference import pods
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.nodes.driver import NodeDriver
from conformance.targets.reference.store import name_of, namespace_of, uid_of
from nvml_driver.cdi.specs import ContainerEdits
from nvml_driver.errors import DriverError
from nvml_driver.model.prepared import PreparedDevice


class NotPreparedError(Exception):
    """Why a pod's claims cannot be prepared now, in the kubelet's words."""


@dataclass(slots=True)
class Prepared:
    """A claim that the driver was asked for.

    Attributes:
        devices: what the driver answered.
        pods: uids of the node's pods that use it.
        complete: it is prepared, and the driver is not asked again.
    """

    devices: list[PreparedDevice] = field(default_factory=list)
    pods: set[str] = field(default_factory=set)
    complete: bool = False


class DRAManager:
    """The prepared claims of one node.

    Attributes:
        prepared: by the uid of the claim.
    """

    def __init__(self, cluster: Cluster, driver: NodeDriver | None) -> None:
        self._cluster = cluster
        self._driver = driver
        self.prepared: dict[str, Prepared] = {}

    def prepare(self, pod: Obj) -> None:
        """Prepare all claims of a pod, whether its containers use them or not.

        Raises:
            NotPreparedError: not now; what was prepared stays, and the next attempt goes on.
        """
        wanted = []
        for _, claim in self.claims_of(pod):
            if claim is None:
                raise NotPreparedError("ResourceClaim not created yet")
            if not pods.is_reserved(claim, pod):
                raise NotPreparedError(
                    f"ResourceClaim {name_of(claim)}: pod {name_of(pod)} ({uid_of(pod)}) is not "
                    f"allowed to use ResourceClaim {name_of(claim)} ({uid_of(claim)})"
                )
            allocation = claim["status"].get("allocation")
            if allocation is None:
                raise NotPreparedError(f"ResourceClaim {name_of(claim)}: not allocated")
            self._check_driver(allocation)
            wanted.append(claim)
        asked = [self.prepared.setdefault(uid_of(claim), Prepared()) for claim in wanted]
        for entry in asked:
            entry.pods.add(uid_of(pod))
        for entry, claim in zip(asked, wanted, strict=True):
            if not entry.complete:
                entry.devices = self._prepare(claim)
        for entry in asked:
            entry.complete = True

    def restart(self) -> None:
        """The kubelet knows the claims from its checkpoint, but not that they are prepared."""
        for entry in self.prepared.values():
            entry.complete = False

    def unprepare(self, pod_uid: str) -> None:
        """Let go of a pod's claims.

        Raises:
            NotPreparedError: a claim could not be unprepared; call again.
        """
        for claim_uid, prepared in list(self.prepared.items()):
            if pod_uid not in prepared.pods:
                continue
            if prepared.pods == {pod_uid}:
                try:
                    if self._driver is not None:
                        self._driver.unprepare(claim_uid)
                except DriverError as error:
                    raise NotPreparedError(f"NodeUnprepareResources: {error}") from None
                del self.prepared[claim_uid]
            prepared.pods.discard(pod_uid)

    def edits(self, pod: Obj, container: Obj) -> ContainerEdits:
        """What a container of a prepared pod gets through CDI.

        Raises:
            NotPreparedError: a CDI device cannot be resolved.
        """
        ids = list(dict.fromkeys(self.cdi_device_ids(pod, container)))
        if not ids or self._driver is None:
            return ContainerEdits({}, ())
        try:
            return self._driver.edits(ids)
        except DriverError as error:
            raise NotPreparedError(f"CDI device injection failed: {error}") from None

    def _check_driver(self, allocation: Obj) -> None:
        results = (allocation.get("devices") or {}).get("results") or []
        for driver in {result["driver"]: None for result in results}:
            if self._driver is None or driver != self._driver.name:
                raise NotPreparedError(f"DRA driver {driver} is not registered")

    def _prepare(self, claim: Obj) -> list[PreparedDevice]:
        if self._driver is None:
            return []
        try:
            return self._driver.prepare(claim)
        except DriverError as error:
            raise NotPreparedError(
                f"NodePrepareResources failed for ResourceClaim {name_of(claim)}: {error}"
            ) from None

    def claims_of(self, pod: Obj) -> Iterator[tuple[str, Obj | None]]:
        """Pod claim name -> claim; the special claim for extended resources has no name."""
        for entry, claim in self._cluster.claims_of(pod):
            yield entry["name"], claim
        special = self._special_of(pod)
        if special:
            name = special["resourceClaimName"]
            yield "", self._cluster.store.get("ResourceClaim", namespace_of(pod), name)

    def _special_of(self, pod: Obj) -> Obj:
        found: Obj = pod["status"].get("extendedResourceClaimStatus") or {}
        return found

    def cdi_device_ids(self, pod: Obj, container: Obj) -> Iterator[str]:
        """The CDI devices of the claims and requests that a container names."""
        wanted = [
            (entry["name"], entry.get("request") or "")
            for entry in (container.get("resources") or {}).get("claims") or []
        ]
        wanted += [
            ("", mapping["requestName"])
            for mapping in self._special_of(pod).get("requestMappings", [])
            if mapping["containerName"] == container["name"]
        ]
        claims = {name: claim for name, claim in self.claims_of(pod) if claim is not None}
        for name, request in wanted:
            if name in claims:
                yield from self.devices_of(uid_of(claims[name]), request)

    def devices_of(self, claim_uid: str, request: str = "") -> Iterator[str]:
        """The CDI devices of a prepared claim, or of one of its requests."""
        for device in self.prepared[claim_uid].devices:
            names = device.request_names
            if not request or not names or request in names:
                yield from device.cdi_device_ids
