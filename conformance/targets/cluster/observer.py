"""What scenarios observe of a cluster's containers, nodes and components.

None of it sends events: a waiting check is asked to come back soon. What a container saw is in its
log, as the probe printed it; the container's state, which a watch does report, says when the log is
worth reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import grpc

from conformance import probe
from conformance.seam.overlaps import in_use
from conformance.targets.cluster.driverlog import read_driver_calls
from conformance.targets.cluster.objects import Objects
from conformance.targets.cluster.reach import Shared
from conformance.targets.cluster.reading import (
    claims_in,
    read_kubelet_metrics,
    samples_in,
    specs_in,
)
from kube.base.errors import TargetError
from kube.errors import PASSING, ApiError
from kube.informers import Changes
from kube.kubelet import podresources_v1_pb2 as api
from kube.kubelet.rpc import make_stub
from kube.observations import (
    Component,
    ContainerView,
    DriverCall,
    ListedClaim,
    ListedDevice,
    PublishedDevice,
    Sample,
)
from kube.values import Obj, Ref

_FIRST: Final = 0.02
_LONGEST: Final = 0.5  # Seconds between two reads of one log.

_PATIENCE: Final = 2.0  # Seconds for which one read is repeated.

_AFTER_END: Final = 10
"""Reads of a log after its container ended: the probe will not come any more."""

_SECONDS: Final = 5.0


class ClusterObservation:
    """Implements `Observation`; each run of a container is read to its end only once.

    Args:
        objects: of the scope; they know whether a check waits.
        namespace: of the pods; also names the client in the server's log.
    """

    def __init__(self, shared: Shared, objects: Objects, changes: Changes, namespace: str) -> None:
        self._api = shared.api
        self._reach = shared.reach
        self._logs = shared.logs
        self._published = shared.published
        self._objects = objects
        self._changes = changes
        self._namespace = namespace
        self._views: dict[str, ContainerView] = {}  # container id -> view
        self._tries: dict[str, int] = {}  # container id -> reads of an incomplete log

    def _pod(self, name: str) -> Obj | None:
        return self._objects.get(Ref("v1", "Pod", name, self._namespace))

    def container(self, pod: str, container: str) -> ContainerView | None:
        """Return what that container of the pod saw in its present run, None if not known yet.

        In a waiting check a kubelet that does not answer (it may be restarting) is asked again.
        Raises TargetError: the log may not be read; or, unless waiting, the kubelet does not
        answer.
        """
        pod_object = self._pod(pod)
        return None if pod_object is None else self._view(pod_object, container)

    def _view(self, pod: Obj, container: str) -> ContainerView | None:
        status = _status_of(pod, container)
        run = (status or {}).get("containerID", "")
        if status is None or not run:
            return None
        if run in self._views:
            return self._views[run]
        ended = "terminated" in (status.get("state") or {})
        tries = self._tries.get(run, 0)
        if ended and tries > _AFTER_END:
            return None
        output = probe.parse(self._log(pod, container))
        if output is None:
            self._tries[run] = tries + 1
            self._changes.recheck_in(min(_FIRST * 2**tries, _LONGEST))
            return None
        self._views[run] = ContainerView(output.environment, output.device_nodes, output.outputs)
        return self._views[run]

    def _log(self, pod: Obj, container: str) -> str:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log"
        try:
            text = self._api.connection.read_text(
                "GET",
                path,
                {"container": container},
                accept="*/*",
                agent=self._namespace,
                patience=_PATIENCE,
            )
        except (ApiError, TargetError) as error:
            code = error.code if isinstance(error, ApiError) else 0
            if code in (400, 404):  # it waits to start, or is gone by now
                return ""
            if self._objects.waiting and (code == 0 or code in PASSING):
                return ""
            raise TargetError(
                f"the log of container {container} of pod {meta['name']} cannot be read: {error}; "
                f"check that the API server reaches the kubelet of {pod['spec'].get('nodeName')}"
            ) from None
        return text.decode("utf-8", "replace")

    def _cdi_files(self) -> Iterable[tuple[str, bytes]]:
        self._changes.recheck_in(0.1)
        if self._reach.cdi is None:
            raise TargetError("this cluster's CDI specs cannot be read from here (no ability cdi)")
        return self._reach.cdi()

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """Return claim uid -> names of files, sorted."""
        return claims_in(self._cdi_files())

    def cdi_specs(self) -> Sequence[tuple[str, Obj]]:
        """Return the CDI specs in the files of the nodes, now."""
        return specs_in(self._cdi_files())

    def samples(self, component: Component, name: str, node: str | None) -> Sequence[Sample] | None:
        """Return the series of a metric; a kubelet is asked through the API server."""
        self._changes.recheck_in(0.5)
        try:
            if node is not None:
                text: str | None = read_kubelet_metrics(self._api.connection, node, self._namespace)
            else:
                text = self._reach.control.metrics(component) if self._reach.control else None
        except (ApiError, TargetError):  # a kubelet that restarts is asked again
            return None
        return None if text is None else samples_in(text, name)

    def pod_resources(self, pod: str, container: str) -> Sequence[ListedClaim] | None:
        """Return what the node's kubelet lists of a container, asked by its socket."""
        self._changes.recheck_in(0.5)
        node = (self._pod(pod) or {"spec": {}})["spec"].get("nodeName")
        socket = self._reach.pod_resources.get(node)
        return None if socket is None else list_claims(socket, self._namespace, pod, container)

    def driver_calls(self) -> Sequence[DriverCall] | None:
        """Return what the logs of our own drivers tell; None where the drivers are others."""
        return read_driver_calls(self._logs, self._namespace)

    def claims_in_use(self, node: str, driver: str) -> int:
        """Return how many claims the API server has in use, in all namespaces."""
        claims = self._api.discovery.find(self._api.discovery.dra_version(), "ResourceClaim")
        return in_use(self._api.list(claims, None, self._namespace), driver, node)

    def published_before(self, driver: str) -> Sequence[PublishedDevice]:
        """Return the devices that the target's watch of all ResourceSlices has brought."""
        return self._published.of(driver)


def _status_of(pod: Obj, container: str) -> Obj | None:
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container_status in status.get(field) or []:
            if container_status["name"] == container:
                return dict(container_status)
    return None


def list_claims(
    socket: Path, namespace: str, pod: str, container: str
) -> Sequence[ListedClaim] | None:
    """Return a container's claims; None: the kubelet does not list it, or does not answer."""
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        try:
            answer = make_stub(api, channel).List(api.ListPodResourcesRequest(), timeout=_SECONDS)
        except grpc.RpcError:  # a kubelet that restarts is asked again
            return None
    for item in answer.pod_resources:
        if (item.namespace, item.name) == (namespace, pod):
            for listed_container in item.containers:
                if listed_container.name == container:
                    return [_claim(claim) for claim in listed_container.dynamic_resources]
    return None


def _claim(claim: api.DynamicResource) -> ListedClaim:
    devices = tuple(
        ListedDevice(
            device.driver_name,
            device.pool_name,
            device.device_name,
            tuple(cdi.name for cdi in device.cdi_devices),
            device.share_id,
        )
        for device in claim.claim_resources
    )
    return ListedClaim(claim.claim_namespace, claim.claim_name, devices)
