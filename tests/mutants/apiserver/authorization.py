"""Defects of who may do what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

from kube.values import Obj, User
from kubesim.apiserver.authorization import Attributes, Authorizer
from kubesim.apiserver.kubelets import KubeletRights
from kubesim.store import namespace_of
from kubesim.validation.pod import MIRROR
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead, replace

Allows = Callable[..., bool]
HasClaim = Callable[..., bool]
Explain = Callable[..., str | None]
Check = Callable[..., None]

POD_VERBS = ("get", "list", "watch")
SLICE_VERBS = ("get", "update", "patch", "delete", "list", "watch", "deletecollection")


def check_nothing(world: World) -> None:
    replace(world.handler.authorizer.check, lambda *_: None)


def allows_subresource(subresource: str) -> Mutation:
    """Who may write the status may do what needs a subresource of its own, too."""

    @instead(Authorizer.allows)
    def mutate(_: World, original: Allows, user: User, wanted: Attributes, **how: bool) -> bool:
        return wanted.subresource == subresource or original(user, wanted, **how)

    return mutate


@instead(Authorizer.allows)
def every_node_is_associated(
    _: World, original: Allows, user: User, wanted: Attributes, **how: bool
) -> bool:
    verb = wanted.verb.replace("arbitrary-node:", "associated-node:")
    return original(user, wanted, **how) or original(user, changed(wanted, verb=verb), **how)


def kubelets_may(resource: str, verb: str) -> Mutation:
    """The authorizer Node allows a verb without a look at whose the object is."""

    @instead(KubeletRights.explain_refusal)
    def mutate(_: World, original: Explain, node: str, *wanted: Any) -> str | None:
        return None if wanted[:2] == (verb, resource) else original(node, *wanted)

    return mutate


def kubelets_may_not(resource: str, verb: str) -> Mutation:
    @instead(KubeletRights.explain_refusal)
    def mutate(_: World, original: Explain, node: str, *wanted: Any) -> str | None:
        return "" if wanted[:2] == (verb, resource) else original(node, *wanted)

    return mutate


def any_slice_is_admitted(action: str) -> Mutation:
    @instead(KubeletRights.check_slice)
    def mutate(_: World, original: Check, node: str, obj: Obj, what: str) -> None:
        if what != action:
            original(node, obj, what)

    return mutate


@instead(KubeletRights.check_slice)
def slices_of_all_nodes_are_admitted(
    _: World, original: Check, node: str, obj: Obj, action: str
) -> None:
    if not obj["spec"].get("allNodes"):
        original(node, obj, action)


@instead(KubeletRights.check_pod_status)
def any_pods_status_is_admitted(_: World, original: Check, node: str, new: Obj, old: Obj) -> None:
    original(old["spec"].get("nodeName", node), new, old)


@instead(KubeletRights.check_mirror_pod)
def mirror_pods_have_claims(_: World, original: Check, node: str, pod: Obj) -> None:
    original(node, {**pod, "spec": {**pod["spec"], "resourceClaims": []}})


@instead(KubeletRights.check_mirror_pod)
def every_pod_is_a_mirror(_: World, original: Check, node: str, pod: Obj) -> None:
    annotations = {MIRROR: "", **(pod["metadata"].get("annotations") or {})}
    original(node, {**pod, "metadata": {**pod["metadata"], "annotations": annotations}})


@instead(KubeletRights.check_mirror_pod)
def mirrors_of_any_node(_: World, original: Check, node: str, pod: Obj) -> None:
    original(node, {**pod, "spec": {**pod["spec"], "nodeName": node}})


@instead(KubeletRights.check_pod_status)
def claims_can_be_taken_out(_: World, original: Check, node: str, new: Obj, old: Obj) -> None:
    claims = {k: v for k, v in old["status"].items() if k == "resourceClaimStatuses"}
    original(node, {**new, "status": claims | new["status"]}, old)


@instead(KubeletRights.has_claim)
def claims_have_no_namespace(
    world: World, original: HasClaim, node: str, _namespace: str, name: str
) -> bool:
    namespaces = {namespace_of(pod) for pod in world.cluster.store.all("Pod")}
    return any(original(node, namespace, name) for namespace in namespaces)


def status_field_is_open(field: str) -> Mutation:
    @instead(KubeletRights.check_pod_status)
    def mutate(_: World, original: Check, node: str, new: Obj, old: Obj) -> None:
        status = {**new["status"], field: old["status"].get(field)}
        original(node, {**new, "status": status}, old)

    return mutate


def forget_claims(entries: str) -> Mutation:
    """The authorizer does not see one way in which a pod has claims."""

    @instead(KubeletRights.has_claim)
    def mutate(world: World, original: HasClaim, node: str, namespace: str, name: str) -> bool:
        for pod in world.cluster.store.all("Pod", namespace):
            statuses = pod["status"].get("resourceClaimStatuses") or ()
            extended = pod["status"].get("extendedResourceClaimStatus") or {}
            made = [item.get("resourceClaimName") for item in statuses]
            if name in (made if entries == "made" else [extended.get("resourceClaimName")]):
                return False
        return original(node, namespace, name)

    return mutate


@instead(KubeletRights.has_claim)
def wanted_nodes_count(
    world: World, original: HasClaim, node: str, namespace: str, name: str
) -> bool:
    """A pod that wants a node counts as one that is there."""
    return original(node, namespace, name) or any(
        entry.get("resourceClaimName") == name
        for pod in world.cluster.store.all("Pod", namespace)
        if not pod["spec"].get("nodeName")
        for entry in pod["spec"].get("resourceClaims") or ()
    )


@instead(KubeletRights.has_claim)
def rights_outlive_pods(
    world: World, original: HasClaim, node: str, namespace: str, name: str
) -> bool:
    seen: set[tuple[str, str, str]] = world.__dict__.setdefault("_seen_claims", set())
    if original(node, namespace, name):
        seen.add((node, namespace, name))
    return (node, namespace, name) in seen


DEFECTS: Defects = {
    "any-pods-status-is-the-kubelets": any_pods_status_is_admitted,
    "kubelets-change-claims": kubelets_may("resourceclaims", "patch"),
    "kubelets-change-status-of-claims": kubelets_may("resourceclaims/status", "patch"),
    "kubelets-delete-claims": kubelets_may("resourceclaims", "delete"),
    "kubelets-list-claims": kubelets_may("resourceclaims", "list"),
    "kubelets-watch-claims": kubelets_may("resourceclaims", "watch"),
    "kubelets-read-all-claims": kubelets_may("resourceclaims", "get"),
    "kubelets-read-no-claims-of-extended-resources": forget_claims("extended"),
    "kubelets-read-no-generated-claims": forget_claims("made"),
    "kubelets-read-claims-of-waiting-pods": wanted_nodes_count,
    "kubelets-read-claims-of-gone-pods": rights_outlive_pods,
    **{
        f"kubelets-{verb}-slices-of-others": kubelets_may("resourceslices", verb)
        for verb in SLICE_VERBS
    },
    **{
        f"kubelets-cannot-{verb}-slices": kubelets_may_not("resourceslices", verb)
        for verb in ("create", "delete", "deletecollection", "list")
    },
    "kubelets-create-slices-of-others": any_slice_is_admitted("create"),
    "kubelets-create-slices-of-all-nodes": slices_of_all_nodes_are_admitted,
    "kubelets-read-claims-of-any-namespace": claims_have_no_namespace,
    "kubelets-make-pods-with-claims": mirror_pods_have_claims,
    "kubelets-make-any-pods": every_pod_is_a_mirror,
    "kubelets-make-pods-of-others": mirrors_of_any_node,
    "kubelets-make-no-pods": kubelets_may_not("pods", "create"),
    "kubelets-say-what-devices-take": status_field_is_open("nodeAllocatableResourceClaimStatuses"),
    "kubelets-take-claims-out-of-the-status": claims_can_be_taken_out,
    **{f"kubelets-{verb}-pods-of-others": kubelets_may("pods", verb) for verb in POD_VERBS},
    "kubelets-report-no-status": kubelets_may_not("pods/status", "patch"),
    "kubelets-say-which-claims-are-made": status_field_is_open("resourceClaimStatuses"),
    "kubelets-say-which-extended-claim-is-made": status_field_is_open(
        "extendedResourceClaimStatus"
    ),
    "authorizes-every-account": check_nothing,
    "authorizes-every-binding": allows_subresource("binding"),
    "authorizes-every-node": every_node_is_associated,
}
