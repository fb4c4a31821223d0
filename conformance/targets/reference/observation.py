"""What a scenario observes of the reference's nodes and components, and how it disturbs them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from conformance.seam.overlaps import in_use
from kube.base.errors import TargetError
from kube.components import match_components
from kube.observations import (
    CLAIMS,
    PREPARED,
    Component,
    ContainerView,
    DriverCall,
    Health,
    ListedClaim,
    PublishedDevice,
    Sample,
)
from kube.values import POD_CLAIM_ANNOTATION, Obj
from kubesim.cluster import admin_access
from kubesim.nodes.kubelet import Kubelet
from kubesim.world import World
from reference_allocator.extended import ANNOTATION


def read_samples(
    world: World, component: str, name: str, node: str | None
) -> Sequence[Sample] | None:
    """Return the series of a metric as a component counts them; None: it does not run."""
    kubelet = next((item for item in world.kubelets if item.node == node), None)
    if node is not None:
        if kubelet is None:
            return None
        component = kubelet.component
    if not world.components.is_running(component):
        return None
    if name == PREPARED and kubelet is not None:
        return _count_prepared_claims(kubelet)
    if name == CLAIMS:
        return _count_claims(world.cluster.store.all("ResourceClaim"))
    return world.cluster.counts.list_samples(component, name)


def _count_prepared_claims(kubelet: Kubelet) -> list[Sample]:
    """Count as claimsInUse of pkg/kubelet/cm/dra/claiminfo.go."""
    complete = [item for item in kubelet.dra_manager.prepared.values() if item.complete]
    counted = Counter(driver for item in complete for driver in item.devices)
    return [
        Sample({"driver_name": "<any>"}, float(len(complete))),
        *(Sample({"driver_name": name}, float(count)) for name, count in counted.items()),
    ]


def _count_claims(claims: Sequence[Obj]) -> list[Sample]:
    """Count as customCollector of pkg/controller/resourceclaim/controller.go."""
    counted = Counter(
        (str("allocation" in claim["status"]).lower(), admin_access(claim), _source(claim))
        for claim in claims
    )
    return [
        Sample({"allocated": allocated, "admin_access": admin, "source": source}, float(count))
        for (allocated, admin, source), count in counted.items()
    ]


def _source(claim: Obj) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    if annotations.get(ANNOTATION) == "true":
        return "extended_resource"
    return "resource_claim_template" if annotations.get(POD_CLAIM_ANNOTATION) else ""


class ReferenceObservation:
    """Implements `Observation` for pods of one namespace."""

    def __init__(self, world: World, lock: threading.RLock, namespace: str) -> None:
        self._world = world
        self._lock = lock
        self._namespace = namespace

    def container(self, pod: str, container: str) -> ContainerView | None:
        """Return what a container saw in its latest run; None: nothing yet."""
        with self._lock:
            views = (item.observe(self._namespace, pod, container) for item in self._world.kubelets)
            return next((view for view in views if view is not None), None)

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """Return claim uid -> names of the files that its drivers have written for it."""
        with self._lock:
            names_by_uid: dict[str, list[str]] = {}
            for kubelet in self._world.kubelets:
                for driver in kubelet.dra_manager.drivers:
                    for uid, files in driver.spec_files().items():
                        names_by_uid.setdefault(uid, []).extend(files)
            return names_by_uid

    def cdi_specs(self) -> Sequence[tuple[str, Obj]]:
        """Return all CDI specs; one driver of a node is asked, for they share the folder."""
        with self._lock:
            drivers = [
                kubelet.driver for kubelet in self._world.kubelets if kubelet.driver is not None
            ]
            return [item for driver in drivers for item in driver.specs()]

    def samples(self, component: Component, name: str, node: str | None) -> Sequence[Sample] | None:
        with self._lock:
            return read_samples(self._world, component, name, node)

    def pod_resources(self, pod: str, container: str) -> Sequence[ListedClaim] | None:
        """Return a container's claims; None: the kubelet does not run, or does not list it."""
        with self._lock:
            pod_object = self._world.cluster.store.get("Pod", self._namespace, pod)
            node = pod_object["spec"].get("nodeName") if pod_object is not None else None
            kubelet = next((item for item in self._world.kubelets if item.node == node), None)
            if pod_object is None or kubelet is None:
                return None
            if not self._world.components.is_running(kubelet.component):
                return None
            return kubelet.pod_resources.list_claims(pod_object, container)

    def driver_calls(self) -> Sequence[DriverCall]:
        with self._lock:
            calls = self._world.cluster.driver_calls
            return [call for namespace, call in calls if namespace == self._namespace]

    def claims_in_use(self, node: str, driver: str) -> int:
        with self._lock:
            return in_use(self._world.cluster.store.all("ResourceClaim"), driver, node)

    def published_before(self, driver: str) -> Sequence[PublishedDevice]:  # noqa: ARG002
        """Return nothing: drivers of a reference publish a device as long as there is one."""
        return ()


class ReferenceFaults:
    """Implements `conformance.seam.scope.Faults`."""

    def __init__(self, world: World, lock: threading.RLock) -> None:
        self._world = world
        self._lock = lock

    def disturb(self, component: str, action: str) -> None:
        """Done, with all that follows from it, when this returns."""
        with self._lock:
            names = match_components(component, self._world.components.names)
            if not names:
                component_names = ", ".join(self._world.components.names)
                raise TargetError(
                    f"the reference has no {component} to {action}; it has: {component_names}"
                )
            for name in names:
                self._world.fault(name, action)

    def set_gates(self, component: str, gates: Mapping[str, bool]) -> None:
        """Raise TargetError: all parts of the reference keep the same gates."""
        gate_names = ", ".join(gates)
        raise TargetError(
            f"the reference's {component} cannot be restarted with other {gate_names}"
        )

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """Set the health of a device, as on the simulated GPU itself."""
        with self._lock:
            for kubelet in self._world.kubelets:
                if kubelet.node == node and kubelet.driver is not None:
                    self._world.set_health(kubelet, device["name"], health)
                    return
            raise TargetError(f"the reference has no driver on {node} that takes device health")
