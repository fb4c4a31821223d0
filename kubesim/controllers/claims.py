"""The resource claim controller: makes claims from templates and releases what nobody uses.

Follows pkg/controller/resourceclaim/controller.go of Kubernetes 1.37.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from kube.errors import ApiError
from kube.values import POD_CLAIM_ANNOTATION, Obj, generate_name
from kubesim import pods
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster
from kubesim.resources import KINDS
from kubesim.store import clone, name_of, namespace_of, retain_items, uid_of
from kubesim.views import View, is_owned_or_deleted
from reference_allocator.api.limits import RESERVED_FOR_MAX

_COMPONENT: Final = "kube-controller-manager"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"


class ClaimController:
    """Reconciles pods and PodGroups (claims they need) and claims (users they have)."""

    watches = frozenset(
        {"Namespace", "Pod", "PodGroup", "ResourceClaim", "ResourceClaimTemplate", "ResourceQuota"}
    )

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self._reported: dict[str, str] = {}
        # Nobody has ever used the others.
        self.claims = View(
            cluster.store,
            ["ResourceClaim"],
            lambda claim: bool(claim["status"]) or is_owned_or_deleted(claim),
        )

    def restart(self) -> None:
        self._reported.clear()
        self._cluster.counts.forget(_COMPONENT)

    def sync(self) -> None:
        if self._cluster.shares_in_groups:
            for group in self._store.all("PodGroup"):
                if not pods.is_deleted(group):
                    self._sync_group(group)
        for pod in self._store.all("Pod"):
            if pod["spec"].get("resourceClaims") and not pods.is_deleted(pod):
                self._sync_pod(pod)
        for claim in self.claims.list_objects():
            self._sync_claim(claim)

    def _sync_group(self, group: Obj) -> None:
        """Make the claims of a PodGroup and note their names (``syncPodGroup``).

        Upstream notes only the names of those that it has just made, and forgets the others': with
        two, of which one is deleted, it writes one name and the other in turn (seen with 1.37.2).
        """
        entries = list(self._cluster.claims_of(group))
        if all(claim is not None for _, claim in entries):
            return
        claim_names: dict[str, str] = {}
        for entry, claim in entries:
            template = entry.get("resourceClaimTemplateName")
            if template is None or (claim is not None and pods.is_controlled_by(claim, group)):
                continue
            generated = self.find_generated_claim(group, entry["name"])
            if generated is None:
                generated = self.create_claim(group, entry["name"], template)
            if generated is None:
                return
            claim_names[entry["name"]] = name_of(generated)
        if claim_names:
            self._store.modify(group, lambda new: _record_claim_names(new, claim_names))

    def _sync_pod(self, pod: Obj) -> None:
        if pods.is_finished(pod):
            return
        is_grouped = self._cluster.has_groups and pods.group_name(pod) is not None
        if is_grouped and self._cluster.group_of(pod) is None:
            return  # What is the group's is not known before it is there.
        claim_names: dict[str, str] = {}
        entries = list(self._cluster.claims_of(pod))
        if all(claim is not None for _, claim in entries):
            entries = []  # Also where one is not the pod's: that must go first (`podNeedsWork`).
        for entry, claim in entries:
            template = entry.get("resourceClaimTemplateName")
            if template is None or (claim is not None and self.belongs_to_pod(claim, pod)):
                continue
            owner = self._cluster.consumer_of(pod, entry)
            generated = self.find_generated_claim(owner, entry["name"])
            if generated is None and owner is not pod:
                continue  # It is made for the group.
            if generated is None:
                generated = self.create_claim(pod, entry["name"], template)
            if generated is None:
                return
            claim_names[entry["name"]] = name_of(generated)
        if claim_names:
            pod = self._store.modify(pod, lambda new: _record_claim_names(new, claim_names))
        if pod["spec"].get("nodeName"):
            self.reserve_for_pod(pod)

    def belongs_to_pod(self, claim: Obj, pod: Obj) -> bool:
        """Return whether the claim was made for this pod, not for another one of the same name.

        That of its group counts.
        """
        return self._cluster.may_use(pod, {"resourceClaimTemplateName": ""}, claim)

    def find_generated_claim(self, owner: Obj, entry_name: str) -> Obj | None:
        """Return a claim that was made for a pod or PodGroup and is not noted in its status."""
        for claim in self._store.all("ResourceClaim", namespace_of(owner)):
            annotations = claim["metadata"].get("annotations") or {}
            is_for_entry = annotations.get(POD_CLAIM_ANNOTATION) == entry_name
            if is_for_entry and pods.is_controlled_by(claim, owner):
                return claim
        return None

    def create_claim(self, owner: Obj, entry_name: str, template_name: str) -> Obj | None:
        """Create a claim from its template; None, with an event, as long as there is none.

        Args:
            owner: the pod or PodGroup for which it is.
            entry_name: of its entry of ``spec.resourceClaims``.
        """
        template = self._store.get("ResourceClaimTemplate", namespace_of(owner), template_name)
        described = f"{owner['kind']}ResourceClaim {entry_name}"
        if template is None:
            message = (
                f'{described}: resource claim template "{template_name}": '
                f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            )
            self._report(owner, message)
            return None
        claim = self.new_claim(owner, entry_name, template)
        try:
            self._api.admit(KINDS["ResourceClaim"], claim)
        except ApiError as error:
            self._cluster.counts.count_created_claim(_COMPONENT, claim, success=False)
            self._report(owner, f"{described}: create ResourceClaim : {error.message}")
            return None
        self._cluster.counts.count_created_claim(_COMPONENT, claim, success=True)
        return self._store.add(claim)

    def _report(self, owner: Obj, message: str) -> None:
        """Say once why a claim was not made."""
        if self._reported.get(uid_of(owner)) != message:
            self._reported[uid_of(owner)] = message
            self._cluster.record_event(
                owner, "Warning", "FailedResourceClaimCreation", message, "resource_claim"
            )

    def new_claim(self, owner: Obj, entry_name: str, template: Obj) -> Obj:
        """Return the claim that a template makes for an entry of ``spec.resourceClaims``.

        ``owner``: a pod or a PodGroup.
        """
        extra = template["spec"].get("metadata") or {}
        meta: Obj = {
            "generateName": generate_name(name_of(owner), entry_name),
            "namespace": namespace_of(owner),
            "annotations": {**(extra.get("annotations") or {}), POD_CLAIM_ANNOTATION: entry_name},
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": name_of(owner),
                    "uid": uid_of(owner),
                    "controller": True,
                }
            ],
        }
        if extra.get("labels"):
            meta["labels"] = dict(extra["labels"])
        return {
            "apiVersion": template["apiVersion"],
            "kind": "ResourceClaim",
            "metadata": meta,
            "spec": clone(template["spec"]["spec"]),
            "status": {},
        }

    def reserve_for_pod(self, pod: Obj) -> None:
        """Reserve the allocated claims of a pod that got its node without the scheduler."""
        for entry, claim in self._cluster.claims_of(pod):
            if claim is None:
                return
            if not self._cluster.may_use(pod, entry, claim):
                return
            if "allocation" not in claim["status"]:
                continue
            if not self._cluster.is_reserved(claim, pod) and self.can_be_reserved(claim):
                user = pods.consumer_reference(self._cluster.consumer_of(pod, entry))
                self._store.modify(claim, partial(_add_user, entry=user))

    def can_be_reserved(self, claim: Obj) -> bool:
        """Return whether a claim takes one more consumer (``CanBeReserved``)."""
        return len(claim["status"].get("reservedFor") or []) < RESERVED_FOR_MAX

    def _sync_claim(self, claim: Obj) -> None:
        users = claim["status"].get("reservedFor") or []
        remaining = self.remaining_users(claim)
        protected = FINALIZER in (claim["metadata"].get("finalizers") or [])
        if len(remaining) < len(users):
            claim = self.set_users(claim, remaining, release=not remaining and protected)
        elif protected and pods.is_deleted(claim) and not remaining:
            claim = self.set_users(claim, [], release=True)
        if not remaining:
            self._delete_unneeded(claim)

    def remaining_users(self, claim: Obj) -> list[Obj]:
        """Return the entries of ``status.reservedFor`` of pods and groups that need the claim."""
        users = claim["status"].get("reservedFor") or []
        return [user for user in users if not self._is_stale(user, namespace_of(claim))]

    def set_users(self, claim: Obj, users: list[Obj], *, release: bool) -> Obj:
        """Write ``status.reservedFor``, and take the allocation back if it is to be released."""
        return self._store.modify(claim, lambda new: _set_users(new, users, release))

    def _is_stale(self, user: Obj, namespace: str) -> bool:
        if pods.is_group_reference(user) and self._cluster.shares_in_groups:
            group = self._store.get("PodGroup", namespace, user["name"])
            return group is None or uid_of(group) != user["uid"]
        if user.get("apiGroup") or user["resource"] != "pods":
            return False
        pod = self._store.get("Pod", namespace, user["name"])
        return pod is None or uid_of(pod) != user["uid"] or pods.will_not_run(pod)

    def _delete_unneeded(self, claim: Obj) -> None:
        """Delete a generated claim when its pod is done, even if the pod stays."""
        for owner in claim["metadata"].get("ownerReferences") or []:
            if not owner.get("controller"):
                continue
            if (owner["apiVersion"], owner["kind"]) != ("v1", "Pod"):
                return  # An object has one controller.
            pod = self._store.get("Pod", namespace_of(claim), owner["name"])
            if pod is not None and (uid_of(pod) != owner["uid"] or pods.will_not_run(pod)):
                current = self._store.by_uid(uid_of(claim))
                if current is not None:
                    self._api.delete_stored(current)


def _record_claim_names(consumer: Obj, new_names: dict[str, str]) -> None:
    recorded_names = {
        status["name"]: status.get("resourceClaimName")
        for status in consumer["status"].get("resourceClaimStatuses") or []
    }
    consumer["status"]["resourceClaimStatuses"] = [
        {"name": name, "resourceClaimName": claim}
        for name, claim in sorted({**recorded_names, **new_names}.items())
    ]


def _add_user(claim: Obj, entry: Obj) -> None:
    claim["status"].setdefault("reservedFor", []).append(entry)


def _set_users(claim: Obj, users: list[Obj], release: bool) -> None:
    status = claim["status"]
    if users:
        status["reservedFor"] = users
    else:
        status.pop("reservedFor", None)
    if release:
        status.pop("allocation", None)
        # What is said of devices that are no longer allocated is dropped by the API server.
        status.pop("devices", None)
        retain_items(claim["metadata"], "finalizers", lambda name: name != FINALIZER)
