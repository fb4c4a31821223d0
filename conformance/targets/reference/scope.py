"""One scenario's view of the reference (see ``conformance.targets.base.Scope``)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from conformance.scenario.expectations.base import ContainerView
from conformance.scenario.metrics import Component, Sample
from conformance.scenario.podresources import ListedClaim
from conformance.scenario.stimulus import Health
from conformance.targets.base import (
    Decision,
    Obj,
    Overlap,
    Ref,
    Request,
    Scope,
    TargetError,
    User,
)
from conformance.targets.claims_in_use import in_use
from conformance.targets.components import meant
from conformance.targets.following import Following
from conformance.targets.reference.metrics import samples
from conformance.targets.reference.resources import KINDS
from conformance.targets.reference.world import World
from conformance.targets.watching import Watching

T = TypeVar("T")
Again = Callable[[str], AbstractContextManager[Scope]]
"""Opens the scope of a namespace in a new target."""
_Decisions = list[Decision]
_Watches = list[Watching]
"""``list`` is a method of the scope."""


class ReferenceScope:
    """A namespace of the reference, and the cluster-scoped objects around it."""

    def __init__(self, world: World, lock: threading.RLock, namespace: str, again: Again) -> None:
        """Use ``ReferenceTarget.scope``."""
        self.namespace = namespace
        self._world = world
        self._lock = lock
        world.claims.follow(namespace)
        self._again = again
        self._at_once = False
        self._watches: _Watches = []

    def create(self, obj: Obj, user: User | None = None) -> Obj:
        """Create an object; unknown fields are an error.

        Raises:
            ApiError: refused.
        """
        with self._requests():
            created = self._world.handler.create(obj, self.namespace, user)
            self._settle()
            return created

    def get(self, ref: Ref) -> Obj | None:
        """An object in the version that ``ref`` names, None if there is none."""
        with self._lock:
            return self._world.api.get(ref, self.namespace)

    def list(
        self,
        api_version: str,
        kind: str,
        labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> list[Obj]:
        """All objects of a kind in a namespace (everywhere if cluster-scoped), by name."""
        with self._lock:
            place = namespace or self.namespace
            return self._world.api.list(api_version, kind, place, labels, fields)

    def watch(
        self,
        api_version: str,
        kind: str,
        labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Watching:
        """See `Scope.watch`."""
        watching = Watching()
        with self._requests():
            place = namespace or self.namespace
            api = self._world.api
            watch = api.watch(api_version, kind, place, labels, fields, watching.hear)
        watching.stop = watch.stop
        self._watches.append(watching)
        return watching

    def patch(self, ref: Ref, patch: Obj, subresource: str | None = None) -> Obj:
        """Apply a merge patch and return the result.

        Raises:
            ApiError: refused.
        """
        with self._requests():
            patched = self._world.api.patch(ref, patch, subresource, self.namespace)
            self._world.settle()
            return patched

    def delete(self, ref: Ref, grace_seconds: int | None = None) -> None:
        """Ask for deletion; an object that is already gone is not an error."""
        with self._requests():
            self._world.api.delete(ref, grace_seconds, self.namespace, "Background")
            self._world.settle()

    def send(self, request: Request) -> None:
        """See `Scope.send`.

        Raises:
            ApiError: refused.
        """
        with self._requests():
            self._world.handler.handle(request, self.namespace)
            self._settle()

    def at_once(self, actions: Sequence[Callable[[], None]]) -> None:
        """See `Scope.at_once`: in their order, and nobody acts on one before the last is done."""
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

    def grant(
        self,
        user: User,
        rules: Sequence[Obj],
        labels: Mapping[str, str],  # noqa: ARG002 -- no object is made
    ) -> None:
        """See `Scope.grant`."""
        with self._lock:
            self._world.handler.authorizer.grant(user, rules)

    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """Call ``check`` at each moment at which something can change.

        Args:
            check: a function of :meth:`get` and :meth:`list`.
            timeout: virtual seconds.

        Returns:
            What ``check`` returned first, None if it never did.
        """
        with self._lock:
            deadline = self._world.clock.now + timeout
            while True:
                self._world.settle()
                result = check()
                if result is not None or not self._world.advance(deadline):
                    return result

    def pause(self, seconds: float) -> None:
        """Let virtual time pass."""
        with self._lock:
            deadline = self._world.clock.now + seconds
            while self._world.advance(deadline):
                pass
            self._world.settle()

    def now(self) -> float:
        """See `Scope.now`: virtual."""
        with self._lock:
            return self._world.clock.now

    def observe(self, pod: str, container: str) -> ContainerView | None:
        """What a container saw in its latest run, None as long as it had none."""
        with self._lock:
            for kubelet in self._world.kubelets:
                view = kubelet.observe(self.namespace, pod, container)
                if view is not None:
                    return view
            return None

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """Claim uid -> names of CDI specs on disk that are for it, on all nodes."""
        with self._lock:
            found: dict[str, list[str]] = {}
            for kubelet in self._world.kubelets:
                for driver in kubelet.dra_manager.drivers:
                    for uid, files in driver.spec_files().items():
                        found.setdefault(uid, []).extend(files)
            return found

    def cdi_specs(self) -> Sequence[tuple[str, Obj]]:
        """Name and content of all CDI specs on disk, on all nodes."""
        with self._lock:
            drivers = [one.driver for one in self._world.kubelets if one.driver is not None]
            return [item for driver in drivers for item in driver.specs()]

    def fault(self, component: str, action: str) -> None:
        """See `Scope.fault`.

        Raises:
            TargetError: there is no such component.
        """
        with self._lock:
            names = meant(component, self._world.components.names)
            if not names:
                known = ", ".join(self._world.components.names)
                raise TargetError(f"the reference has no {component} to {action}; it has: {known}")
            for name in names:
                self._world.fault(name, action)

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """See `Scope.set_health`.

        Raises:
            TargetError: there is no driver.
        """
        with self._lock:
            for kubelet in self._world.kubelets:
                if kubelet.node == node and kubelet.driver is not None:
                    self._world.set_health(kubelet, device["name"], health)
                    return
            raise TargetError(f"the reference has no driver on {node} that could be told")

    def samples(self, component: Component, name: str, node: str | None) -> Sequence[Sample] | None:
        """See `Scope.samples`."""
        with self._lock:
            return samples(self._world, component, name, node)

    def pod_resources(self, node: str, pod: str, container: str) -> Sequence[ListedClaim] | None:
        """See `Scope.pod_resources`."""
        with self._lock:
            found = self._world.cluster.store.get("Pod", self.namespace, pod)
            kubelet = next((item for item in self._world.kubelets if item.node == node), None)
            if found is None or kubelet is None:
                return None
            if not self._world.components.runs(kubelet.component):
                return None
            return kubelet.pod_resources.listed(found, container)

    def claims_in_use(self, node: str, driver: str) -> int:
        """See `Scope.claims_in_use`."""
        with self._lock:
            return in_use(self._world.cluster.store.all("ResourceClaim"), driver, node)

    def decisions(self) -> _Decisions:
        """Decisions taken for pods of this namespace so far, oldest first."""
        with self._lock:
            taken = self._world.scheduler.decisions
            return [decision for decision in taken if decision.namespace == self.namespace]

    def overlaps(self) -> Sequence[Overlap]:
        """Devices that two claims had at once, one of them of this namespace."""
        return self._world.claims.touching(self.namespace)

    def follow(self, namespaces: Sequence[str]) -> Following:
        """Follow pods and claims of some namespaces from now on, beginning with what there is."""
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

    def again(self) -> AbstractContextManager[Scope]:
        """The same namespace in a new reference, where the same happens again."""
        return self._again(self.namespace)

    def snapshot(self) -> Obj:
        """What allocations depend on now, with this namespace's unallocated claims."""
        with self._lock:
            claims = self._world.cluster.store.all("ResourceClaim", self.namespace)
            pending = [claim for claim in claims if "allocation" not in claim["status"]]
            return self._world.scheduler.snapshot(pending)

    def diagnostics(self) -> Mapping[str, str]:
        """Objects of the namespace and of DRA, events, and what the parts did."""
        with self._lock:
            store = self._world.cluster.store
            found: dict[str, str] = {}
            for kind in KINDS.values():
                objects = store.all(kind.name, self.namespace if kind.namespaced else None)
                if objects:
                    found[f"{kind.plural}.json"] = json.dumps(objects, indent=1)
            log = self._world.cluster.log
            lines = [line for namespace, line in log if namespace == self.namespace]
            found["reference.log"] = "\n".join(lines)
            found["snapshot.json"] = json.dumps(self.snapshot(), indent=1)
            return found

    def close(self) -> None:
        """End its watches."""
        with self._lock:
            for watching in self._watches:
                watching.stop()

    @contextmanager
    def _requests(self) -> Iterator[None]:
        """While nobody else changes anything.

        Raises:
            TargetError: the API server was stopped.
        """
        with self._lock:
            if not self._world.components.runs(""):
                raise TargetError("the API server does not answer: a step has stopped it")
            yield
