"""Records what allocations are decided from, while scenarios run.

On only when allocations are to be judged: it follows all claims, slices, taint rules, classes and
nodes of the cluster, and for each scenario the pods of its namespace (which tell the node that was
chosen).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from conformance.seam.values import Capabilities
from conformance.seam.watching import Following
from conformance.targets.cluster.decisions import find_decisions
from conformance.targets.cluster.history import History
from conformance.targets.cluster.latency import ClaimLatencies
from conformance.targets.cluster.snapshots import find_followed_kinds, reduce_object
from kube.api import Api, Resource, request_list
from kube.base.errors import TargetError
from kube.informer import Informer, Listener
from kube.informers import Changes, InformerFactory
from kube.observations import Decision
from kube.store import version_of
from kube.values import Obj

_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
CATCH_UP_SECONDS = 10.0  # For which watches may lag behind the API server.


class Recorder:
    """Follows what allocations depend on, for all scenarios of one target.

    ``claims``: the informer of claims, once it was opened.
    """

    claims: Informer

    def __init__(
        self, api: Api, informers: InformerFactory, capabilities: Callable[[], Capabilities]
    ) -> None:
        self.api = api
        self._capabilities = capabilities
        self._informers = informers
        self._lock = threading.Lock()
        self._resources: list[Resource] = []
        self._open: dict[Recording, int] = {}  # recording -> version since which it asks
        self.history = History()

    def open(self, namespace: str, informers: InformerFactory) -> Recording:
        """Begin to record for one scenario.

        ``informers``: the scenario's; its pods are followed there.
        Raises ApiError: the server refuses to list what must be followed; TargetError: no answer.
        """
        with self._lock:
            if not self._resources:
                self._resources = self._start()
        recording = Recording(self, namespace, informers)
        with self._lock:
            self._open[recording] = self.history.newest
        return recording

    def close(self, recording: Recording) -> None:
        """Forget what was kept for one scenario only."""
        with self._lock:
            self._open.pop(recording, None)
            floor = min(self._open.values(), default=self.history.newest)
        self.history.prune(floor)

    def catch_up(self) -> None:
        """Return when all is recorded that the API server has said so far. Raises TargetError."""
        for resource in self._resources:
            object_list = request_list(
                self.api.connection, resource.path(), "recorder", _METADATA_ONLY
            )
            listed = {item["metadata"]["uid"]: version_of(item) for item in object_list["items"]}
            if not self.history.await_list(
                resource.kind, listed, version_of(object_list), CATCH_UP_SECONDS
            ):
                informer = self._informers.find_started(resource, None)
                trouble = informer.trouble if informer else None
                raise TargetError(
                    f"the record of {resource.plural} is more than {CATCH_UP_SECONDS:g} s behind "
                    f"the API server {self.api.connection.where}"
                    + (f": {trouble[1]}" if trouble else "; is this machine overloaded?")
                )

    def decisions(self, namespace: str, pod_nodes: dict[str, str]) -> list[Decision]:
        """Return decisions for pods of one namespace, oldest first.

        ``pod_nodes``: pod uid -> name of its node, as far as known.
        """
        return find_decisions(self.history, namespace, pod_nodes, *self._capabilities().scheduling)

    def _start(self) -> list[Resource]:
        resources = find_followed_kinds(self.api.discovery)
        for resource in resources:
            informer = self._informers.informer(resource, None)
            attach_listener(informer, self._take)
            if resource.kind == "ResourceClaim":
                self.claims = informer
        return resources

    def _take(self, change: str, obj: Obj) -> None:
        if change == "TROUBLE":
            return
        if change == "LISTED":
            for item in obj["items"]:
                self._take("ADDED", item)
            kind = obj["kind"].removesuffix("List")
            uids = [item["metadata"]["uid"] for item in obj["items"]]
            since = int(obj["since"]) if obj["since"].isdigit() else 0
            self.history.add_list(kind, uids, version_of(obj), since)
            return
        state = None if change == "DELETED" else reduce_object(obj)
        self.history.add(obj["kind"], obj["metadata"]["uid"], version_of(obj), state)


class Recording:
    """One scenario's part of the record."""

    def __init__(self, recorder: Recorder, namespace: str, informers: InformerFactory) -> None:
        self._recorder = recorder
        self._namespace = namespace
        self._nodes: dict[str, str] = {}  # pod uid -> node name
        self.latencies = ClaimLatencies(namespace)
        recorder.claims.listen(self.latencies.hear_claim)
        pods = recorder.api.discovery.find("v1", "Pod")
        attach_listener(informers.informer(pods, namespace), self._take_pod)

    def decisions(self) -> list[Decision]:
        """Return what `Scope.decisions` returns. Raises TargetError: the record is incomplete."""
        self._recorder.catch_up()
        return self._recorder.decisions(self._namespace, dict(self._nodes))

    def close(self) -> None:
        self._recorder.close(self)
        self._recorder.claims.unlisten(self.latencies.hear_claim)

    def _take_pod(self, change: str, obj: Obj) -> None:
        self.latencies.hear_pod(change, obj)
        for pod in obj["items"] if change == "LISTED" else [obj]:
            node = (pod.get("spec") or {}).get("nodeName")
            if node:
                self._nodes[pod["metadata"]["uid"]] = node


def attach_listener(informer: Informer, listener: Listener) -> None:
    """Let a listener hear of all that an informer knows already and will know."""
    informer.listen(listener)
    for obj in informer.store.list():
        listener("ADDED", obj)


def follow_namespaces(
    api: Api, informers: InformerFactory, changes: Changes, namespaces: Sequence[str], agent: str
) -> Following:
    """Implements `Scope.follow`; ``changes`` is notified of each state, too."""
    pods = api.discovery.find("v1", "Pod")
    claims = api.discovery.find(api.discovery.dra_version(), "ResourceClaim")
    followed_lists = [
        (resource, namespace) for resource in (pods, claims) for namespace in namespaces
    ]
    followed_informers = [
        informers.informer(resource, namespace) for resource, namespace in followed_lists
    ]

    def catch_up(following: Following) -> None:
        for resource, namespace in followed_lists:
            listed = api.list(resource, namespace, agent)
            versions = {item["metadata"]["uid"]: version_of(item) for item in listed}
            if not following.await_seen(versions, CATCH_UP_SECONDS):
                raise TargetError(
                    f"the watch of {resource.plural} is more than {CATCH_UP_SECONDS:g} s behind"
                    " the API server; is this machine overloaded?"
                )

    def stop(following: Following) -> None:
        for informer in followed_informers:
            informer.unlisten(following.hear)

    following = Following(namespaces, catch_up, stop)
    for informer in followed_informers:
        attach_listener(informer, following.hear)
        changes.attach(informer)
    return following
