"""One scenario's view of the reference: requests, and virtual time that passes while it waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from typing_extensions import override

from conformance.seam.overlaps import ClaimHolders, Overlap
from conformance.seam.pods import reduced_pod
from conformance.seam.scope import Scope, T
from conformance.seam.watching import Following, Watching
from conformance.targets.reference.observation import ReferenceFaults, ReferenceObservation
from kube.base.errors import TargetError
from kube.observations import Decision
from kube.values import Obj, Query, Ref, Request, User, cells_of
from kubesim.apiserver.authorization import Attributes
from kubesim.resources import KINDS
from kubesim.world import World

Labels = Mapping[str, str] | None


class ReferenceScope(Scope):
    """A namespace of the reference, and the cluster-scoped objects around it."""

    def __init__(
        self, world: World, lock: threading.RLock, claims: ClaimHolders, namespace: str
    ) -> None:
        self.namespace = namespace
        self.observe = ReferenceObservation(world, lock, namespace)
        self.faults = ReferenceFaults(world, lock)
        self._world = world
        self._lock = lock
        self._claims = claims
        claims.follow(namespace)
        self._at_once = False
        self._watches: list[Watching] = []

    @override
    def create(self, obj: Obj, user: User | None = None) -> Obj:
        with self._requests():
            created = self._world.handler.create(obj, self.namespace, user)
            self._settle()
            return created

    @override
    def get(self, ref: Ref) -> Obj | None:
        with self._lock:
            return self._world.api.get(ref, self.namespace)

    @override
    def find(self, query: Query) -> list[Obj]:
        with self._lock:
            return self._world.api.list(*self._selected(query))

    @override
    def columns(self, ref: Ref) -> Mapping[str, str]:
        with self._lock:
            obj = self._world.api.get(ref, self.namespace)
            objects = [] if obj is None else [obj]
            return cells_of(self._world.api.build_table(ref.kind, objects, {}) or {})

    @override
    def watch(self, query: Query) -> Watching:
        watching = Watching()
        with self._requests():
            watch = self._world.api.watch(*self._selected(query), watching.hear)
        watching.stop = watch.stop
        self._watches.append(watching)
        return watching

    def _selected(self, query: Query) -> tuple[str, str, str, Labels, Labels]:
        namespace = query.namespace or self.namespace
        return query.api_version, query.kind, namespace, query.labels, query.fields

    @override
    def send(self, request: Request) -> None:
        with self._requests():
            self._world.handler.handle(request, self.namespace)
            self._settle()

    @override
    def at_once(self, actions: Sequence[Callable[[], None]]) -> None:
        """Do the actions in their order; nobody acts on one before the last is done."""
        with self._lock:
            self._at_once = True
            try:
                for action in actions:
                    action()
            finally:
                self._at_once = False
            self._world.settle()

    def _settle(self) -> None:
        if not self._at_once:
            self._world.settle()

    @override
    def grant(self, user: User, rules: Sequence[Obj], labels: Mapping[str, str]) -> None:
        with self._lock:
            self._world.handler.authorizer.grant(user, rules)

    @override
    def may(self, user: User, verb: str, query: Query, name: str = "") -> bool:
        kind = KINDS[query.kind]
        namespace = (query.namespace or "") if kind.namespaced else ""
        wanted = Attributes(verb, kind, "", namespace, name, query.fields or {})
        with self._lock:
            return self._world.handler.authorizer.allows(user, wanted)

    @override
    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """Wait as `Scope.wait`; the check is repeated at each moment that can change something."""
        with self._lock:
            deadline = self._world.clock.now + timeout
            while True:
                self._world.settle()
                result = check()
                if result is not None or not self._world.advance(deadline):
                    return result

    @override
    def pause(self, seconds: float) -> None:
        with self._lock:
            deadline = self._world.clock.now + seconds
            while self._world.advance(deadline):
                pass
            self._world.settle()

    @override
    def now(self) -> float:
        with self._lock:
            return self._world.clock.now

    @override
    def decisions(self) -> list[Decision]:
        with self._lock:
            return [
                decision
                for scheduler in self._world.schedulers
                for decision in scheduler.decisions
                if decision.namespace == self.namespace
            ]

    @override
    def latencies(self) -> Sequence[float]:
        return ()

    @override
    def overlaps(self) -> Sequence[Overlap]:
        return self._claims.touching(self.namespace)

    @override
    def follow(self, namespaces: Sequence[str]) -> Following:
        store, kinds = self._world.cluster.store, ("Pod", "ResourceClaim")

        def stop(following: Following) -> None:
            with self._lock:
                for kind in kinds:
                    store.unlisten(kind, following.hear)

        following = Following(namespaces, stop=stop)
        with self._lock:
            for kind in kinds:
                store.listen(kind, following.hear)
                for obj in store.all(kind):
                    following.hear("ADDED", obj)
        return following

    @override
    def snapshot(self, pods: bool = False) -> Obj:
        with self._lock:
            store = self._world.cluster.store
            claims = store.all("ResourceClaim", self.namespace)
            pending = [claim for claim in claims if "allocation" not in claim["status"]]
            cluster_snapshot = self._world.scheduler.take_snapshot(pending)
            if pods:
                reduced = [reduced_pod(pod, ()) for pod in store.all("Pod")]
                cluster_snapshot["pods"] = [pod for pod in reduced if pod is not None]
                cluster_snapshot["templates"] = list(store.all("ResourceClaimTemplate"))
            return cluster_snapshot

    @override
    def diagnostics(self) -> Mapping[str, str]:
        with self._lock:
            store = self._world.cluster.store
            texts: dict[str, str] = {}
            for kind in KINDS.values():
                objects = store.all(kind.name, self.namespace if kind.namespaced else None)
                if objects:
                    texts[f"{kind.plural}.json"] = json.dumps(objects, indent=1)
            log = self._world.cluster.log
            lines = [line for namespace, line in log if namespace == self.namespace]
            texts["reference.log"] = "\n".join(lines)
            texts["snapshot.json"] = json.dumps(self.snapshot(pods=True), indent=1)
            return texts

    @override
    def close(self) -> None:
        with self._lock:
            for watching in self._watches:
                watching.stop()

    @contextmanager
    def _requests(self) -> Iterator[None]:
        """Let nobody else change anything. Raises TargetError: the API server was stopped."""
        with self._lock:
            if not self._world.components.is_running(""):
                raise TargetError("the API server does not answer: a step has stopped it")
            yield
