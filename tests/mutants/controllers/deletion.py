"""Defects of deletion: what goes with what was deleted, and what is released by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import POD_CLAIM_ANNOTATION, Obj, Ref
from kubesim import pods
from kubesim.controllers.claims import ClaimController
from kubesim.controllers.garbage_collection import GarbageCollector
from kubesim.resources import KINDS
from kubesim.store import namespace_of
from kubesim.world import World
from tests.mutants.allocation.inputs import wanted
from tests.mutants.replacing import Defects, Original, instead, part, replace


def releases_without_class(world: World) -> None:
    """A claim loses its devices when the class is deleted."""

    def remaining_users(original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        names = [item["deviceClassName"] for item in wanted(claim)]
        known = all(world.cluster.store.get("DeviceClass", "", name) for name in names)
        return original(claim) if known else []

    controller = part(world, ClaimController)
    replace(controller.remaining_users, remaining_users)
    controller.watches |= {"DeviceClass"}


@instead(GarbageCollector.is_ownerless)
def deletes_templates(world: World, original: Callable[[Obj], bool], obj: Obj) -> bool:
    """With a pod the templates go from which its claims were made."""
    store = world.cluster.store
    if obj["kind"] == "ResourceClaim" and original(obj):
        for template in store.all("ResourceClaimTemplate", namespace_of(obj)):
            store.remove(template)
    return original(obj)


@instead(GarbageCollector.is_ownerless)
def extended_claims_outlive_pods(_: World, original: Callable[[Obj], bool], obj: Obj) -> bool:
    generated = POD_CLAIM_ANNOTATION in (obj["metadata"].get("annotations") or {})
    return (obj["kind"] != "ResourceClaim" or generated) and original(obj)


@instead(GarbageCollector.is_ownerless)
def claims_outlive_pods(_: World, original: Callable[[Obj], bool], obj: Obj) -> bool:
    return obj["kind"] != "ResourceClaim" and original(obj)


@instead(ClaimController.set_users)
def claims_outlive_namespaces(
    world: World, original: Callable[..., Obj], claim: Obj, users: Obj, *, release: bool
) -> Obj:
    """A claim is not released if its namespace is being deleted."""
    store = world.cluster.store
    namespace = store.get("Namespace", "", namespace_of(claim))
    ends = namespace is not None and pods.is_deleted(namespace)
    return original(claim, users, release=release and not ends)


def releases_without_template(world: World) -> None:
    """A generated claim loses its devices when its template is deleted."""
    store = world.cluster.store

    def remaining_users(original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        entry = (claim["metadata"].get("annotations") or {}).get(POD_CLAIM_ANNOTATION)
        templates = [
            item["resourceClaimTemplateName"]
            for owner in claim["metadata"].get("ownerReferences") or []
            if (pod := store.by_uid(owner["uid"])) is not None
            for item in pod["spec"].get("resourceClaims") or []
            if item["name"] == entry
        ]
        present = [store.get("ResourceClaimTemplate", namespace_of(claim), t) for t in templates]
        return original(claim) if all(present) else []

    controller = part(world, ClaimController)
    replace(controller.remaining_users, remaining_users)


def releases_withdrawn(world: World) -> None:
    """A claim loses its devices when its pool goes on without them."""
    store = world.cluster.store

    def remaining_users(original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        published: dict[str, set[str]] = {}
        for item in store.all("ResourceSlice"):
            names = {device["name"] for device in item["spec"].get("devices") or []}
            published.setdefault(item["spec"]["pool"]["name"], set()).update(names)
        allocation = claim["status"].get("allocation") or {}
        found = (allocation.get("devices") or {}).get("results") or []
        gone = [r for r in found if r["device"] not in published.get(r["pool"], {r["device"]})]
        return [] if gone else original(claim)

    controller = part(world, ClaimController)
    replace(controller.remaining_users, remaining_users)
    controller.watches |= {"ResourceSlice"}


@instead(GarbageCollector.is_ownerless)
def pods_outlive_jobs(_: World, original: Callable[[Obj], bool], obj: Obj) -> bool:
    return obj["kind"] != "Pod" and original(obj)


def orphaned_pods_stay(world: World) -> None:
    replace(part(world, GarbageCollector)._collect_orphaned_pods, lambda *_: None)


def in_the_background(world: World, policy: str) -> None:
    """A deletion with a policy is one in the background."""

    def delete(original: Original, ref: Ref, *args: Any) -> None:
        original(ref, *("Background" if arg == policy else arg for arg in args))

    replace(world.api.delete, delete)


@instead(GarbageCollector.list_existing_owners)
def unknown_kinds_are_gone(
    world: World, original: Callable[[Obj], list[Obj] | None], obj: Obj
) -> list[Obj] | None:
    """An owner of a kind that is not served counts as gone."""
    known = [
        owner
        for owner in obj["metadata"].get("ownerReferences") or []
        if KINDS.get(owner["kind"]) and owner["apiVersion"] in KINDS[owner["kind"]].api_versions
    ]
    return original({**obj, "metadata": {**obj["metadata"], "ownerReferences": known}})


@instead(ClaimController._delete_unneeded)
def pods_of_any_group(_: World, original: Original, claim: Obj) -> None:
    """A custom resource of the kind Pod is taken for the pod of its name."""
    owners = [
        {**owner, "apiVersion": "v1"} if owner["kind"] == "Pod" else owner
        for owner in claim["metadata"].get("ownerReferences") or []
    ]
    original({**claim, "metadata": {**claim["metadata"], "ownerReferences": owners}})


DEFECTS: Defects = {
    "custom-pods-are-pods": pods_of_any_group,
    "owners-of-unknown-kinds-are-gone": unknown_kinds_are_gone,
    "claims-outlive-namespaces": claims_outlive_namespaces,
    "orphaned-pods-stay": orphaned_pods_stay,
    "orphans-are-deleted": lambda world: in_the_background(world, "Orphan"),
    "owners-go-first": lambda world: in_the_background(world, "Foreground"),
    "pods-outlive-jobs": pods_outlive_jobs,
    "releases-claims-of-deleted-templates": releases_without_template,
    "releases-claims-of-withdrawn-devices": releases_withdrawn,
    "deletes-templates-with-pods": deletes_templates,
    "extended-claims-outlive-pods": extended_claims_outlive_pods,
    "releases-claims-of-deleted-classes": releases_without_class,
    "claims-outlive-pods": claims_outlive_pods,
}
