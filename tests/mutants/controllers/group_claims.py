"""Defects of the claim controller and of PodGroup protection: claims that a PodGroup has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.cluster import Cluster
from kubesim.controllers.claims import ClaimController
from kubesim.controllers.eviction import EvictionController
from kubesim.controllers.evictor import Eviction, Evictor
from kubesim.controllers.group_protection import PodGroupProtection
from kubesim.store import name_of, namespace_of
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, Original, instead, part, replace

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def matches_by(*fields: str, of_any_group: bool = False) -> Mutation:
    """An entry of a pod is its group's if these fields are the same."""

    @instead(Cluster.consumer_of)
    def mutate(world: World, _: Original, pod: Obj, entry: Obj) -> Obj:
        groups = world.cluster.store.all("PodGroup", namespace_of(pod))
        for group in groups:
            if of_any_group or name_of(group) == pods.group_name(pod):
                for other in group["spec"].get("resourceClaims") or []:
                    if all(entry.get(field) == other.get(field) for field in fields):
                        return group
        return pod

    return mutate


def shares_with_any_group(world: World) -> None:
    """A pod of another group, or of none, gets the claim of a group with the same entry."""
    matches_by("name", *_SOURCES, of_any_group=True)(world)
    replace(world.cluster.may_use, lambda *_: True)
    replace(world.cluster.is_reserved, _is_reserved_for_any_group)


def _is_reserved_for_any_group(original: Original, claim: Obj, pod: Obj) -> bool:
    users = claim["status"].get("reservedFor") or []
    return bool(original(claim, pod)) or any(map(pods.is_group_reference, users))


@instead(Cluster.consumer_of)
def makes_claims_for_each_pod(_: World, _original: Original, pod: Obj, _entry: Obj) -> Obj:
    """Each pod of a group gets a claim of its own."""
    return pod


@instead(ClaimController.new_claim)
def belongs_to_nobody(
    world: World, original: Callable[..., Obj], owner: Obj, entry: str, template: Obj
) -> Obj:
    """The claim of a group belongs to nobody."""
    claim = original(owner, entry, template)
    if owner["kind"] == "PodGroup":
        claim["metadata"]["ownerReferences"][0]["controller"] = False
    return claim


def releases_with_the_last_pod(world: World) -> None:
    """A claim is taken from its group when no pod of the group is there."""
    store, had_pods = world.cluster.store, set[str]()

    def remaining_users(original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        kept = []
        for user in original(claim):
            members = [
                pod
                for pod in store.all("Pod", namespace_of(claim))
                if pods.group_name(pod) == user["name"]
            ]
            if members:
                had_pods.add(user["uid"])
            if not pods.is_group_reference(user) or members or user["uid"] not in had_pods:
                kept.append(user)
        return kept

    replace(part(world, ClaimController).remaining_users, remaining_users)


@instead(ClaimController.remaining_users)
def keeps_reservations_of_gone_groups(_: World, original: Original, claim: Obj) -> list[Obj]:
    """A claim stays reserved for a group that is gone."""
    kept: list[Obj] = original(claim)
    users = claim["status"].get("reservedFor") or []
    return [user for user in users if user in kept or pods.is_group_reference(user)]


def makes_claims_with_the_first_pod(world: World) -> None:
    """A group gets its claims when a pod of it comes."""

    def create(original: Callable[..., Any], owner: Obj, *args: Any) -> Any:
        members = world.cluster.store.all("Pod", namespace_of(owner))
        if owner["kind"] == "PodGroup" and not any(
            pods.group_name(pod) == name_of(owner) for pod in members
        ):
            return None
        return original(owner, *args)

    replace(part(world, ClaimController).create_claim, create)


def does_not_note_claims_of_groups(world: World) -> None:
    """The status of a group does not say which claims were made for it."""

    def modify(original: Callable[..., Obj], obj: Obj, change: Callable[[Obj], None]) -> Obj:
        def without(new: Obj) -> None:
            change(new)
            if new["kind"] == "PodGroup":
                new["status"].pop("resourceClaimStatuses", None)

        return original(obj, without)

    replace(world.cluster.store.modify, modify)


@instead(ClaimController.sync)
def makes_claims_before_the_group(world: World, original: Callable[[], None]) -> None:
    """A pod whose group is not there yet gets claims of its own."""
    controller = part(world, ClaimController)
    for pod in world.cluster.store.all("Pod"):
        is_early = pods.group_name(pod) is not None and world.cluster.group_of(pod) is None
        for entry in pod["spec"].get("resourceClaims") or [] if is_early else ():
            template = entry.get("resourceClaimTemplateName")
            if template and controller.find_generated_claim(pod, entry["name"]) is None:
                controller.create_claim(pod, entry["name"], template)
    original()


@instead(EvictionController.list_evictions)
def evicts_no_groups(
    _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
) -> list[Eviction]:
    """A pod whose group has the tainted device stays."""
    claims = [claim for _, claim in evictor.cluster.claims_of(pod) if claim is not None]
    is_own = all(pods.is_reserved(claim, pod) for claim in claims)
    return original(evictor, pod) if is_own else []


def evicts_beside_groups(world: World) -> None:
    """With the pods of a group whose device is tainted all pods of the namespace go."""
    seen: dict[str, list[Eviction]] = {}

    def list_evictions(
        original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
    ) -> list[Eviction]:
        found = original(evictor, pod)
        if found and pods.group_name(pod) is not None:
            seen[namespace_of(pod)] = found
        return found or seen.get(namespace_of(pod), [])

    replace(part(world, EvictionController).list_evictions, list_evictions)


DEFECTS: Defects = {
    "each-pod-of-a-group-gets-a-claim": makes_claims_for_each_pod,
    "group-claims-are-found-by-name": matches_by("name"),
    "group-claims-are-found-by-template": matches_by(*_SOURCES),
    "group-claims-are-for-other-groups": shares_with_any_group,
    "group-claims-belong-to-nobody": belongs_to_nobody,
    "group-claims-come-with-the-first-pod": makes_claims_with_the_first_pod,
    "group-claims-are-not-noted": does_not_note_claims_of_groups,
    "group-claims-go-with-the-last-pod": releases_with_the_last_pod,
    "evicts-no-pods-of-groups": evicts_no_groups,
    "evicts-pods-beside-groups": evicts_beside_groups,
    "gone-groups-keep-claims": keeps_reservations_of_gone_groups,
    "groups-go-before-their-pods": instead(PodGroupProtection.has_active_pods)(lambda *_: False),
    "groups-stay-for-ever": instead(PodGroupProtection.has_active_pods)(lambda *_: True),
    "pods-get-claims-before-their-group": makes_claims_before_the_group,
}
