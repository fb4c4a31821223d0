"""What a node's kubelet may do, as far as it is about devices.

A kubelet's account reads the claims of its own pods and keeps the ResourceSlices of its own node,
and nothing of any other node's: one that is taken over must not lie about the devices of others.
Sources: the authorizer Node (plugin/pkg/auth/authorizer/node, node_authorizer.go; graph.go, AddPod)
and the admission plugin NodeRestriction (plugin/pkg/admission/noderestriction/admission.go), both
of v1.37.1. Of kinds that have nothing to do with devices a kubelet may do nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kube.values import Obj
from kubesim import pods
from kubesim.cluster import Cluster
from kubesim.store import new_forbidden, uid_of
from kubesim.validation.pod import MIRROR, is_mirror

_NODE_NAME: Final = "spec.nodeName"
"""The field selector that limits a request for many slices or pods to those of a node."""

_UNRELATED: Final = "no relationship found between node '{}' and this object"
_ONE_NODES_SLICES: Final = (
    "can only list/watch/deletecollection resourceslices with nodeName field selector"
)
_ONE_NODES_PODS: Final = "can only list/watch pods with spec.nodeName field selector"
_SLICE_VERBS: Final = (
    "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update,"
    " patch, delete, deletecollection"
)

_KEPT_STATUSES: Final = {
    "resourceClaimStatuses": "resource claim statues",  # as it is spelt there
    "extendedResourceClaimStatus": "extended resource claim status",
    "nodeAllocatableResourceClaimStatuses": "node allocatable resource claim statuses",
}
"""Fields of a pod's status that say which claims it has, and what they are called in refusals."""


class KubeletRights:
    """The rights of kubelets' accounts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def explain_refusal(
        self,
        node: str,
        verb: str,
        resource: str,
        namespace: str,
        name: str,
        fields: Mapping[str, str],
    ) -> str | None:
        """Say why the authorizer Node does not allow a request; None: it allows it.

        Args:
            node: whose kubelet asks.
            resource: plural, with its subresource: ``pods/status``.
            name: of the object that is meant, "" for many.
            fields: the field selector of a request for many.

        Returns: the reason, "" where the authorizer gives none.
        """
        of_node = fields.get(_NODE_NAME) == node
        match resource, verb:
            case "resourceclaims", "get":
                allowed, reason = self.has_claim(node, namespace, name), _UNRELATED.format(node)
            case "resourceclaims/status", "get":
                allowed, reason = False, "cannot get subresource"
            case "resourceclaims" | "resourceclaims/status", _:
                allowed, reason = False, "can only get individual resources of this type"
            case "resourceslices", "create":  # whose it is, is looked at when it is admitted
                allowed, reason = True, ""
            case "resourceslices", "get" | "update" | "patch" | "delete":
                allowed = _is_of_node(self._cluster.store.get("ResourceSlice", "", name), node)
                reason = _UNRELATED.format(node)
            case "resourceslices", "list" | "watch" | "deletecollection":
                allowed, reason = of_node, _ONE_NODES_SLICES
            case "resourceslices", _:
                allowed, reason = False, _SLICE_VERBS
            case "pods", "get":
                allowed = _is_of_node(self._cluster.store.get("Pod", namespace, name), node)
                reason = _UNRELATED.format(node)
            case "pods", "list" | "watch":
                allowed, reason = of_node, _ONE_NODES_PODS
            case "pods", "create":  # which ones, is looked at when they are admitted
                allowed, reason = True, ""
            case "pods/status", "update" | "patch":  # so is, of which pod
                allowed, reason = True, ""
            case _:
                allowed, reason = False, ""
        return None if allowed else reason

    def check_new(self, node: str, obj: Obj) -> None:
        """Refuse a slice of another node, and a pod that a kubelet may not make.

        Raises ApiError: 403.
        """
        self.check_slice(node, obj, "create")
        if obj["kind"] == "Pod":
            self.check_mirror_pod(node, obj)

    def check_mirror_pod(self, node: str, pod: Obj) -> None:
        """Refuse a pod that stands for no static pod of the node, or has claims.

        Raises ApiError: 403. Of other objects that a pod may refer to nothing is refused here.
        """
        owners = pod["metadata"].get("ownerReferences") or []
        present = self._cluster.store.get("Node", "", node)
        own = [
            {"apiVersion": "v1", "kind": "Node", "name": node, "controller": True}.items()
            <= owner.items()
            for owner in owners
        ]
        reason = ""
        if not is_mirror(pod):
            reason = (
                f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror'
                " pods"
            )
        elif not _is_of_node(pod, node):
            reason = f'node "{node}" can only create pods with spec.nodeName set to itself'
        elif own != [True]:
            reason = f'node "{node}" can only create pods with an owner reference set to itself'
        elif present is None or owners[0].get("uid") != uid_of(present):
            reason = f"node {node} UID mismatch"
        elif (pod.get("spec") or {}).get("resourceClaims"):
            reason = f'node "{node}" can not create pods that reference resourceclaims'
        if reason:
            raise new_forbidden(pod, reason)

    def check_slice(self, node: str, obj: Obj, action: str) -> None:
        """Refuse a slice of another node. ``action``: create or delete. Raises ApiError: 403."""
        if obj["kind"] == "ResourceSlice" and not _is_of_node(obj, node):
            text = f"can only {action} ResourceSlice with the same NodeName as the requesting node"
            raise new_forbidden(obj, text)

    def check_pod_status(self, node: str, new: Obj, old: Obj) -> None:
        """Refuse what a kubelet may not change of a pod's status. Raises ApiError: 403."""
        if not _is_of_node(old, node):
            text = "can only update pod status for pods with spec.nodeName set to itself"
            raise new_forbidden(new, f'node "{node}" {text}')
        for field, words in _KEPT_STATUSES.items():
            if (new["status"].get(field) or None) != (old["status"].get(field) or None):
                raise new_forbidden(new, f'node "{node}" cannot update {words}')

    def has_claim(self, node: str, namespace: str, name: str) -> bool:
        """Return whether a pod that is bound to the node names the claim, or has it made for it."""
        return any(
            name in _list_claims(pod)
            for pod in self._cluster.store.all("Pod", namespace)
            if _is_of_node(pod, node)
        )


def _list_claims(pod: Obj) -> set[str | None]:
    entries = pod["spec"].get("resourceClaims") or ()
    extended: Mapping[str, Any] = pod["status"].get("extendedResourceClaimStatus") or {}
    names = {pods.claim_name(pod, entry) for entry in entries}
    return names | {extended.get("resourceClaimName")}


def _is_of_node(obj: Obj | None, node: str) -> bool:
    return obj is not None and (obj.get("spec") or {}).get("nodeName") == node
