"""Defects of how claims are made from templates, and found again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import POD_CLAIM_ANNOTATION, Obj
from kubesim import pods
from kubesim.cluster import Cluster, Counts
from kubesim.controllers.claims import ClaimController
from kubesim.resources import Kind
from kubesim.store import clone, name_of, namespace_of, uid_of
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, Original, instead, part, replace
from tests.mutants.scheduler.queueing import take_any_claim


@instead(Counts.count)
def admin_access_is_not_told(
    _: World, original: Original, of: str, name: str, **labels: str
) -> None:
    if "admin_access" in labels:
        labels["admin_access"] = "false"
    original(of, name, **labels)


@instead(Counts.count)
def failures_count_as_successes(
    _: World, original: Original, of: str, name: str, **labels: str
) -> None:
    if labels.get("status") == "failure":
        labels["status"] = "success"
    original(of, name, **labels)


def templates_as_first_seen(world: World) -> None:
    known: dict[tuple[str, str], Obj] = {}

    def new_claim(original: Callable[..., Obj], pod: Obj, pod_claim: str, template: Obj) -> Obj:
        key = (namespace_of(template), name_of(template))
        return original(pod, pod_claim, known.setdefault(key, clone(template)))

    replace(part(world, ClaimController).new_claim, new_claim)


@instead(ClaimController.create_claim)
def templates_of_any_namespace(
    world: World, original: Original, pod: Obj, pod_claim: str, name: str
) -> Any:
    controller = part(world, ClaimController)
    store = world.cluster.store
    if store.get("ResourceClaimTemplate", namespace_of(pod), name) is None:
        for other in store.all("ResourceClaimTemplate"):
            if name_of(other) == name:
                return store.add(controller.new_claim(pod, pod_claim, other))
    return original(pod, pod_claim, name)


def in_new_claims(change: Callable[[Obj], None]) -> Mutation:
    """Something is wrong in every claim that is made from a template."""

    @instead(ClaimController.new_claim)
    def mutate(_: World, original: Callable[..., Obj], *args: Any) -> Obj:
        claim = original(*args)
        change(claim)
        return claim

    return mutate


def lose_owner(claim: Obj) -> None:
    del claim["metadata"]["ownerReferences"]


def lose_labels(claim: Obj) -> None:
    claim["metadata"].pop("labels", None)


@instead(Cluster.record_event)
def says_nothing_of_claims(
    _: World, original: Original, pod: Obj, kind: str, reason: str, *args: Any
) -> None:
    if reason != "FailedResourceClaimCreation":
        original(pod, kind, reason, *args)


def no_owner_reference(world: World) -> None:
    in_new_claims(lose_owner)(world)
    take_any_claim(world)
    replace(part(world, ClaimController).belongs_to_pod, lambda *_: True)


def shares_template_claim(world: World) -> None:
    store = world.cluster.store

    def find(original: Callable[..., Obj | None], pod: Obj, pod_claim: str) -> Obj | None:
        found = original(pod, pod_claim)
        entry = next(item for item in pod["spec"]["resourceClaims"] if item["name"] == pod_claim)
        name = entry["resourceClaimTemplateName"]
        template = store.get("ResourceClaimTemplate", namespace_of(pod), name)
        for claim in store.all("ResourceClaim", namespace_of(pod)):
            annotations = claim["metadata"].get("annotations") or {}
            same = template is not None and claim["spec"] == template["spec"].get("spec")
            if found is None and same and annotations.get(POD_CLAIM_ANNOTATION) == pod_claim:
                return claim
        return found

    take_any_claim(world)
    replace(part(world, ClaimController).belongs_to_pod, lambda *_: True)
    replace(part(world, ClaimController).find_generated_claim, find)


def misses_new_template(world: World) -> None:
    missed = set()

    def make(original: Callable[..., Obj | None], pod: Obj, *args: str) -> Obj | None:
        if uid_of(pod) in missed:
            return None
        made = original(pod, *args)
        if made is None:
            missed.add(uid_of(pod))
        return made

    replace(part(world, ClaimController).create_claim, make)


def misses_claims_of_a_burst(world: World) -> None:
    missed: set[str] = set()
    made: set[str] = set()

    def make(original: Callable[..., Obj | None], pod: Obj, *args: str) -> Obj | None:
        if len(made) == 4 and uid_of(pod) not in made:
            missed.add(uid_of(pod))
        made.add(uid_of(pod))
        return None if uid_of(pod) in missed else original(pod, *args)

    def sync(original: Callable[[], None]) -> None:
        made.clear()
        original()

    replace(part(world, ClaimController).create_claim, make)
    replace(part(world, ClaimController).sync, sync)


@instead(ClaimController.create_claim)
def refuses_long_names(
    _: World, original: Callable[..., Obj | None], pod: Obj, pod_claim: str, *args: str
) -> Any:
    too_long = len(name_of(pod)) + len(pod_claim) > 57
    return None if too_long else original(pod, pod_claim, *args)


New = Callable[..., Obj]


Find = Callable[[Obj, str], Obj | None]


def named(name: Callable[[Obj, str, Obj], str]) -> Mutation:
    """Claims get another `generateName`, made of pod, entry and template."""

    @instead(ClaimController.new_claim)
    def mutate(_: World, original: New, pod: Obj, entry: str, template: Obj) -> Obj:
        claim = original(pod, entry, template)
        claim["metadata"]["generateName"] = name(pod, entry, template)
        return claim

    return mutate


def losing(field: str) -> Mutation:
    """Claims lack a part of what the template asks for."""
    return in_new_claims(lambda claim: claim["spec"].get("devices", {}).pop(field, None))


def lose_annotations(claim: Obj) -> None:
    annotations = claim["metadata"]["annotations"]
    claim["metadata"]["annotations"] = {POD_CLAIM_ANNOTATION: annotations[POD_CLAIM_ANNOTATION]}


def named_after_first_entry(world: World) -> None:
    """All claims of a pod say that they are for its first entry."""

    def new_claim(original: New, pod: Obj, entry: str, template: Obj) -> Obj:
        claim = original(pod, entry, template)
        first = pod["spec"]["resourceClaims"][0]["name"]
        claim["metadata"]["annotations"][POD_CLAIM_ANNOTATION] = first
        return claim

    controller = part(world, ClaimController)
    replace(controller.new_claim, new_claim)
    replace(controller.find_generated_claim, lambda *_: None)


def adopts(which: Callable[[Obj, Obj, str], bool]) -> Mutation:
    """Which claim, that the pod's status does not name, is taken for one made before."""

    @instead(ClaimController.find_generated_claim)
    def mutate(world: World, _: Find, pod: Obj, entry: str) -> Obj | None:
        claims = world.cluster.store.all("ResourceClaim", namespace_of(pod))
        return next((claim for claim in claims if which(claim, pod, entry)), None)

    return mutate


