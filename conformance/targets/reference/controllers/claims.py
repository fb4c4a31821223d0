"""The resource claim controller: makes claims from templates and releases what nobody uses.

Follows pkg/controller/resourceclaim/controller.go of Kubernetes 1.37.
"""

from __future__ import annotations

from typing import Final

from conformance.targets.base import Obj
from conformance.targets.reference import miswriting
from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.apiserver.store import clone, name_of, namespace_of, uid_of
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.controllers import pods
from conformance.targets.reference.faults import Fault

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
MAX_RESERVED: Final = 256
_MAX_GENERATE_NAME: Final = 57


class ClaimController:
    """Reconciles pods (claims they need) and claims (users they have)."""

    watches = frozenset({"Pod", "ResourceClaim", "ResourceClaimTemplate"})

    def __init__(self, cluster: Cluster, api: ApiServer) -> None:
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self._faults = cluster.faults
        self._complained: dict[str, str] = {}

    def sync(self) -> None:
        """One round over all pods and claims."""
        for pod in self._store.all("Pod"):
            if pod["spec"].get("resourceClaims") and not pods.is_deleted(pod):
                self._sync_pod(pod)
        for claim in self._store.all("ResourceClaim"):
            self._sync_claim(claim)

    def _sync_pod(self, pod: Obj) -> None:
        if pods.is_finished(pod):
            return
        made: dict[str, str] = {}
        for entry, claim in pods.claims(self._cluster, pod):
            template = entry.get("resourceClaimTemplateName")
            if template is None or (claim is not None and self._belongs(claim, pod)):
                continue
            found = self._find(pod, entry["name"], template)
            if found is None:
                found = self._make(pod, entry["name"], template)
            if found is None:
                return
            made[entry["name"]] = name_of(found)
        if made:
            pod = self._store.modify(pod, lambda new: _remember(new, made))
        if pod["spec"].get("nodeName"):
            self._reserve(pod)

    def _belongs(self, claim: Obj, pod: Obj) -> bool:
        if {Fault.SHARES_TEMPLATE_CLAIM, Fault.NO_OWNER_REFERENCE} & self._cluster.faults:
            return True
        return pods.is_controlled_by(claim, pod)

    def _find(self, pod: Obj, pod_claim: str, template: str) -> Obj | None:
        """A claim that was made for the pod before, but not noted in its status."""
        for claim in self._store.all("ResourceClaim", namespace_of(pod)):
            annotations = claim["metadata"].get("annotations") or {}
            if annotations.get(POD_CLAIM_ANNOTATION) != pod_claim:
                continue
            if pods.is_controlled_by(claim, pod):
                return claim
            if Fault.SHARES_TEMPLATE_CLAIM in self._cluster.faults and self._is_from(
                claim, template
            ):
                return claim
        return None

    def _is_from(self, claim: Obj, template: str) -> bool:
        found = self._store.get("ResourceClaimTemplate", namespace_of(claim), template)
        return found is not None and claim["spec"] == found["spec"].get("spec")

    def _make(self, pod: Obj, pod_claim: str, template_name: str) -> Obj | None:
        namespace = namespace_of(pod)
        if Fault.MISSES_NEW_TEMPLATE in self._cluster.faults and uid_of(pod) in self._complained:
            return None
        template = self._store.get("ResourceClaimTemplate", namespace, template_name)
        if template is None:
            message = (
                f'PodResourceClaim {pod_claim}: resource claim template "{template_name}": '
                f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            )
            if self._complained.get(uid_of(pod)) != message:
                self._complained[uid_of(pod)] = message
                self._cluster.event(
                    pod, "Warning", "FailedResourceClaimCreation", message, "resource_claim"
                )
            return None
        extra = template["spec"].get("metadata") or {}
        annotations = {**(extra.get("annotations") or {}), POD_CLAIM_ANNOTATION: pod_claim}
        meta: Obj = {
            "generateName": _generate_name(name_of(pod), pod_claim),
            "namespace": namespace,
            "annotations": annotations,
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": name_of(pod),
                    "uid": uid_of(pod),
                    "controller": True,
                }
            ],
        }
        if extra.get("labels"):
            meta["labels"] = dict(extra["labels"])
        if Fault.NO_OWNER_REFERENCE in self._cluster.faults:
            del meta["ownerReferences"]
        if Fault.NO_POD_CLAIM_ANNOTATION in self._cluster.faults:
            del annotations[POD_CLAIM_ANNOTATION]
        claim: Obj = {
            "apiVersion": template["apiVersion"],
            "kind": "ResourceClaim",
            "metadata": meta,
            "spec": clone(template["spec"]["spec"]),
            "status": {},
        }
        if Fault.TEMPLATE_LOSES_SELECTORS in self._cluster.faults:
            miswriting.lose_selectors(claim)
        return self._store.add(claim)

    def _reserve(self, pod: Obj) -> None:
        """For a pod that got its node without the scheduler."""
        for _, claim in pods.claims(self._cluster, pod):
            if claim is None or "allocation" not in claim["status"]:
                continue
            users = claim["status"].get("reservedFor") or []
            if not pods.is_reserved(claim, pod) and len(users) < MAX_RESERVED:
                if Fault.FORGETS_RESERVATION in self._cluster.faults:
                    continue
                self._store.modify(claim, lambda new: _add_user(new, pods.reservation(pod)))

    def _sync_claim(self, claim: Obj) -> None:
        users = claim["status"].get("reservedFor") or []
        remaining = [user for user in users if not self._is_stale(user, namespace_of(claim))]
        if Fault.RELEASES_TOO_EARLY in self._cluster.faults and len(remaining) < len(users):
            remaining = []
        protected = FINALIZER in (claim["metadata"].get("finalizers") or [])
        keep = Fault.NEVER_RELEASE in self._cluster.faults and not pods.is_deleted(claim)
        if len(remaining) < len(users):
            release = not remaining and protected and not keep
            claim = self._store.modify(
                claim, lambda new: _set_users(new, remaining, release, self._faults)
            )
        elif protected and pods.is_deleted(claim) and not remaining:
            claim = self._store.modify(claim, lambda new: _set_users(new, [], True, self._faults))
        if not remaining:
            self._delete_unneeded(claim)

    def _is_stale(self, user: Obj, namespace: str) -> bool:
        if user.get("apiGroup") or user["resource"] != "pods":
            return False
        pod = self._store.get("Pod", namespace, user["name"])
        return pod is None or uid_of(pod) != user["uid"] or pods.will_not_run(pod)

    def _delete_unneeded(self, claim: Obj) -> None:
        """A generated claim goes when its pod is done, even if the pod stays."""
        for owner in claim["metadata"].get("ownerReferences") or []:
            if not owner.get("controller") or owner["kind"] != "Pod":
                continue
            pod = self._store.get("Pod", namespace_of(claim), owner["name"])
            if pod is not None and (uid_of(pod) != owner["uid"] or pods.will_not_run(pod)):
                current = self._store.by_uid(uid_of(claim))
                if current is not None:
                    self._api.delete_stored(current)


