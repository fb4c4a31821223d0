"""Requests of scenarios by their verb and subresource, carried out by the API server's rules."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

from kube.errors import ApiError
from kube.values import Obj, Ref, Request, User
from kubesim.apiserver import conversion, patches
from kubesim.apiserver.authorization import Attributes, Authorizer
from kubesim.apiserver.fieldmanagers import FieldManagers, OwnFields
from kubesim.apiserver.server import ApiServer, StatusCheck
from kubesim.cluster import Cluster, set_condition
from kubesim.resources import KINDS, kind_of, resolve_kind
from kubesim.store import name_of, namespace_of, not_found, uid_of
from kubesim.validation.pod import check_binding

_ANSWERED_BY_STATUS: Final = frozenset(
    {
        *("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"),
        *("Event", "Node", "PriorityClass"),
    }
)
"""Kinds without ``ReturnDeletedObject`` in their registry (pkg/registry).

Of DeviceTaintRule that is v1 alone (seen with 1.37.1).
"""

_EVICTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
"""The condition of a pod that is evicted."""


def _policy_of(options: Obj) -> str | None:
    """Return the propagation policy, also of the older ``orphanDependents``."""
    policy: str | None = options.get("propagationPolicy")
    if policy is None and options.get("orphanDependents") is not None:
        return "Orphan" if options["orphanDependents"] else "Background"
    return policy


class Handler:
    """What stands before the API server's registry."""

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._api = api
        self.authorizer = Authorizer(cluster)
        self.fields = FieldManagers(cluster.clock, cluster.minor)
        for kind in KINDS:
            cluster.store.listen(kind, self._hear)

    def _hear(self, change: str, obj: Obj) -> None:
        if change == "DELETED":
            self.fields.forget(uid_of(obj))

    def create(self, obj: Obj, namespace: str, user: User | None, writer: str = "") -> Obj:
        """Create an object, in the name of an account if one is given.

        ``writer``: the field manager, empty for the suite. Raises ApiError: refused.
        """
        if user is not None:
            self._authorize_creation(obj, namespace, user)
        own = self.fields.own_updated(writer, obj["apiVersion"], "") if writer else None
        return self._remember(self._api.create(obj, namespace, own), own)

    def _authorize_creation(self, obj: Obj, namespace: str, user: User) -> None:
        kind = kind_of(obj, self._cluster.served_kinds)
        target_namespace = obj["metadata"].get("namespace", namespace)
        self.authorizer.check(user, Attributes("create", kind, "", target_namespace))
        if user.is_kubelet:
            self.authorizer.kubelets.check_new(user.node, obj)

    def _remember(self, written: Obj, own: OwnFields | None) -> Obj:
        """Note that what is stored has true managed fields; returns the same object."""
        stored = self._cluster.store.by_uid(uid_of(written))
        if own is not None and stored is not None:
            self.fields.remember(stored)
        return written

    def handle(
        self,
        request: Request,
        namespace: str,
        decode: Callable[[Obj], Obj] | None = None,
        writer: str = "",
    ) -> Obj | None:
        """Carry out a request; returns the object that was changed, None where it was deleted.

        Args:
            decode: from what a patch or an apply made of an object to the object that it is.
            writer: the field manager of an update or a patch, empty for the suite.

        Raises ApiError: refused.
        """
        with self._cluster.store.dry_run() if request.dry_run else nullcontext():
            return self._handle(request, namespace, decode, writer)

    def delete(self, ref: Ref, options: Obj, namespace: str, user: User | None = None) -> Obj:
        """Delete an object with ``metav1.DeleteOptions``; returns what a client is answered.

        That is the object as it is now, or was last, or a Status for the kinds that answer so.
        Raises ApiError: refused.
        """
        kind = resolve_kind(ref.api_version, ref.kind, self._cluster.served_kinds)
        if user is not None:
            place = ref.namespace or namespace
            self.authorizer.check(user, Attributes("delete", kind, "", place, ref.name))
        live = self._api.get(ref, namespace)
        if live is None:
            raise not_found(kind, ref.name)
        if user is not None and user.is_kubelet:
            self.authorizer.kubelets.check_slice(user.node, live, "delete")
        self.check_preconditions(live, options.get("preconditions") or {})
        with self._cluster.store.dry_run() if options.get("dryRun") else nullcontext():
            policy, grace = _policy_of(options), options.get("gracePeriodSeconds")
            deleted = self._api.delete(ref, grace, namespace, policy) or live
        is_v1_rule = kind.name == "DeviceTaintRule" and ref.api_version == kind.api_version
        by_status = kind.name in _ANSWERED_BY_STATUS or is_v1_rule
        if by_status and "deletionTimestamp" not in deleted["metadata"]:
            details = {"name": ref.name, "group": kind.group, "kind": kind.plural}
            details = {field: value for field, value in details.items() if value}
            details["uid"] = live["metadata"]["uid"]
            typed = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
            return {**typed, "status": "Success", "details": details}
        return conversion.to_version(deleted, ref.api_version)

    def _handle(
        self,
        request: Request,
        namespace: str,
        decode: Callable[[Obj], Obj] | None,
        writer: str,
    ) -> Obj | None:
        api, ref, body = self._api, request.ref, request.body
        status_check = None
        if request.user is not None:
            kind = resolve_kind(ref.api_version, ref.kind, self._cluster.served_kinds)
            target_namespace = ref.namespace or namespace
            attributes = Attributes(
                request.verb, kind, request.subresource, target_namespace, ref.name
            )
            self.authorizer.check(request.user, attributes)
            status_check = self.authorizer.of_status(request.user, attributes)
        match request.verb, request.subresource:
            case "patch", _ if request.manager is not None:
                return self._apply(request, namespace, status_check, decode)
            case "patch" | "update" as verb, subresource:
                change = patches.make_change(verb, body, decode)
                version = ref.api_version
                own = None
                if writer:
                    own = self.fields.own_updated(writer, version, subresource)
                changed = api.change(ref, change, subresource, namespace, status_check, verb, own)
                return changed if request.dry_run else self._remember(changed, own)
            case "delete", "":
                if api.get(ref, namespace) is not None:
                    self.delete(ref, body or {}, namespace)
            case "deletecollection", "":
                target_namespace = ref.namespace or namespace
                for obj in api.list(ref.api_version, ref.kind, target_namespace, request.labels):
                    grace, policy = body.get("gracePeriodSeconds"), body.get("propagationPolicy")
                    api.delete_stored(self._find_stored(obj), grace, policy)
            case "create", "eviction":
                self._evict(request, namespace)
            case "create", "binding":
                _check_binding(request)
                self._bind(self._find_pod(request, namespace), body)
            case _:
                text = "the server does not allow this method on the requested resource"
                raise ApiError(405, "MethodNotAllowed", text)
        return None

    def _apply(
        self,
        request: Request,
        namespace: str,
        check: StatusCheck | None,
        decode: Callable[[Obj], Obj] | None,
    ) -> Obj:
        """Apply on the server's side: create what is not there (and not a subresource of it).

        To create one must be allowed to, too (``withAuthorization`` of the API server's handlers).
        """
        assert request.manager is not None
        ref, subresource = request.ref, request.subresource
        own = self.fields.own_applied(request)
        if self._api.get(ref, namespace) is None and not subresource:
            if request.user is not None:
                self._authorize_creation(request.body, namespace, request.user)
            stored = self._api.create(request.body, namespace, own)
        else:
            apply = self.fields.change(request)

            def change(live: Obj) -> Obj:
                return apply(live) if decode is None else decode(apply(live))

            stored = self._api.change(ref, change, subresource, namespace, check, own=own)
        return stored if request.dry_run else self._remember(stored, own)

    def check_preconditions(self, obj: Obj, preconditions: Obj) -> None:
        """Refuse to delete another object than is meant (``BeforeDelete`` of the registry).

        Raises ApiError: 409.
        """
        for field, words, happened in (
            ("uid", "UID", "deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", "modified"),
        ):
            is_now = obj["metadata"][field]
            if preconditions.get(field, is_now) != is_now:
                kind = kind_of(obj, self._cluster.served_kinds)
                text = (
                    f'Operation cannot be fulfilled on {kind.group_kind} "{name_of(obj)}": the'
                    f" {words} in the precondition ({preconditions[field]}) does not match the"
                    f" {words} in record ({is_now}). The object might have been {happened}"
                )
                details = {"name": name_of(obj), "group": kind.group, "kind": kind.name}
                details = {name: value for name, value in details.items() if value}
                raise ApiError(409, "Conflict", text, details=details)

    def _find_stored(self, obj: Obj) -> Obj:
        stored = self._cluster.store.by_uid(obj["metadata"]["uid"])
        assert stored is not None  # it was just listed
        return stored

    def _find_pod(self, request: Request, namespace: str) -> Obj:
        pod = self._api.get(request.ref, namespace)
        if pod is None:
            raise not_found(KINDS["Pod"], request.ref.name)
        return self._find_stored(pod)

    def _evict(self, request: Request, namespace: str) -> None:
        """Evict a pod (``EvictionREST``): there is no PodDisruptionBudget here that forbids it."""
        eviction: Obj = request.body
        _check_name(request, "Eviction")
        options = eviction.get("deleteOptions") or {}
        pod = self._find_pod(request, namespace)
        self.check_preconditions(pod, options.get("preconditions") or {})
        with self._cluster.store.dry_run() if options.get("dryRun") else nullcontext():
            now = self._cluster.clock.format_timestamp()

            def mark(new: Obj) -> None:
                set_condition(new["status"], _EVICTED, now)

            self._cluster.store.modify(pod, mark)
            evicted = self._find_pod(request, namespace)
            policy, grace = _policy_of(options), options.get("gracePeriodSeconds")
            self._api.delete_stored(evicted, grace, policy)

    def _bind(self, pod: Obj, binding: Obj) -> None:
        """Bind a pod as ``BindingREST`` does (pkg/registry/core/pod/storage)."""
        node = binding["target"]["name"]
        meta = binding.get("metadata") or {}
        why = ""
        self._api.check_uid(pod, meta.get("uid"))
        if "deletionTimestamp" in pod["metadata"]:
            why = f"pod {name_of(pod)} is being deleted, cannot be assigned to a host"
        elif pod["spec"].get("nodeName"):
            why = f'pod {name_of(pod)} is already assigned to node "{pod["spec"]["nodeName"]}"'
        elif pod["spec"].get("schedulingGates"):
            why = f"pod {name_of(pod)} has non-empty .spec.schedulingGates"
        if why:
            text = f'Operation cannot be fulfilled on pods/binding "{name_of(pod)}": {why}'
            details = {"name": name_of(pod), "kind": "pods/binding"}
            raise ApiError(409, "Conflict", text, details=details)
        now = self._cluster.clock.format_timestamp()

        def bind(new: Obj) -> None:
            new["spec"]["nodeName"] = node
            for field in ("annotations", "labels"):
                if meta.get(field):
                    new["metadata"][field] = {**new["metadata"].get(field, {}), **meta[field]}
            condition: dict[str, Any] = {"type": "PodScheduled", "status": "True"}
            set_condition(new["status"], {**condition, "lastTransitionTime": now}, now)

        self._cluster.store.modify(pod, bind)
        self._cluster.note(namespace_of(pod), f"pod {name_of(pod)} was bound to {node}")


def _check_name(request: Request, kind: str) -> None:
    """Check that what is posted to a pod names the pod. Raises ApiError: 400."""
    name = (request.body.get("metadata") or {}).get("name")
    if name != request.ref.name:
        text = f"name in URL does not match name in {kind} object"
        raise ApiError(400, "BadRequest", text)


def _check_binding(request: Request) -> None:
    """Check what a pod is to be bound to. Raises ApiError: 400 and 500."""
    _check_name(request, "Binding")
    texts = [*dict.fromkeys(map(str, check_binding(request.body)))]
    if texts:
        raise ApiError(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