def says(claim: Obj, entry: str) -> bool:
    return (claim["metadata"].get("annotations") or {}).get(POD_CLAIM_ANNOTATION) == entry


def trusts_names_in_status(world: World) -> None:
    """A claim that the pod's status names is taken for the pod's, whoever owns it."""
    take_any_claim(world)
    replace(part(world, ClaimController).belongs_to_pod, lambda *_: True)


@instead(ClaimController.create_claim)
def trusts_templates_of_one_name(
    world: World, original: Callable[..., Obj | None], pod: Obj, entry: str, name: str
) -> Obj | None:
    """A template that is missing is taken from another namespace."""
    store = world.cluster.store
    made = original(pod, entry, name)
    others = [one for one in store.all("ResourceClaimTemplate") if name_of(one) == name]
    if made is not None or not others:
        return made
    return store.add(part(world, ClaimController).new_claim(pod, entry, others[0]))


def makes_for_deleted_pods(world: World) -> None:
    """A pod that is being deleted gets claims, which stay as long as it does."""
    controller, store = part(world, ClaimController), world.cluster.store
    kept: set[str] = set()

    def sync(original: Callable[[], None]) -> None:
        original()
        for pod in store.all("Pod"):
            if pod["spec"].get("resourceClaims") and pods.is_deleted(pod):
                before = {uid_of(claim) for claim in store.all("ResourceClaim")}
                controller._sync_pod(pod)
                kept.update({uid_of(claim) for claim in store.all("ResourceClaim")} - before)

    def delete(original: Callable[[Obj], None], claim: Obj) -> None:
        if uid_of(claim) not in kept:
            original(claim)

    replace(controller.sync, sync)
    replace(controller._delete_unneeded, delete)


