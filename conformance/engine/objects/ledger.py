"""Creates the objects of a scenario and removes them again.

Everything gets the run's label, by which ``dra-conformance cleanup`` finds it after the suite was
killed. Cleanup has an outcome of its own: what could not be removed is named.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence

from conformance.engine.objects.podspec import NOBODY, ask_for, confine, first_user, restrict
from conformance.seam.scope import Objects
from kube.base.errors import TargetError, TargetGoneError
from kube.errors import ApiError
from kube.values import Obj, Query, Ref, User
from reference_allocator.api.schema import CLUSTER_SCOPED, stable_version

_LOG = logging.getLogger(__name__)

RESOURCE_V1 = "resource.k8s.io/v1"

RANGE_SECONDS = 10.0
"""How long a namespace may be without its range of users, where namespaces get one."""

_POLICIES = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
"""Kinds that the table of the API's types does not have."""


def default_version(kind: str) -> str:
    """The stable API version of a kind; resource.k8s.io/v1 for one that is not known."""
    if kind in _POLICIES:
        return "admissionregistration.k8s.io/v1"
    return stable_version(kind) or RESOURCE_V1


class Ledger:
    """Creates objects in a scope, remembers them, and removes them again.

    Args:
        labels: of each object; the run's label is among them.
        ranges: whether each namespace gets a range of users that its pods must run as.
        nodes: on which pods must run; empty means any.
        scheduler: which pods ask for where they name none; "" is the cluster's default.

    ``unanswered``: the first failure of a cleanup that was no answer of the API server.
    """

    def __init__(
        self,
        scope: Objects,
        labels: Mapping[str, str],
        *,
        ranges: bool = False,
        nodes: Sequence[str] = (),
        scheduler: str = "",
    ) -> None:
        self._scope = scope
        self.labels = dict(labels)
        self._ranges = ranges
        self.nodes = tuple(nodes)
        self._scheduler = scheduler
        self._users: dict[str, int] = {}
        self._made: list[Ref] = []
        self.unanswered: TargetError | None = None
        self._at_cleanup: list[Callable[[float], Sequence[str]]] = []

    @property
    def made(self) -> tuple[Ref, ...]:
        """Objects that were created and not removed since, oldest first."""
        return tuple(self._made)

    def at_cleanup(self, action: Callable[[float], Sequence[str]]) -> None:
        """Run an action of (timeout in seconds) -> problems when all created objects are gone."""
        self._at_cleanup.append(action)

    def create(self, obj: Obj, user: User | None = None) -> Obj:
        """Create an object with the run's labels, in the scope's namespace unless it names one.

        Raises:
            ApiError: the API server refused it.
            TargetError: no answer; it counts as made, because it may have been.
        """
        labelled = self.labelled(obj)
        meta = labelled["metadata"]
        ref = Ref(
            str(labelled.get("apiVersion")),
            str(labelled.get("kind")),
            str(meta.get("name")),
            meta.get("namespace"),
        )
        is_noted = ref in self._made
        # Before the request: one that gets no answer may have made the object all the same.
        if not is_noted:
            self._made.append(ref)
        try:
            return self._scope.create(labelled, user)
        except ApiError:
            if not is_noted:
                self._made.remove(ref)
            raise

    def applied(self, obj: Obj, *, subresource: str = "") -> Obj:
        """An object as server-side apply sends it; noted unless it exists already.

        A subresource is sent as it stands.
        """
        if subresource:
            place = (
                {} if obj.get("kind") in CLUSTER_SCOPED else {"namespace": self._scope.namespace}
            )
            return {**obj, "metadata": {**place, **obj["metadata"]}}
        labelled = self.labelled(obj)
        ref = Ref.of(labelled)
        if ref not in self._made and self._scope.get(ref) is None:
            self._made.append(ref)
        return labelled

    def labelled(self, obj: Obj) -> Obj:
        """A copy with the run's labels, its namespace and what pods need."""
        labelled = copy.deepcopy(obj)
        meta = labelled.setdefault("metadata", {})
        meta.setdefault("labels", {}).update(self.labels)
        if labelled.get("kind") not in CLUSTER_SCOPED:
            meta.setdefault("namespace", self._scope.namespace)
        restrict(labelled, lambda: self._user(meta.get("namespace")))
        confine(labelled, self.nodes)
        ask_for(labelled, self._scheduler)
        return labelled

    def _user(self, namespace: str | None) -> int:
        if not self._ranges or namespace is None:
            return NOBODY
        if namespace not in self._users:
            ref = Ref("v1", "Namespace", namespace)
            user = self._scope.wait(lambda: first_user(self._scope.get(ref)), RANGE_SECONDS)
            self._users[namespace] = user or NOBODY
        return self._users[namespace]

    def cleanup(self, timeout: float) -> tuple[str, ...]:
        """Delete all that was made, newest first, and wait until it is gone.

        Namespaced objects go first, with their generated claims and pods; then cluster-scoped ones.
        Namespaces are deleted but not waited for, because the namespace controller takes seconds
        for an empty one: nothing new can be made in a terminating one, so a second look is enough
        (docs/decisions/0010-empty-namespaces.md).
        Returns what was still there after ``timeout`` seconds, in words.
        """
        problems: list[str] = []
        try:
            self._clean_up(timeout, problems)
        except TargetGoneError as error:
            self.unanswered = error
            problems.append(f"perhaps {', '.join(map(str, self._made))}")
        self._made.clear()
        return tuple(problems)

    def _clean_up(self, timeout: float, problems: list[str]) -> None:
        namespaced = [ref for ref in self._made if ref.namespace is not None]
        cluster = [ref for ref in self._made if ref.namespace is None and ref.kind != "Namespace"]
        # Pods and claims before what they use: nodes, classes and slices are cluster-scoped.
        problems += self._remove(namespaced, timeout, self._in_namespace)
        problems += self._remove(cluster, timeout, list)
        namespaces = [ref for ref in self._made if ref.kind == "Namespace"]
        for ref in reversed(namespaces):
            problems += self._delete(ref)
        if namespaces and not problems:
            # A controller may have made one more between the first look and the deletion.
            problems += self._gone(self._in_namespace, timeout)
        while self._at_cleanup:
            problems += self._at_cleanup.pop()(timeout)

    def _remove(
        self, refs: list[Ref], timeout: float, others: Callable[[], list[str]]
    ) -> list[str]:
        problems: list[str] = []
        # Newest first, as what was made later may need what was made before it.
        for ref in reversed(refs):
            problems += self._delete(ref)

        def remaining() -> list[str]:
            own = [_describe(obj) for ref in refs if (obj := self._scope.get(ref)) is not None]
            return list(dict.fromkeys([*own, *others()]))

        return problems + self._gone(remaining, timeout) if refs else problems

    def _gone(self, remaining: Callable[[], list[str]], timeout: float) -> list[str]:
        _LOG.debug("cleanup: up to %g s until the deleted objects are gone", timeout)
        try:
            if self._scope.wait(lambda: True if not remaining() else None, timeout) is not None:
                return []
            return [
                f"{description} is still there after {timeout:g} s" for description in remaining()
            ]
        except ApiError as error:
            return [f"could not be checked: {error}"]
        except TargetError as error:
            self.unanswered = self.unanswered or error
            return [f"could not be checked: {error}"]

    def _in_namespace(self) -> list[str]:
        """Pods and claims, also those that controllers and the scheduler made."""
        return [
            _describe(obj)
            for kind in ("Pod", "ResourceClaim")
            for obj in self._scope.find(Query(default_version(kind), kind))
        ]

    def _delete(self, ref: Ref) -> list[str]:
        try:
            self._scope.delete(ref)
        except ApiError as error:
            if error.reason != "NotFound":
                return [f"{ref} could not be deleted: {error.message}"]
        except TargetGoneError:
            raise
        except TargetError as error:
            self.unanswered = self.unanswered or error
            return [f"{ref} could not be deleted: {error}"]
        return []


def _describe(obj: Obj) -> str:
    meta = obj["metadata"]
    extra = ""
    if meta.get("finalizers"):
        extra = f" (finalizers {', '.join(meta['finalizers'])})"
    return f"{obj.get('kind', 'object')} {meta['name']}{extra}"
