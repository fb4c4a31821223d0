"""One scenario's view of a real cluster: requests, waiting, and what is recorded meanwhile."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from typing_extensions import override

from conformance.seam.overlaps import Overlap
from conformance.seam.scope import Scope, T
from conformance.seam.watching import Following, Watching
from conformance.targets.cluster.accounts import give_rights, headers_of, is_allowed, may
from conformance.targets.cluster.capture import snapshot_of
from conformance.targets.cluster.creator import Creator
from conformance.targets.cluster.diagnostics import diagnose
from conformance.targets.cluster.objects import Objects
from conformance.targets.cluster.observer import ClusterObservation
from conformance.targets.cluster.reach import Shared
from conformance.targets.cluster.recorder import follow_namespaces
from conformance.targets.cluster.snapshots import present_snapshot
from kube.api import make_selector_query
from kube.base.errors import TargetError
from kube.connection import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, TABLE
from kube.errors import ApiError
from kube.informer import Informer
from kube.informers import Changes, InformerFactory
from kube.observations import Decision
from kube.values import Obj, Query, Ref, Request, User, cells_of

_LOG = logging.getLogger(__name__)

RIGHTS_SECONDS = 10.0  # The longest that the API server's authorizer may be behind a RoleBinding.

_METHODS = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


class ClusterScope(Scope):
    """A namespace of a cluster; but for `at_once`, for one thread at a time.

    Any method may raise TargetGoneError: the API server or another part of the cluster is gone.
    """

    def __init__(self, shared: Shared, namespace: str) -> None:
        self.namespace = namespace
        self._shared = shared
        self._api = shared.api
        self._agent = namespace
        self._changes = Changes()
        self._informers = InformerFactory(self._api.connection, self._agent)
        self._objects = Objects(
            self._api, namespace, self._informers, shared.informers, self._changes
        )
        self.observe = ClusterObservation(shared, self._objects, self._changes, namespace)
        self.faults = shared.faults
        self._watches: list[Watching] = []
        self._closed = threading.Event()
        shared.claims.follow(namespace)
        self._creator = Creator(self._api, shared.hollow, self._agent)
        self._recording = (
            shared.recorder.open(namespace, self._informers) if shared.recorder else None
        )

    # -- requests ------------------------------------------------------------------------------

    @override
    def create(self, obj: Obj, user: User | None = None) -> Obj:
        self._shared.health.check()
        object_namespace = obj["metadata"].get("namespace")
        resource = self._api.discovery.find_or_guess(
            obj.get("apiVersion", ""), obj.get("kind", ""), namespaced=object_namespace is not None
        )
        namespace = self._objects.choose_namespace(resource, object_namespace)
        return self._objects.learn(resource, self._creator.create(resource, namespace, obj, user))

    @override
    def get(self, ref: Ref) -> Obj | None:
        return self._objects.get(ref)

    @override
    def find(self, query: Query) -> list[Obj]:
        return self._objects.find(query)

    @override
    def columns(self, ref: Ref) -> Mapping[str, str]:
        resource, namespace = self._objects.locate(ref)
        path = resource.path(namespace, ref.name)
        try:
            table = self._api.connection.request("GET", path, accept=TABLE, agent=self._agent)
        except ApiError as error:
            if error.code != 404:
                raise
            table = {}
        return cells_of(table)

    @override
    def watch(self, query: Query) -> Watching:
        """Watch what a query selects; a watch that is cut goes on where it was."""
        resource, namespace = self._objects.locate(query)
        selected = make_selector_query(query.labels, query.fields)
        informer = Informer(self._api.connection, resource, namespace, self._agent, selected)
        watching = Watching(informer.stop)
        informer.listen(watching.hear)
        informer.start()
        self._watches.append(watching)
        self._changes.attach(informer)
        return watching

    @override
    def send(self, request: Request) -> None:
        ref = request.ref
        if request.verb != "delete":  # to clean up is tried in a cluster that may be gone, too
            self._shared.health.check()
        resource, namespace = self._objects.locate(ref)
        query = {"fieldValidation": "Strict"} if request.verb in ("patch", "update") else {}
        if request.labels:
            query["labelSelector"] = ",".join(f"{k}={v}" for k, v in request.labels.items())
        if request.dry_run:
            query["dryRun"] = "All"
        content = "application/json"
        if request.verb == "patch":
            content = JSON_PATCH if isinstance(request.body, list) else MERGE_PATCH
        if request.manager is not None:
            content = APPLY_PATCH
            query["fieldManager"] = request.manager.name
            query["force"] = "true" if request.manager.force else "false"
        path = resource.path(namespace, ref.name, request.subresource)
        try:
            answer = self._api.connection.request(
                _METHODS[request.verb],
                path,
                query,
                request.body,
                content_type=content,
                agent=self._agent,
                headers=headers_of(request.user),
            )
        except ApiError as error:
            if request.verb != "delete" or error.code != 404:
                raise
            answer = {}
        if request.verb in ("patch", "update") and not request.dry_run:
            self._objects.learn(resource, answer)
        elif ref.name:
            self._objects.relearn(resource, namespace, ref.name)

    @override
    def at_once(self, actions: Sequence[Callable[[], None]]) -> None:
        with ThreadPoolExecutor(len(actions), thread_name_prefix="request") as pool:
            for future in [pool.submit(action) for action in actions]:
                future.result()

    @override
    def grant(self, user: User, rules: Sequence[Obj], labels: Mapping[str, str]) -> None:
        give_rights(self._api.connection, user, rules, labels, self._agent)

        def is_granted() -> bool | None:
            self._changes.recheck_in(0.1)
            return is_allowed(self._api.connection, user, rules[-1], self._agent) or None

        if rules and self.wait(is_granted, RIGHTS_SECONDS) is None:
            raise TargetError(
                f"{user} may not do after {RIGHTS_SECONDS:g} s what RBAC says; does this cluster"
                " authorize by RBAC?"
            )

    @override
    def may(self, user: User, verb: str, query: Query, name: str = "") -> bool:
        resource = self._api.discovery.find(query.api_version, query.kind)
        attributes: dict[str, Any] = {
            "verb": verb,
            "group": query.api_version.rpartition("/")[0],
            "resource": resource.plural,
            "namespace": (query.namespace or "") if resource.namespaced else "",
            "name": name,
        }
        if query.fields:
            requirements = [
                {"key": field, "operator": "In", "values": [value]}
                for field, value in query.fields.items()
            ]
            attributes["fieldSelector"] = {"requirements": requirements}
        self._changes.recheck_in(0.1)  # authorizers learn of a pod without a change that is seen
        return may(self._api.connection, user, attributes, self._agent)

    # -- waiting -------------------------------------------------------------------------------

    @override
    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """Wait as `Scope.wait` says. Raises TargetError: a watch stays interrupted."""
        deadline = time.monotonic() + timeout
        while True:
            change_count = self._changes.count
            self._objects.waiting = True
            try:
                answer = check()
            finally:
                self._objects.waiting = False
            if answer is not None:
                return answer
            self._shared.health.check()
            self._objects.give_up_on_trouble()
            if time.monotonic() >= deadline:
                return check()  # what the API server itself says
            self._changes.wait(change_count, deadline)

    def wake(self) -> None:
        """Make a `wait` repeat its check now. For any thread."""
        self._changes.notify()

    @override
    def pause(self, seconds: float) -> None:
        """Ends early when the scope is closed."""
        self._closed.wait(seconds)

    @override
    def now(self) -> float:
        return time.monotonic()

    # -- what is recorded ----------------------------------------------------------------------

    @override
    def decisions(self) -> list[Decision]:
        return [] if self._recording is None else self._recording.decisions()

    @override
    def latencies(self) -> Sequence[float]:
        return () if self._recording is None else tuple(self._recording.latencies.seconds)

    @override
    def overlaps(self) -> Sequence[Overlap]:
        """Those that the watch of claims has reported so far."""
        return self._shared.claims.touching(self.namespace)

    @override
    def follow(self, namespaces: Sequence[str]) -> Following:
        return follow_namespaces(self._api, self._informers, self._changes, namespaces, self._agent)

    @override
    def snapshot(self, pods: bool = False) -> Obj:
        capabilities = self._shared.capabilities()
        if not pods:
            return present_snapshot(self._api, capabilities, self.namespace)
        whole = snapshot_of(self._api, *capabilities.scheduling, _LOG.warning)
        own_claims = [
            claim for claim in whole["claims"] if claim["metadata"]["namespace"] == self.namespace
        ]
        return {**whole, "claims": own_claims}

    @override
    def diagnostics(self) -> Mapping[str, str]:
        return diagnose(self._api, self._shared.logs, self.namespace)

    @override
    def close(self) -> None:
        self._closed.set()
        self._changes.detach()
        self._informers.stop()
        for watching in self._watches:
            watching.stop()
        if self._recording is not None:
            self._recording.close()
