"""One scenario's view of the reference (see ``conformance.targets.base.Scope``)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from conformance.scenario.expectations.base import ContainerView
from conformance.targets.base import (
    Decision,
    Obj,
    Overlap,
    Ref,
    Request,
    Scope,
    TargetError,
)
from conformance.targets.claims_in_use import in_use
from conformance.targets.following import Following
from conformance.targets.reference.resources import KINDS
from conformance.targets.reference.world import World

T = TypeVar("T")
Again = Callable[[str], AbstractContextManager[Scope]]
"""Opens the scope of a namespace in a new target."""
RESTARTED = ("driver", "kubelet")
"""Components that ``fault`` knows."""
_Decisions = list[Decision]
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

    def create(self, obj: Obj) -> Obj:
        """Create an object; unknown fields are an error.

        Raises:
            ApiError: refused.
        """
        with self._lock:
            created = self._world.api.create(obj, self.namespace)
            self._world.settle()
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

    def patch(self, ref: Ref, patch: Obj, subresource: str | None = None) -> Obj:
        """Apply a merge patch and return the result.

        Raises:
            ApiError: refused.
        """
        with self._lock:
            patched = self._world.api.patch(ref, patch, subresource, self.namespace)
            self._world.settle()
            return patched

    def delete(self, ref: Ref, grace_seconds: int | None = None) -> None:
        """Ask for deletion; an object that is already gone is not an error."""
        with self._lock:
            self._world.api.delete(ref, grace_seconds, self.namespace)
            self._world.settle()

    def send(self, request: Request) -> None:
        """See `Scope.send`.

        Raises:
            ApiError: refused.
        """
        with self._lock:
            self._world.handler.handle(request, self.namespace)
            self._world.settle()

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
                if kubelet.driver is not None:
                    for uid, files in kubelet.driver.spec_files().items():
                        found.setdefault(uid, []).extend(files)
            return found

    def fault(self, component: str, action: str) -> None:
        """Restart the driver or the kubelet of every node, which is all that the reference can.

        Raises:
            TargetError: anything else.
        """
        if component not in RESTARTED or action != "restart":
            raise TargetError(
                f"the reference cannot {action} {component}, only restart {' or '.join(RESTARTED)}"
            )
        with self._lock:
            for kubelet in self._world.kubelets:
                part = kubelet if component == "kubelet" else kubelet.driver
                if part is not None:
                    part.restart()
            self._world.settle()

    def prepared_claims(self, node: str) -> int | None:
        """See `Scope.prepared_claims`."""
        with self._lock:
            for kubelet in self._world.kubelets:
                if kubelet.node == node:
                    return sum(item.complete for item in kubelet.dra_manager.prepared.values())
            return None

    def claims_in_use(self, node: str) -> int:
        """See `Scope.claims_in_use`."""
        with self._lock:
            driver = next((k.driver.name for k in self._world.kubelets if k.driver), "")
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
        """Nothing to stop."""
