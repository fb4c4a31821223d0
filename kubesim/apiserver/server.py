"""The API server: every request goes through here, and through nothing else.

Decoding is strict, objects are converted to their stored version, completed and checked, and come
back in the version that was asked for. Controllers bypass it where what they write is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from kube.errors import ApiError
from kube.store import has_labels
from kube.values import Obj, Ref
from kubesim import goforms, validation
from kubesim.apiserver import (
    conversion,
    decoding,
    defaulting,
    deletion,
    disabled_fields,
    new_objects,
    tables,
)
from kubesim.apiserver.admission import Quotas, admit_changed_pod, admit_new
from kubesim.apiserver.fieldmanagers import OwnFields
from kubesim.apiserver.watches import Tell, Watch, matches_fields
from kubesim.cluster import Cluster
from kubesim.resources import DRA_GROUP, Kind, kind_of, resolve_kind
from kubesim.store import clone, name_of, namespace_of, new_refusal, not_found
from kubesim.validation import declared, errors
from kubesim.validation.errors import FieldError, invalid, invalid_status, new_invalid

_SEEN_WITH_EMPTY_LISTS = frozenset({"ResourceClaimTemplate", "ResourceSlice"})
"""Kinds of which validation tells, or says, whether an empty list is there."""

DECLARED_SINCE = "1.37"
"""The minor whose rules are declared as ``kubesim.validation.declared`` has them."""

_WITHOUT_STATUS_AT_FIRST = frozenset({"ResourcePoolStatusRequest"})
"""Kinds whose status is a pointer in Go, and so may be none."""

StatusCheck = Callable[[Obj, Obj], list[FieldError]]
"""From a new and an old object to what is not permitted of the difference of their status."""

_IMMUTABLE_METADATA = ("name", "namespace", *new_objects.SYSTEM_METADATA)
_CHECKED_METADATA = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
"""System metadata that a client may not change, and is told so."""

_CONDITIONAL_UPDATES = frozenset(
    {
        "resource.k8s.io/v1/DeviceTaintRule",
        "resource.k8s.io/v1alpha3/ResourcePoolStatusRequest",
        "scheduling.k8s.io/v1beta1/PodGroup",
    }
)
"""Kinds whose updates need a resourceVersion; v1beta2 of this one does not (seen with 1.37.1)."""


class ApiServer:
    """Requests of clients against the store."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._expressions = validation.Expressions(cluster.minor, cluster.gates)
        self.quotas = Quotas(cluster)

    def create(self, obj: Obj, default_namespace: str, own: OwnFields | None = None) -> Obj:
        """Store a new object.

        Args:
            obj: as the client sends it; not changed.
            own: gives its ``managedFields``; None for none.

        Raises ApiError: refused (400, 403, 404, 409 or 422).
        """
        kind = kind_of(obj, self._cluster.served_kinds)
        decoded = decoding.decode_object(kind, obj)
        new = new_objects.complete_new(kind, decoded, default_namespace, self._cluster.clock)
        if own is not None and (entries := own(None, new, None)):
            new["metadata"]["managedFields"] = entries
        admit_new(self._store, new)
        disabled_fields.drop_disabled_fields(self._cluster.gates, self._cluster.minor, new)
        try:
            self.admit(kind, new)
        except ApiError as error:
            raise self._arrange(kind, obj["apiVersion"], new, error) from None
        return conversion.to_version(self._store.add(goforms.drop_unset(new)), obj["apiVersion"])

    def admit(self, kind: Kind, new: Obj) -> None:
        """Refuse a new object that may not be stored, complete but for a name that is generated.

        Raises ApiError: refused (403, 404 or 422).
        """
        labels = deletion.namespace_labels(self._store, kind, new)
        checked = new_objects.with_generated_name(new)
        self.validate_new(kind, checked, labels)
        disabled_fields.admit_slice(self._cluster.gates, self._store, checked)
        self.quotas.admit(checked)

    def build_table(self, kind: str, objects: Sequence[Obj], metadata: Obj) -> Obj:
        """Return objects as ``kubectl get`` prints them."""
        return tables.build_table(kind, objects, self._store.seconds_since, metadata)

    def validate_new(self, kind: Kind, obj: Obj, namespace_labels: Mapping[str, str]) -> None:
        """Check a new object in its stored version, complete with name and defaults.

        Raises ApiError: 422 with a cause for each violated rule.
        """
        validation.check_create(kind, obj, namespace_labels, self._expressions)

    def _arrange(self, kind: Kind, api_version: str, obj: Obj, error: ApiError) -> ApiError:
        """Return a refusal with its causes as they are in the version of the request."""
        is_declared = kind.group == DRA_GROUP and self._cluster.minor >= DECLARED_SINCE
        if not is_declared or error.code != 422 or not error.causes:
            return error
        sent = conversion.to_version(obj, api_version)
        causes = declared.rearrange(error.causes, sent)
        errors = [FieldError(cause.field, cause.reason, cause.message) for cause in causes]
        return invalid_status(kind, obj["metadata"].get("name") or "", errors)

    def validate_change(self, kind: Kind, new: Obj, old: Obj, *, status: bool) -> None:
        """Check a change of an object, or of its status, both in their stored version.

        Raises ApiError: 422 with a cause for each violated rule.
        """
        validation.check_update(kind, new, old, self._expressions, status=status)

    def get(self, ref: Ref, default_namespace: str) -> Obj | None:
        """Return an object in the version that the reference names, or None. Raises ApiError."""
        stored = self._find(ref, default_namespace)
        return None if stored is None else conversion.to_version(stored, ref.api_version)

    def list(
        self,
        api_version: str,
        kind_name: str,
        namespace: str,
        labels: Mapping[str, str] | None,
        fields: Mapping[str, str] | None = None,
    ) -> list[Obj]:
        """Return the objects of a kind that carry all the labels, by name.

        Raises ApiError: 404 for a kind or version that is not served; 400 for a field by which
        objects of the kind cannot be selected.
        """
        kind = resolve_kind(api_version, kind_name, self._cluster.served_kinds)
        matching = [
            obj
            for obj in self._store.all(kind.name, namespace if kind.namespaced else None)
            if has_labels(obj, labels) and matches_fields(kind, fields or {}, obj)
        ]
        matching.sort(key=lambda obj: obj["metadata"]["name"])
        return [conversion.to_version(obj, api_version) for obj in matching]

    def watch(
        self,
        api_version: str,
        kind_name: str,
        namespace: str,
        labels: Mapping[str, str] | None,
        fields: Mapping[str, str] | None,
        tell: Tell,
    ) -> Watch:
        """Tell every change of what `list` would show, from now on. Raises ApiError."""
        kind = resolve_kind(api_version, kind_name, self._cluster.served_kinds)
        matches_fields(kind, fields or {}, {})  # are there such fields?

        def selected(obj: Obj) -> bool:
            watched_namespace = namespace if kind.namespaced else ""
            return (
                namespace_of(obj) == watched_namespace
                and has_labels(obj, labels)
                and matches_fields(kind, fields or {}, obj)
            )

        def tell_version(change: str, obj: Obj) -> None:
            tell(change, conversion.to_version(obj, api_version))

        return Watch(self._store, kind.name, selected, tell_version)

    def change(
        self,
        ref: Ref,
        change: Callable[[Obj], Obj],
        subresource: str | None,
        default_namespace: str,
        authorize: StatusCheck | None = None,
        verb: str = "patch",
        own: OwnFields | None = None,
    ) -> Obj:
        """Change an object in the version that the reference names, or its status.

        Args:
            change: from the object to what it becomes, such as `patches.make_change` gives.
            subresource: ``status``, or none, which leaves the status as it is.
            authorize: what the requester may not change of a status.
            verb: ``update`` if the change puts a whole object there.
            own: gives the object's ``managedFields``; None to leave them as they are.

        Raises ApiError: 404, 409 (resourceVersion does not match), 422, 400 (unknown field).
        """
        kind = resolve_kind(ref.api_version, ref.kind, self._cluster.served_kinds)
        old = self._find(ref, default_namespace)
        if old is None:
            raise not_found(kind, ref.name)
        merged = change(conversion.to_version(old, ref.api_version))
        self._check_precondition(ref, merged, old, verb)
        merged["apiVersion"], merged["kind"] = ref.api_version, ref.kind
        new = decoding.decode_object(kind, merged)
        conversion.to_storage(new)
        shows_claims = kind.name == "ResourceClaim" and self._cluster.minor < DECLARED_SINCE
        tells_empty_lists = kind.name in _SEEN_WITH_EMPTY_LISTS or shows_claims
        forbidden: list[FieldError] = []
        sent_entries = (merged.get("metadata") or {}).get("managedFields")
        if subresource == "status":
            defaulting.apply_to_status(new)
            entries = own and own(old, new, sent_entries)
            if not tells_empty_lists:
                new = goforms.drop_unset(new)
            has_status = kind.name not in _WITHOUT_STATUS_AT_FIRST or "status" in new
            new = {**clone(old), "status": new.get("status") or {}}
            if not has_status:
                del new["status"]
            if kind.name != "Node":  # whose strategy keeps what a status says, gate or no gate
                self._drop_disabled_fields(new, old)
            if kind.name == "ResourceClaim":
                defaulting.drop_deallocated(new, old)
                forbidden += validation.check_admin_status(new, old, self._labels_of_namespace(new))
            # A claim's strategy prepares it before rights are looked at, a pod's does so after.
            forbidden += [] if authorize is None else authorize(new, old)
            if kind.name == "Pod":
                validation.keep_claims(new, old)
        else:
            forbidden += self.check_new_finalizers(new["metadata"], old["metadata"])
            forbidden += _check_system_metadata(new["metadata"], old["metadata"])
            for field in _IMMUTABLE_METADATA:
                if field == "selfLink" and self._store.is_dry:
                    continue  # it goes when an object is stored
                new["metadata"].pop(field, None)
                if field in old["metadata"]:
                    new["metadata"][field] = old["metadata"][field]
            new.pop("status", None)
            if "status" in old:
                new["status"] = clone(old["status"])
            defaulting.apply_to_change(new, old, self._cluster.clock, ref.api_version)
            entries = own and own(old, new, sent_entries)
            if not tells_empty_lists:  # to validation it is none, as it is once it is stored
                new = goforms.drop_unset(new)
            if kind.name == "Pod":
                admit_changed_pod(new, old)
            is_slice = kind.name == "ResourceSlice"
            is_changed = is_slice and goforms.drop_unset(new)["spec"] != old["spec"]
            self._drop_disabled_fields(new, old)
            if is_changed and goforms.drop_unset(new)["spec"] == old["spec"]:
                # Its strategy counts a change before it drops what is disabled.
                new["metadata"]["generation"] += 1
        if entries is not None:
            new["metadata"]["managedFields"] = entries
        try:
            self.validate_change(kind, new, old, status=subresource == "status")
        except ApiError as error:
            forbidden += (FieldError(c.field, c.reason, c.message) for c in error.causes)
            if not error.causes:
                raise
        if forbidden:
            refusal = invalid_status(kind, ref.name, forbidden)
            raise self._arrange(kind, ref.api_version, new, refusal)
        if subresource != "status":
            disabled_fields.admit_slice(self._cluster.gates, self._store, new)
        stored = self._store.replace(goforms.drop_unset(new) if tells_empty_lists else new)
        return conversion.to_version(stored, ref.api_version)

    def _drop_disabled_fields(self, new: Obj, old: Obj) -> None:
        gates, minor = self._cluster.gates, self._cluster.minor
        disabled_fields.drop_disabled_fields(gates, minor, new, old)

    def check_new_finalizers(self, new: Obj, old: Obj) -> Sequence[FieldError]:
        """Return what is not permitted of the finalizers of an object (ValidateNoNewFinalizers).

        Args:
            new: its metadata, after the change.
            old: before it.
        """
        late = {*(new.get("finalizers") or ())} - {*(old.get("finalizers") or ())}
        if not late or "deletionTimestamp" not in old:
            return []
        found = ", ".join(f'"{finalizer}"' for finalizer in sorted(late))
        why = "no new finalizers can be added if the object is being deleted, found new finalizers"
        return [errors.forbidden("metadata.finalizers", f"{why} []string{{{found}}}")]

    def _check_precondition(self, ref: Ref, new: Obj, old: Obj, verb: str) -> None:
        """Check that a change is meant of the object that there is now.

        Raises ApiError: 409, it is of another one or an older state; 422 and 500, it does not say.
        """
        kind = resolve_kind(ref.api_version, ref.kind, self._cluster.served_kinds)
        sent, meta, name = new["metadata"], old["metadata"], ref.name
        if verb == "update":
            self.check_uid(old, sent.get("uid"))
        version = sent.get("resourceVersion", "")
        if not re.fullmatch(r"[0-9]*", version):
            parsing = f'strconv.ParseUint: parsing "{version}": invalid syntax'
            raise ApiError(500, "", parsing)
        is_unconditional = not int(version or 0)
        if is_unconditional and f"{ref.api_version}/{ref.kind}" in _CONDITIONAL_UPDATES:
            error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise new_invalid(kind.plural, kind.group, name, [error])
        if int(version or 0) and version != meta["resourceVersion"]:
            why = (
                "the object has been modified; please apply your changes to the latest version and "
                "try again"
            )
            raise self._new_conflict(kind, name, why)

    def check_uid(self, obj: Obj, uid: str | None) -> None:
        """Check that a stored object is the one that is meant; None: any. Raises ApiError: 409."""
        meta = obj["metadata"]
        if uid in (None, meta["uid"]):
            return
        place = f"{meta['namespace']}/{name_of(obj)}" if "namespace" in meta else name_of(obj)
        kind = kind_of(obj, self._cluster.served_kinds)
        folder = "minions" if kind.name == "Node" else kind.plural  # as nodes were called
        why = (
            f"StorageError: invalid object, Code: 4, Key: {self._store.prefix}/{folder}/"
            f"{place}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            f"precondition: {uid}, UID in object meta: {meta['uid']}"
        )
        raise self._new_conflict(kind, name_of(obj), why)

    def _new_conflict(self, kind: Kind, name: str, why: str) -> ApiError:
        text = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
        return new_refusal(409, "Conflict", kind, name, text)

    def delete(
        self,
        ref: Ref,
        grace_seconds: int | None,
        default_namespace: str,
        propagation: str | None = None,
    ) -> Obj | None:
        """Ask for deletion: at once, after the grace period, or when finalizers are gone.

        Returns the object as it is then, or was last; None of one that was gone already. Raises:
            ApiError: 404 for a kind or version that is not served.
        """
        stored = self._find(ref, default_namespace)
        return None if stored is None else self.delete_stored(stored, grace_seconds, propagation)

    def delete_stored(
        self, obj: Obj, grace_seconds: int | None = None, propagation: str | None = None
    ) -> Obj:
        """Delete a stored object, as `delete` does; returns it as it is then, or was last."""
        return deletion.delete_object(
            self._store, self._cluster.clock, obj, grace_seconds, propagation
        )

    def _labels_of_namespace(self, obj: Obj) -> Mapping[str, str]:
        stored_namespace = self._store.get("Namespace", "", namespace_of(obj)) or {"metadata": {}}
        labels: Mapping[str, str] = stored_namespace["metadata"].get("labels") or {}
        return labels

    def _find(self, ref: Ref, default_namespace: str) -> Obj | None:
        kind = resolve_kind(ref.api_version, ref.kind, self._cluster.served_kinds)
        namespace = (ref.namespace or default_namespace) if kind.namespaced else ""
        return self._store.get(kind.name, namespace, ref.name)


def _check_system_metadata(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Yield the system's metadata that a change would change (``ValidateObjectMetaUpdate``)."""
    for field in _CHECKED_METADATA:
        if (field in new and field not in old) or new.get(field, old.get(field)) != old.get(field):
            yield invalid(f"metadata.{field}", new[field], "field is immutable")
