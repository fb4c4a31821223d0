"""Defects of how claims are made from templates."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import POD_CLAIM_ANNOTATION, Obj
from kubesim import pods
from kubesim.controllers.claims import ClaimController
from kubesim.store import name_of, namespace_of, uid_of
from kubesim.world import World
from tests.mutants.controllers import in_new_claims
from tests.mutants.replacing import Defects, Mutation, instead, part, replace
from tests.mutants.scheduler import take_any_claim

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


@instead(ClaimController.new_claim)
def take_labels_of_template(_: World, original: New, pod: Obj, entry: str, template: Obj) -> Obj:
    """Labels and annotations of the template itself are copied, not those of spec.metadata."""
    claim = original(pod, entry, template)
    claim["metadata"]["labels"] = dict(template["metadata"].get("labels") or {})
    return claim


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


DEFECTS: Defects = {
    "adopts-claims-of-other-entries": adopts(
        lambda claim, pod, _: pods.is_controlled_by(claim, pod)
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
    "template-gives-its-own-labels": take_labels_of_template,
    "template-loses-annotations": in_new_claims(lose_annotations),
    "template-loses-constraints": losing("constraints"),
    "trusts-names-in-the-status-of-pods": trusts_names_in_status,
}