def _generate_name(pod: str, pod_claim: str) -> str:
    name = f"{pod}-{pod_claim}-"
    if len(name) <= _MAX_GENERATE_NAME:
        return name
    cut_pod = pod[: len(pod) * _MAX_GENERATE_NAME // len(name)]
    cut_claim = pod_claim[: len(pod_claim) * _MAX_GENERATE_NAME // len(name)]
    return f"{cut_pod}-{cut_claim}"


def _remember(pod: Obj, made: dict[str, str]) -> None:
    known = {
        status["name"]: status.get("resourceClaimName")
        for status in pod["status"].get("resourceClaimStatuses") or []
    }
    pod["status"]["resourceClaimStatuses"] = [
        {"name": name, "resourceClaimName": claim}
        for name, claim in sorted({**known, **made}.items())
    ]


def _add_user(claim: Obj, entry: Obj) -> None:
    claim["status"].setdefault("reservedFor", []).append(entry)


def _set_users(claim: Obj, users: list[Obj], release: bool, faults: frozenset[Fault]) -> None:
    status = claim["status"]
    if users:
        status["reservedFor"] = users
    else:
        status.pop("reservedFor", None)
    if release:
        status.pop("allocation", None)
        # What is said of devices that are no longer allocated is dropped by the API server.
        if Fault.KEEPS_DEVICE_STATUS not in faults:
            status.pop("devices", None)
        finalizers = claim["metadata"].get("finalizers") or []
        claim["metadata"]["finalizers"] = [name for name in finalizers if name != FINALIZER]
        if not claim["metadata"]["finalizers"]:
            del claim["metadata"]["finalizers"]
