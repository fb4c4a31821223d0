"""One scenario's view of a real cluster: requests, waiting, and what it may look at."""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from conformance.kubeapi.api import selection
from conformance.kubeapi.changes import Changes
from conformance.kubeapi.connection import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from conformance.kubeapi.informer import Informer
from conformance.kubeapi.informers import InformerFactory
from conformance.scenario.expectations.base import ContainerView
from conformance.scenario.metrics import Component, Sample
from conformance.scenario.podresources import ListedClaim
from conformance.scenario.stimulus import Health
from conformance.targets.base import (
    ApiError,
    Decision,
    Obj,
    Overlap,
    Ref,
    Request,
    TargetError,
    User,
)
from conformance.targets.claims_in_use import in_use
from conformance.targets.cluster.accounts import give_rights, may
from conformance.targets.cluster.cdi import claims_in, specs_in
from conformance.targets.cluster.creator import Creator
from conformance.targets.cluster.diagnostics import diagnose
from conformance.targets.cluster.followed import follow
from conformance.targets.cluster.metrics import of_kubelet, samples_in
from conformance.targets.cluster.objects import JSON, Objects
from conformance.targets.cluster.observer import Observer
from conformance.targets.cluster.podresources import listed
from conformance.targets.cluster.shared import Shared
from conformance.targets.cluster.snapshots import present_snapshot
from conformance.targets.components import API, meant
from conformance.targets.following import Following
from conformance.targets.watching import Watching

T = TypeVar("T")

RIGHTS_SECONDS = 10.0
"""The longest that the API server's authorizer may be behind a RoleBinding."""

_METHODS = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}