@instead(ClaimController._sync_pod)
def skips_bound_pods(_: World, original: Callable[[Obj], None], pod: Obj) -> None:
    """A pod that got its node without the scheduler gets no claim from a template."""
    if not pod["spec"].get("nodeName"):
        original(pod)


@instead(ClaimController.new_claim)
def _template_names_the_entry(
    _: World, original: Callable[..., Obj], pod: Obj, entry: str, template: Obj
) -> Obj:
    """An annotation of the template stands in the place of that which names the entry."""
    claim = original(pod, entry, template)
    own = (template["spec"].get("metadata") or {}).get("annotations") or {}
    claim["metadata"]["annotations"].update(own)
    return claim


def _owned(claim: Obj, pod: Obj) -> bool:
    owners = claim["metadata"].get("ownerReferences") or []
    return any(owner["uid"] == uid_of(pod) for owner in owners)


def _any_owner(world: World) -> None:
    """A generated claim is a pod's that has the pod among its owners, controller or not."""

    def ready(original: Callable[[Obj], list[Obj] | None], pod: Obj) -> list[Obj] | None:
        found = original(pod)
        claims = [claim for _, claim in world.cluster.claims_of(pod)]
        there = [claim for claim in claims if claim is not None and not pods.is_deleted(claim)]
        if found is None and len(there) == len(claims) and all(_owned(c, pod) for c in there):
            return there
        return found

    replace(world.scheduler.ready_claims, ready)
    replace(part(world, ClaimController).belongs_to_pod, lambda _, claim, pod: _owned(claim, pod))


def _makes_without_admission(world: World) -> None:
    """Whether a namespace may have admin access is not asked of claims of templates."""
    making: list[str] = []

    def make(original: Callable[..., Obj | None], pod: Obj, entry: str, name: str) -> Obj | None:
        making.append(name)
        try:
            return original(pod, entry, name)
        finally:
            making.pop()

    def check(original: Original, kind: Kind, obj: Obj, labels: Any) -> None:
        label = {"resource.kubernetes.io/admin-access": "true"}
        original(kind, obj, {**labels, **label} if making else labels)

    replace(part(world, ClaimController).create_claim, make)
    replace(world.api.validate_new, check)


DEFECTS: Defects = {
    "admin-access-of-new-claims-is-not-counted": admin_access_is_not_told,
    "claims-that-were-refused-count-as-made": failures_count_as_successes,
    "templates-as-first-seen": templates_as_first_seen,
    "templates-of-any-namespace": templates_of_any_namespace,
    "says-nothing-of-claims": says_nothing_of_claims,
    "refuses-long-claim-names": refuses_long_names,
    "template-loses-labels": in_new_claims(lose_labels),
    "misses-claims-of-a-burst": misses_claims_of_a_burst,
    "misses-new-template": misses_new_template,
    "no-owner-reference": no_owner_reference,
    "shares-template-claim": shares_template_claim,
    "adopts-claims-of-other-entries": adopts(
        lambda claim, pod, _: pods.is_controlled_by(claim, pod)
    ),
    "adopts-owned-claims": adopts(
        lambda claim, pod, entry: says(claim, entry) and _owned(claim, pod)
    ),
    "adopts-no-claims": adopts(lambda *_: False),
    "bound-pods-get-no-claims-from-templates": skips_bound_pods,
    "generated-claims-name-the-first-entry": named_after_first_entry,
    "generated-claims-are-named-after-templates": named(
        lambda pod, entry, template: f"{name_of(template)}-{entry}-"[:57]
    ),
    "long-claim-names-lose-their-entry": named(
        lambda pod, entry, template: f"{name_of(pod)}-{entry}-"[:57]
    ),
    "makes-claims-for-deleted-pods": makes_for_deleted_pods,
    "takes-templates-of-other-namespaces": trusts_templates_of_one_name,
    "template-loses-annotations": in_new_claims(lose_annotations),
    "template-loses-constraints": losing("constraints"),
    "trusts-names-in-the-status-of-pods": trusts_names_in_status,
    "template-names-the-entry": _template_names_the_entry,
    "owners-need-not-be-controllers": _any_owner,
    "templates-keep-admin-access": _makes_without_admission,
}
