"""The kubelet's DRA manager: which claims are prepared, for which pods, and what containers get.

Follows pkg/kubelet/cm/dra/manager.go: a claim is prepared once on a node and unprepared after the
last of its pods stopped; a container gets the devices of the claims and requests that it names. A
claim counts as prepared once all claims of a pod are, so after a refusal the driver is asked for
each of them again; and what it was asked for is unprepared, whether it was refused or not. Of
several drivers each is asked for the claims that have devices of it, all in one call, one driver
after the other; the next one is not asked once a claim was refused. A driver is not asked where all
of its devices in the claim say so (claiminfo.go, gate DRAOptionalNodeOperations).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from kube.cdi.edits import ContainerEdits, UnresolvableError
from kube.observations import CALLS, OPERATIONS, DriverCall
from kube.values import Obj
from kubesim import pods
from kubesim.cluster import Cluster
from kubesim.nodes.driver import DriverError, NodeDriver, PreparedDevice
from kubesim.resources import KINDS
from kubesim.store import name_of, namespace_of, not_found, uid_of

_PREPARE: Final = "NodePrepareResources"
_UNPREPARE: Final = "NodeUnprepareResources"
_WITHOUT_MARK: Final = ("1.34", "1.35")
"""Minors whose kubelets let a pod use a claim that is being unprepared."""

_SERVICE: Final = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"


class NotPreparedError(Exception):
    """Why a pod's claims cannot be prepared now, in the kubelet's words."""


@dataclass(slots=True)
class Prepared:
    """A claim that the driver was asked for.

    Attributes:
        devices: what each driver answered.
        pods: uids of the node's pods that use it.
        complete: it is prepared, and the driver is not asked again.
        unprepare: the drivers that are asked when no pod uses it any more.
        claim: its namespace and name.
        unpreparing: it is being unprepared, and gets no more pods.
    """

    devices: dict[str, list[PreparedDevice]] = field(default_factory=dict)
    pods: set[str] = field(default_factory=set)
    complete: bool = False
    unprepare: Sequence[str] = ()
    claim: tuple[str, str] = ("", "")
    unpreparing: bool = False


class DRAManager:
    """The prepared claims of one node.

    Attributes:
        drivers: those of the node; the first of them knows where CDI specs are.
        prepared: by the uid of the claim.
        unheard_until: driver -> virtual time until which nothing is known of its devices' health.
    """

    def __init__(self, cluster: Cluster, driver: NodeDriver | None, component: str) -> None:
        self._cluster = cluster
        self._component = component
        self._called_drivers: dict[str, None] = {}
        self.drivers = [driver] if driver is not None else []
        self.prepared: dict[str, Prepared] = {}
        self.unheard_until: dict[str, float] = {}

    def prepare(self, pod: Obj) -> None:
        """Prepare all claims of a pod, whether its containers use them or not.

        Raises NotPreparedError: not now; what was prepared stays, and the next attempt goes on.
        """
        with self._count_operation("PrepareResources"):
            try:
                self._prepare_claims(pod)
            except NotPreparedError as error:
                raise NotPreparedError(f"prepare dynamic resources: {error}") from None

    def _prepare_claims(self, pod: Obj) -> None:
        claims = []
        for entry_name, claim in self.claims_of(pod):
            if claim is None:
                raise NotPreparedError(_explain_missing_claim(pod, entry_name))
            self.check_owner(pod, entry_name, claim)
            if not self._cluster.is_reserved(claim, pod):
                raise NotPreparedError(
                    f"pod {name_of(pod)} ({uid_of(pod)}) is not allowed to use ResourceClaim "
                    f"{name_of(claim)} ({uid_of(claim)})"
                )
            if "allocation" not in claim["status"]:
                raise NotPreparedError(f"ResourceClaim {name_of(claim)}: not allocated")
            for name in self.list_drivers_to_call(claim["status"]["allocation"], _PREPARE):
                self._find_registered_driver(name)
            claims.append(claim)
        entries = [self._entry_for(claim, pod) for claim in claims]
        with self._count_driver_calls(_PREPARE):
            for entry, claim in zip(entries, claims, strict=True):
                if not entry.complete:
                    entry.unprepare = self.list_drivers_to_call(
                        claim["status"]["allocation"], _UNPREPARE
                    )
            batches = [
                self.list_drivers_to_call(claim["status"]["allocation"], _PREPARE)
                for claim in claims
            ]
            for driver in self._order_drivers(batches):
                refusals = []
                answers: list[tuple[Prepared, list[PreparedDevice]]] = []
                for entry, claim, names in zip(entries, claims, batches, strict=True):
                    if not entry.complete and driver.name in names:
                        try:
                            answers.append((entry, self._prepare(driver, claim)))
                        except NotPreparedError as error:
                            refusals.append(error)
                if refusals:  # a kubelet names any of them, for it goes over a map
                    raise refusals[0]
                for entry, devices in answers:
                    entry.devices[driver.name] = devices
        for entry in entries:
            entry.complete = True

    def check_owner(self, pod: Obj, entry_name: str, claim: Obj) -> None:
        """Check that a pod has a generated claim of its own or its group's, not another pod's.

        Raises NotPreparedError.
        """
        entries = pod["spec"].get("resourceClaims") or []
        named = (entry for entry in entries if entry["name"] == entry_name)
        if not all(self._cluster.may_use(pod, entry, claim) for entry in named):
            namespace, group = namespace_of(pod), pods.group_name(pod)
            why = "Pod is not owner"
            if group is not None and self._cluster.shares_in_groups:
                why = f"neither Pod nor PodGroup {group} is the owner"
            raise NotPreparedError(
                f"ResourceClaim {namespace}/{name_of(claim)} was not created for "
                f"Pod {namespace}/{name_of(pod)} ({why})"
            )

    def restart(self) -> None:
        """Keep the claims, which the checkpoint has, but not how far they are prepared."""
        for entry in self.prepared.values():
            entry.complete = entry.unpreparing = False

    def unprepare(self, pod_uid: str) -> None:
        """Let go of a pod's claims. Raises NotPreparedError."""
        with self._count_operation("UnprepareResources"), self._count_driver_calls(_UNPREPARE):
            self._release_claims(pod_uid)

    def _release_claims(self, pod_uid: str) -> None:
        """Unprepare the claims that no other pod uses: all of them, or they all stay."""
        unused: dict[str, Prepared] = {}
        for claim_uid, prepared in self.prepared.items():
            if prepared.pods == {pod_uid}:
                prepared.unpreparing = True
                unused[claim_uid] = prepared
            else:
                prepared.pods.discard(pod_uid)
        for name in dict.fromkeys(
            name for prepared in unused.values() for name in prepared.unprepare
        ):
            driver, refusals = self._find_registered_driver(name), []
            for claim_uid, prepared in unused.items():
                if name in prepared.unprepare:
                    try:
                        self._unprepare(driver, claim_uid, prepared.claim)
                    except NotPreparedError as error:
                        refusals.append(error)
            if refusals:
                raise refusals[0]
        for claim_uid in unused:
            del self.prepared[claim_uid]

    @contextmanager
    def _count_operation(self, operation: str) -> Iterator[None]:
        """Count an operation, also of a pod without claims, and whether it failed."""
        is_error = "true"
        try:
            yield
            is_error = "false"
        finally:
            counts = self._cluster.counts
            counts.count(self._component, OPERATIONS, operation_name=operation, is_error=is_error)

    @contextmanager
    def _count_driver_calls(self, method: str) -> Iterator[None]:
        """Count which drivers were asked, once for all claims of a pod.

        What it says of a claim is in its answer, so the call itself succeeds
        (newMetricsInterceptor of pkg/kubelet/cm/dra/plugin/dra_plugin.go).
        """
        self._called_drivers = {}
        try:
            yield
        finally:
            for driver in self._called_drivers:
                self._cluster.counts.count(
                    self._component,
                    CALLS,
                    driver_name=driver,
                    method_name=f"{_SERVICE}/{method}",
                    grpc_status_code="OK",
                )

    def resolve_edits(self, pod: Obj, container: Obj) -> ContainerEdits:
        """Return what a container of a prepared pod gets through CDI. Raises NotPreparedError."""
        ids = list(dict.fromkeys(self.cdi_device_ids(pod, container)))
        if not ids or not self.drivers:
            return ContainerEdits({}, ())
        try:
            return self.drivers[0].edits(ids)
        except UnresolvableError as error:
            raise NotPreparedError(f"CDI device injection failed: {error}") from None

    def _order_drivers(self, batches: Iterable[Sequence[str]]) -> list[NodeDriver]:
        """Return the drivers that are asked, in the order in which claims name them.

        A kubelet has no order: it goes over a map.
        """
        names = dict.fromkeys(name for names in batches for name in names)
        driver_by_name = {driver.name: driver for driver in self.drivers}
        return [driver_by_name[name] for name in names if name in driver_by_name]

    def _find_registered_driver(self, name: str) -> NodeDriver:
        for driver in self.drivers:
            if driver.name == name and driver.stopped_at is None:
                return driver
        raise NotPreparedError(f"DRA driver {name} is not registered")

    def _entry_for(self, claim: Obj, pod: Obj) -> Prepared:
        """Return the entry of a claim; one waits until its namesake is unprepared."""
        key = (namespace_of(claim), name_of(claim))
        for uid, entry_of_namesake in self.prepared.items():
            if entry_of_namesake.claim == key and uid != uid_of(claim):
                raise NotPreparedError(
                    f"old ResourceClaim with same name {key[1]} and different UID {uid} still "
                    "exists (previous pod force-deleted?!)"
                )
        entry = self.prepared.setdefault(uid_of(claim), Prepared(claim=key))
        if entry.unpreparing and self._cluster.minor not in _WITHOUT_MARK:
            raise NotPreparedError(f"ResourceClaim {key[1]} is being unprepared")
        entry.pods.add(uid_of(pod))
        return entry

    def list_drivers_to_call(self, allocation: Obj, operation: str) -> list[str]:
        """Return an allocation's drivers with a device for which an operation is not skipped."""
        skipping_allowed = self._cluster.gates.get("DRAOptionalNodeOperations")
        drivers = {
            result["driver"]: None
            for result in (allocation.get("devices") or {}).get("results") or []
            if not (
                skipping_allowed and {"*", operation} & {*(result.get("skipNodeOperations") or ())}
            )
        }
        return list(drivers)

    def _prepare(self, driver: NodeDriver, claim: Obj) -> list[PreparedDevice]:
        name = name_of(claim)
        with self._note_call(driver, (namespace_of(claim), name), "prepare"):
            try:
                return list(driver.prepare(claim))
            except DriverError as error:
                raise NotPreparedError(
                    f"NodePrepareResources failed for ResourceClaim {name}: {error}"
                ) from error

    def _unprepare(self, driver: NodeDriver, claim_uid: str, claim: tuple[str, str]) -> None:
        with self._note_call(driver, claim, "unprepare"):
            try:
                driver.unprepare(claim_uid)
            except DriverError as error:
                raise NotPreparedError(
                    f"NodeUnprepareResources failed for ResourceClaim {claim[1]}: {error}"
                ) from error

    @contextmanager
    def _note_call(
        self, driver: NodeDriver, claim: tuple[str, str], operation: str
    ) -> Iterator[None]:
        """Note what a driver is asked for a claim (namespace and name), and what it answers."""
        self._called_drivers[driver.name] = None
        error_text = ""
        try:
            yield
        except NotPreparedError as error:
            error_text = str(error.__cause__ or error)
            raise
        finally:
            if driver is self.drivers[0]:
                call = DriverCall(claim[1], operation, error_text)
                self._cluster.driver_calls.append((claim[0], call))

    def claims_of(self, pod: Obj) -> Iterator[tuple[str, Obj | None]]:
        """Yield pod claim name -> claim; the special claim for extended resources has no name."""
        for entry, claim in self._cluster.claims_of(pod):
            yield entry["name"], claim
        special = self._extended_claim_status_of(pod)
        if special:
            yield "", self._cluster.extended_claim_of(pod)

    def _extended_claim_status_of(self, pod: Obj) -> Obj:
        status: Obj = pod["status"].get("extendedResourceClaimStatus") or {}
        return status

    def cdi_device_ids(self, pod: Obj, container: Obj) -> Iterator[str]:
        """Yield the CDI devices of the claims and requests that a container names."""
        named_requests = [
            (entry["name"], entry.get("request") or "")
            for entry in (container.get("resources") or {}).get("claims") or []
        ]
        named_requests += [
            ("", mapping["requestName"])
            for mapping in self._extended_claim_status_of(pod).get("requestMappings", [])
            if mapping["containerName"] == container["name"]
        ]
        claims = {name: claim for name, claim in self.claims_of(pod) if claim is not None}
        for name, request in named_requests:
            if name in claims:
                yield from self.devices_of(uid_of(claims[name]), request)

    def allocated_resources_status(self, pod: Obj, container: Obj) -> list[Obj]:
        """Return ``allocatedResourcesStatus`` of a container: the health of what it was given.

        Source: pkg/kubelet/cm/dra/manager.go, UpdateAllocatedResourcesStatus.
        """
        if not self._cluster.gates.get("ResourceHealthStatus"):
            return []
        claims = {name: claim for name, claim in self.claims_of(pod) if claim is not None}
        health_by_claim = {}
        for entry in (container.get("resources") or {}).get("claims") or []:
            claim, request = claims.get(entry["name"]), entry.get("request") or ""
            prepared = self.prepared.get(uid_of(claim)) if claim is not None else None
            if prepared is not None:
                name = f"claim:{entry['name']}" + (f"/{request}" if request else "")
                base = request.partition("/")[0]
                device_health = (
                    self._read_health(driver, device)
                    for driver in self.drivers
                    for device in prepared.devices.get(driver.name, ())
                    if _is_for(device, base)
                )
                health = {
                    entry_health["resourceID"]: entry_health for entry_health in device_health
                }
                health_by_claim[name] = [*health.values()]
        return [
            {"name": name, "resources": health}
            for name, health in health_by_claim.items()
            if health
        ]

    def _read_health(self, driver: NodeDriver, device: PreparedDevice) -> Obj:
        health, message = driver.health(device.device_name)
        if self._cluster.clock.now < self.unheard_until.get(driver.name, 0.0):
            health, message = "Unknown", ""
        fallback = f"{driver.name}/{device.pool_name}/{device.device_name}"
        entry: Obj = {"resourceID": next(iter(device.cdi_device_ids), fallback), "health": health}
        if message and self._cluster.gates.get("ResourceHealthStatusMessage"):
            entry["message"] = message
        return entry

    def devices_of(self, claim_uid: str, request: str = "") -> Iterator[str]:
        """Yield the CDI devices of a prepared claim, or of one of its requests."""
        for devices in self.prepared[claim_uid].devices.values():
            for device in devices:
                if _is_for(device, request):
                    yield from device.cdi_device_ids


def _explain_missing_claim(pod: Obj, entry_name: str) -> str:
    """Return why a pod's claim is missing; the claim for extended resources has no entry.

    The words are those of prepareResources and of Name in
    k8s.io/dynamic-resource-allocation/resourceclaim.
    """
    special = pod["status"].get("extendedResourceClaimStatus") or {}
    claim_name = special.get("resourceClaimName")
    for entry in pod["spec"].get("resourceClaims") or []:
        if entry["name"] == entry_name:
            claim_name = pods.claim_name(pod, entry)
    if claim_name is None:
        return f'pod "{namespace_of(pod)}/{name_of(pod)}": ResourceClaim not created yet'
    missing = not_found(KINDS["ResourceClaim"], claim_name)
    return f"fetch ResourceClaim {claim_name}: {missing.message}"


def _is_for(device: PreparedDevice, request: str) -> bool:
    """Return whether a device is given to who names a request, or none."""
    return not request or not device.request_names or request in device.request_names
