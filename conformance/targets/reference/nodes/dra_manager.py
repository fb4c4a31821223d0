"""The kubelet's DRA manager: which claims are prepared, for which pods, and what containers get.

Follows pkg/kubelet/cm/dra/manager.go: a claim is prepared once on a node and unprepared after the
last of its pods stopped; a container gets the devices of the claims and requests that it names. A
claim counts as prepared once all claims of a pod are, so after a refusal the driver is asked for
each of them again; and what it was asked for is unprepared, whether it was refused or not. A
driver is not asked where all of its devices in the claim say so (claiminfo.go, gate
DRAOptionalNodeOperations).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from conformance.scenario.metrics import CALLS
from conformance.targets.base import Obj
from conformance.targets.reference import pods
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.nodes.driver import NodeDriver
from conformance.targets.reference.store import name_of, namespace_of, uid_of
from nvml_driver.cdi.specs import ContainerEdits
from nvml_driver.errors import DriverError
from nvml_driver.model.prepared import PreparedDevice

_PREPARE: Final = "NodePrepareResources"
_UNPREPARE: Final = "NodeUnprepareResources"


_SERVICE: Final = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"


class NotPreparedError(Exception):
    """Why a pod's claims cannot be prepared now, in the kubelet's words."""


@dataclass(slots=True)
class Prepared:
    """A claim that the driver was asked for.

    Attributes:
        devices: what the driver answered.
        pods: uids of the node's pods that use it.
        complete: it is prepared, and the driver is not asked again.
        unprepare: the driver is asked when no pod uses it any more.
    """

    devices: list[PreparedDevice] = field(default_factory=list)
    pods: set[str] = field(default_factory=set)
    complete: bool = False
    unprepare: bool = True


class DRAManager:
    """The prepared claims of one node.

    Attributes:
        prepared: by the uid of the claim.
    """

    def __init__(self, cluster: Cluster, driver: NodeDriver | None, component: str) -> None:
        self._cluster = cluster
        self._component = component
        self._asked = False
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
        with self._one_call(_PREPARE):
            for entry, claim in zip(asked, wanted, strict=True):
                if not entry.complete:
                    entry.unprepare = bool(self.asked(claim["status"]["allocation"], _UNPREPARE))
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
        with self._one_call(_UNPREPARE):
            self._let_go(pod_uid)

    def _let_go(self, pod_uid: str) -> None:
        for claim_uid, prepared in list(self.prepared.items()):
            if pod_uid not in prepared.pods:
                continue
            if prepared.pods == {pod_uid}:
                try:
                    if self._driver is not None and prepared.unprepare:
                        if not self._is_registered(self._driver.name):
                            text = f"DRA driver {self._driver.name} is not registered"
                            raise NotPreparedError(text)
                        self._asked = True
                        self._driver.unprepare(claim_uid)
                except DriverError as error:
                    raise NotPreparedError(f"NodeUnprepareResources: {error}") from None
                del self.prepared[claim_uid]
            prepared.pods.discard(pod_uid)

    @contextmanager
    def _one_call(self, method: str) -> Iterator[None]:
        """Count that the driver was asked, once for all claims of a pod.

        What it says of a claim is in its answer, so the call itself succeeds
        (newMetricsInterceptor of pkg/kubelet/cm/dra/plugin/dra_plugin.go).
        """
        self._asked = False
        try:
            yield
        finally:
            if self._asked and self._driver is not None:
                self._cluster.counts.count(
                    self._component,
                    CALLS,
                    driver_name=self._driver.name,
                    method_name=f"{_SERVICE}/{method}",
                    grpc_status_code="OK",
                )

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

    def _is_registered(self, driver: str) -> bool:
        known = self._driver
        return known is not None and driver == known.name and known.stopped_at is None

    def _check_driver(self, allocation: Obj) -> None:
        for driver in self.asked(allocation, _PREPARE):
            if not self._is_registered(driver):
                raise NotPreparedError(f"DRA driver {driver} is not registered")

    def asked(self, allocation: Obj, operation: str) -> list[str]:
        """The drivers of an allocation that have a device for which an operation is not skipped."""
        results = (allocation.get("devices") or {}).get("results") or []
        on = self._cluster.gates.get("DRAOptionalNodeOperations")
        asked = {
            result["driver"]: None
            for result in results
            if not (on and {"*", operation} & {*(result.get("skipNodeOperations") or ())})
        }
        return list(asked)

    def _prepare(self, claim: Obj) -> list[PreparedDevice]:
        if self._driver is None or not self.asked(claim["status"]["allocation"], _PREPARE):
            return []
        self._asked = True
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

    def allocated_resources_status(self, pod: Obj, container: Obj) -> list[Obj]:
        """``allocatedResourcesStatus`` of a container: the health of what it was given.

        Source: pkg/kubelet/cm/dra/manager.go, UpdateAllocatedResourcesStatus.
        """
        if self._driver is None or not self._cluster.gates.get("ResourceHealthStatus"):
            return []
        claims = {name: claim for name, claim in self.claims_of(pod) if claim is not None}
        found = {}
        for entry in (container.get("resources") or {}).get("claims") or []:
            claim, request = claims.get(entry["name"]), entry.get("request") or ""
            prepared = self.prepared.get(uid_of(claim)) if claim is not None else None
            if prepared is not None:
                name = f"claim:{entry['name']}" + (f"/{request}" if request else "")
                devices = (d for d in prepared.devices if _is_for(d, request.partition("/")[0]))
                health = {each["resourceID"]: each for each in map(self._health, devices)}
                found[name] = [*health.values()]
        return [{"name": name, "resources": health} for name, health in found.items() if health]

    def _health(self, device: PreparedDevice) -> Obj:
        assert self._driver is not None
        health, message = self._driver.health(device.device_name)
        fallback = f"{self._driver.name}/{device.pool_name}/{device.device_name}"
        entry: Obj = {"resourceID": next(iter(device.cdi_device_ids), fallback), "health": health}
        if message and self._cluster.gates.get("ResourceHealthStatusMessage"):
            entry["message"] = message
        return entry

    def devices_of(self, claim_uid: str, request: str = "") -> Iterator[str]:
        """The CDI devices of a prepared claim, or of one of its requests."""
        for device in self.prepared[claim_uid].devices:
            if _is_for(device, request):
                yield from device.cdi_device_ids


def _is_for(device: PreparedDevice, request: str) -> bool:
    """Whether a device is given to who names a request, or none."""
    return not request or not device.request_names or request in device.request_names