class ClusterScope:
    """Implements `conformance.targets.base.Scope`; but for `at_once`, for one thread at a time."""

    def __init__(self, shared: Shared, namespace: str) -> None:
        self.namespace = namespace
        self._shared = shared
        self._api = shared.api
        self._agent = namespace
        self._changes = Changes()
        self._informers = InformerFactory(self._api.connection, self._agent)
        self._observer = Observer(self._api.connection, self._changes, self._agent)
        self._objects = Objects(
            self._api, namespace, self._informers, shared.informers, self._changes
        )
        self._watches: builtins.list[Watching] = []
        self._closed = threading.Event()
        shared.claims.follow(namespace)
        self._creator = Creator(self._api, shared.hollow, self._agent)
        self._recording = (
            shared.recorder.open(namespace, self._informers) if shared.recorder else None
        )

    # -- requests ------------------------------------------------------------------------------

    def create(self, obj: Obj, user: User | None = None) -> Obj:
        """See `Scope.create`."""
        self._shared.health.check()
        given = obj["metadata"].get("namespace")
        resource = self._api.discovery.find_or_guess(
            obj.get("apiVersion", ""), obj.get("kind", ""), namespaced=given is not None
        )
        namespace = self._objects.namespace(resource, given)
        return self._objects.learn(resource, self._creator.create(resource, namespace, obj, user))

    def get(self, ref: Ref) -> Obj | None:
        """See `Scope.get`."""
        return self._objects.get(ref)

    def list(
        self,
        api_version: str,
        kind: str,
        labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> list[Obj]:
        """See `Scope.list`; by name."""
        return self._objects.list(Ref(api_version, kind, "", namespace), labels, fields)

    def watch(
        self,
        api_version: str,
        kind: str,
        labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Watching:
        """See `Scope.watch`; a watch that is cut goes on where it was."""
        resource, place = self._objects.place(Ref(api_version, kind, "", namespace))
        informer = Informer(
            self._api.connection, resource, place, self._agent, selection(labels, fields)
        )
        watching = Watching(informer.stop)
        informer.listen(watching.hear)
        informer.start()
        self._watches.append(watching)
        self._changes.attach(informer)
        return watching

    def patch(self, ref: Ref, patch: Obj, subresource: str | None = None) -> Obj:
        """See `Scope.patch`."""
        resource, namespace = self._objects.place(ref)
        path = resource.path(namespace, ref.name, subresource or "")
        query = {"fieldValidation": "Strict"}
        changed = self._objects.request("PATCH", path, query, body=patch, content_type=MERGE_PATCH)
        return self._objects.learn(resource, changed)

    def delete(self, ref: Ref, grace_seconds: int | None = None) -> None:
        """See `Scope.delete`. What depends on the object goes in the background."""
        # A Job's own default would leave its pods behind.
        options: Obj = {"propagationPolicy": "Background"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        self._send(Request("delete", ref, options))

    def send(self, request: Request) -> None:
        """See `Scope.send`."""
        self._shared.health.check()
        self._send(request)

    def at_once(self, actions: Sequence[Callable[[], None]]) -> None:
        """See `Scope.at_once`: each in a thread of its own."""
        with ThreadPoolExecutor(len(actions), thread_name_prefix="request") as pool:
            for done in [pool.submit(action) for action in actions]:
                done.result()

    def _send(self, request: Request) -> None:
        """Send a request, also to a cluster that may be gone: to clean up is tried all the same."""
        ref = request.ref
        resource, namespace = self._objects.place(ref)
        query = {"fieldValidation": "Strict"} if request.verb in ("patch", "update") else {}
        if request.labels:
            query["labelSelector"] = ",".join(f"{k}={v}" for k, v in request.labels.items())
        if request.dry_run:
            query["dryRun"] = "All"
        content = JSON
        if request.verb == "patch":
            content = JSON_PATCH if isinstance(request.body, builtins.list) else MERGE_PATCH
        if request.manager is not None:
            content = APPLY_PATCH
            query["fieldManager"] = request.manager.name
            query["force"] = "true" if request.manager.force else "false"
        path = resource.path(namespace, ref.name, request.subresource)
        method = _METHODS[request.verb]
        try:
            self._objects.request(
                method, path, query, body=request.body, content_type=content, user=request.user
            )
        except ApiError as error:
            if request.verb != "delete" or error.code != 404:
                raise
        if ref.name:
            self._objects.relearn(resource, namespace, ref.name)

    def grant(self, user: User, rules: Sequence[Obj], labels: Mapping[str, str]) -> None:
        """See `Scope.grant`."""
        give_rights(self._api.connection, user, rules, labels, self._agent)

        def known() -> bool | None:
            self._changes.recheck_in(0.1)
            return may(self._api.connection, user, rules[-1], self._agent) or None

        if rules and self.wait(known, RIGHTS_SECONDS) is None:
            raise TargetError(
                f"{user} may not do after {RIGHTS_SECONDS:g} s what RBAC says; does this cluster"
                " authorize by RBAC?"
            )

    # -- waiting -------------------------------------------------------------------------------

    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """See `Scope.wait`.

        Raises:
            TargetGoneError: the API server or another part of the cluster is gone.
            TargetError: a watch stayed interrupted, so nothing can be said.
        """
        deadline = time.monotonic() + timeout
        while True:
            seen = self._changes.count
            self._objects.waiting = True
            try:
                found = check()
            finally:
                self._objects.waiting = False
            if found is not None:
                return found
            self._shared.health.check()
            self._objects.give_up_on_trouble()
            if time.monotonic() >= deadline:
                return check()  # what the API server itself says
            self._changes.wait(seen, deadline)

    def wake(self) -> None:
        """Have a `wait` look again now. For any thread."""
        self._changes.notify()

    def pause(self, seconds: float) -> None:
        """See `Scope.pause`; ends early when the scope is closed."""
        self._closed.wait(seconds)

    def now(self) -> float:
        """See `Scope.now`."""
        return time.monotonic()

    # -- what a scenario sees --------------------------------------------------------------------

    def observe(self, pod: str, container: str) -> ContainerView | None:
        """See `Scope.observe`. During a wait the check is repeated until the log is complete."""
        found = self.get(Ref("v1", "Pod", pod, self.namespace))
        if found is None:
            return None
        return self._observer.view(found, container, waiting=self._objects.waiting)

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """See `Scope.cdi_claims`. Files send no events: a waiting check is repeated soon."""
        return claims_in(self._cdi_files())

    def _cdi_files(self) -> Iterable[tuple[str, bytes]]:
        self._changes.recheck_in(0.1)
        if self._shared.cdi is None:
            raise TargetError("this cluster's CDI specs cannot be read from here (no ability cdi)")
        return self._shared.cdi()

    def cdi_specs(self) -> Sequence[tuple[str, Obj]]:
        """See `Scope.cdi_specs`; as for `cdi_claims`."""
        return specs_in(self._cdi_files())

    def samples(self, component: Component, name: str, node: str | None) -> Sequence[Sample] | None:
        """See `Scope.samples`. Metrics send no events: a waiting check is repeated soon."""
        self._changes.recheck_in(0.5)
        try:
            if node is not None:
                text: str | None = of_kubelet(self._api.connection, node, self._agent)
            else:
                text = self._shared.metrics(component) if self._shared.metrics else None
        except (ApiError, TargetError):  # a kubelet that restarts is asked again
            return None
        return None if text is None else samples_in(text, name)

    def pod_resources(self, node: str, pod: str, container: str) -> Sequence[ListedClaim] | None:
        """See `Scope.pod_resources`. It sends no events: a waiting check is repeated soon."""
        self._changes.recheck_in(0.5)
        socket = self._shared.pod_resources.get(node)
        return None if socket is None else listed(socket, self.namespace, pod, container)

    def claims_in_use(self, node: str, driver: str) -> int:
        """See `Scope.claims_in_use`."""
        claims = self._api.discovery.find(self._api.discovery.dra_version(), "ResourceClaim")
        return in_use(self._api.list(claims, None, self._agent), driver, node)

    def fault(self, component: str, action: str) -> None:
        """See `Scope.fault`."""
        fault, components = self._shared.fault, self._shared.fault_components
        names = meant(component, components)
        if fault is None or not names:
            known = ", ".join(components) or "none"
            raise TargetError(
                f"this cluster cannot {action} {component}; components that it can: {known}"
            )
        # The API server forgets where watches were: what was said before must be recorded by then.
        self._catch_up(names)
        self._shared.health.pause()
        try:
            for name in names:
                fault(name, action)
                if action in {"kill", "stop"}:
                    self._shared.down.add(name)
                else:
                    self._shared.down.discard(name)
        finally:
            if not self._shared.down & API:
                self._shared.health.resume()
        self._catch_up(names)

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """See `Scope.set_health`."""
        if self._shared.control is None:
            raise TargetError("this cluster's driver cannot be told (no ability device-health)")
        self._shared.control.set_health(node, device, health)

    def _catch_up(self, disturbed: builtins.list[str]) -> None:
        """Let the record have all that was said, if the API server is disturbed and answers."""
        recorder = self._shared.recorder
        if recorder is not None and API & {*disturbed} and not self._shared.down & API:
            recorder.catch_up()

    def decisions(self) -> builtins.list[Decision]:
        """See `Scope.decisions`; empty where the target does not record."""
        return [] if self._recording is None else self._recording.decisions()

    def overlaps(self) -> Sequence[Overlap]:
        """See `Scope.overlaps`; what the watch of claims has told so far."""
        return self._shared.claims.touching(self.namespace)

    def follow(self, namespaces: Sequence[str]) -> Following:
        """See `Scope.follow`."""
        return follow(self._api, self._informers, self._changes, namespaces, self._agent)

    def again(self) -> AbstractContextManager[None]:
        """See `Scope.again`: there is but this cluster."""
        return nullcontext()

    def snapshot(self) -> Obj:
        """See `Scope.snapshot`."""
        return present_snapshot(self._api, self._shared.capabilities(), self.namespace)

    def diagnostics(self) -> Mapping[str, str]:
        """See `Scope.diagnostics`."""
        return diagnose(self._api, self._shared.logs, self.namespace)

    def close(self) -> None:
        """See `Scope.close`."""
        self._closed.set()
        self._changes.detach()
        self._informers.stop()
        for watching in self._watches:
            watching.stop()
        if self._recording is not None:
            self._recording.close()
