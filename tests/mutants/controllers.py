"""Defects of the controllers: claims and garbage collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import POD_CLAIM_ANNOTATION, Obj
from kubesim import pods
from kubesim.cluster import Cluster
from kubesim.controllers.claims import ClaimController
from kubesim.store import name_of, namespace_of, uid_of
from kubesim.world import World
from tests.mutants.nodes import take_any_reservation
from tests.mutants.replacing import Defects, Mutation, instead, part, replace
from tests.mutants.scheduler import reserve_without_pod, take_any_claim


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
    _: World, original: Callable[..., Any], pod: Obj, kind: str, reason: str, *args: Any
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


def forgets_reservation(world: World) -> None:
    reserve_without_pod(world)
    take_any_reservation(world)
    replace(part(world, ClaimController).reserve_for_pod, lambda *_: None)


@instead(ClaimController.remaining_users)
def releases_too_early(_: World, original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
    remaining = original(claim)
    users = claim["status"].get("reservedFor") or []
    return remaining if len(remaining) == len(users) else []


@instead(ClaimController.set_users)
def never_release(
    _: World, original: Callable[..., Obj], claim: Obj, users: Obj, *, release: bool
) -> Obj:
    return original(claim, users, release=release and pods.is_deleted(claim))


@instead(ClaimController.remaining_users)
def finished_pods_keep_claims(
    world: World, original: Callable[..., list[Obj]], claim: Obj
) -> list[Obj]:
    """A claim stays reserved for a pod that has ended, as long as the pod is there."""
    store = world.cluster.store
    users = claim["status"].get("reservedFor") or []
    present = [user for user in users if store.by_uid(user["uid"]) is not None]
    return present if len(present) > len(original(claim)) else original(claim)


def reserves_for_ended_pods(world: World) -> None:
    """As kubernetes#141274; once for each pod, as nothing would ever settle otherwise."""
    controller, again = part(world, ClaimController), set()

    def remaining_users(original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        kept = original(claim)
        users = (kept and claim["status"].get("reservedFor")) or []
        return [user for user in users if user in kept or user["uid"] in again]

    def sync(original: Callable[[], None]) -> None:
        original()
        for pod in world.cluster.store.all("Pod"):
            if pods.is_finished(pod) and uid_of(pod) not in again:
                again.add(uid_of(pod))
                controller.reserve_for_pod(pod)

    replace(controller.remaining_users, remaining_users)
    replace(controller.sync, sync)


def forced_pods_keep_claims(world: World) -> None:
    """A claim stays reserved for a pod that was on its way out when it was deleted by force."""
    store, ending = world.cluster.store, set()

    def remaining_users(original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        remaining = original(claim)
        for user in claim["status"].get("reservedFor") or []:
            pod = store.by_uid(user["uid"])
            if pod is not None and pods.is_deleted(pod) and not pods.is_finished(pod):
                ending.add(user["uid"])
            elif pod is None and user["uid"] in ending:
                remaining.append(user)
        return remaining

    replace(part(world, ClaimController).remaining_users, remaining_users)


def allocates_without_pod(world: World) -> None:
    """A claim that no pod uses is allocated after a second, as if immediate binding were back."""
    store, clock = world.cluster.store, world.cluster.clock
    seen: dict[str, float] = {}

    def remaining_users(original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        due = seen.get(uid_of(claim))
        if due is None:
            due = seen[uid_of(claim)] = clock.wake_in(1)
        used = any(
            claim == found
            for pod in store.all("Pod", namespace_of(claim))
            for _, found in world.cluster.claims_of(pod)
        )
        if clock.now >= due and not used and "allocation" not in claim["status"]:
            nothing: Obj = {"devices": {"results": []}}
            store.modify(claim, lambda new: new["status"].update(allocation=nothing))
        return original(claim)

    replace(part(world, ClaimController).remaining_users, remaining_users)


@instead(ClaimController.set_users)
def keeps_device_status(
    world: World, original: Callable[..., Obj], claim: Obj, *args: Any, **kwargs: Any
) -> Obj:
    released = original(claim, *args, **kwargs)
    reported = claim["status"].get("devices")
    if reported is None or world.cluster.store.by_uid(uid_of(claim)) is None:
        return released
    return world.cluster.store.modify(claim, lambda new: new["status"].update(devices=reported))


@instead(ClaimController.create_claim)
def refuses_long_names(
    _: World, original: Callable[..., Obj | None], pod: Obj, pod_claim: str, *args: str
) -> Any:
    too_long = len(name_of(pod)) + len(pod_claim) > 57
    return None if too_long else original(pod, pod_claim, *args)


@instead(Cluster.claims_of)
def waits_for_unneeded_claims(_: World, original: Callable[..., Any], pod: Obj) -> Any:
    """An entry of a pod's claims waits for a claim, though the pod's status says there is none."""
    found = {entry["name"]: claim for entry, claim in original(pod)}
    for entry in pod["spec"].get("resourceClaims") or []:
        yield entry, found.get(entry["name"])


def other_namespace(world: World) -> None:
    take_any_reservation(world)

    def claims_of(original: Callable[..., Any], pod: Obj) -> Any:
        for entry, claim in original(pod):
            name = pods.claim_name(pod, entry)
            everywhere = world.cluster.store.all("ResourceClaim")
            elsewhere = (item for item in everywhere if name_of(item) == name)
            yield entry, claim or next(elsewhere, None)

    def remaining_users(_original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        users = claim["status"].get("reservedFor") or []
        found = [(user, world.cluster.store.by_uid(user["uid"])) for user in users]
        return [user for user, pod in found if pod is not None and not pods.will_not_run(pod)]

    replace(world.cluster.claims_of, claims_of)
    replace(part(world, ClaimController).remaining_users, remaining_users)


@instead(ClaimController.sync)
def deletes_claims_at_restarts(world: World, original: Callable[[], None]) -> None:
    """A claim that was made for a pod is deleted when a container of the pod starts again."""
    original()
    for pod in world.cluster.store.all("Pod"):
        restarted = any(
            status.get("restartCount") for status in pod["status"].get("containerStatuses") or ()
        )
        for entry, claim in world.cluster.claims_of(pod):
            made = "resourceClaimTemplateName" in entry
            if restarted and made and claim is not None and not pods.is_deleted(claim):
                world.api.delete_stored(claim)


DEFECTS: Defects = {
    "deletes-claims-at-restarts": deletes_claims_at_restarts,
    "says-nothing-of-claims": says_nothing_of_claims,
    "allocates-without-pod": allocates_without_pod,
    "reserves-for-ended-pods": reserves_for_ended_pods,
    "refuses-long-claim-names": refuses_long_names,
    "waits-for-unneeded-claims": waits_for_unneeded_claims,
    "finished-pods-keep-claims": finished_pods_keep_claims,
    "template-loses-labels": in_new_claims(lose_labels),
    "forced-pods-keep-claims": forced_pods_keep_claims,
    "forgets-reservation": forgets_reservation,
    "keeps-device-status": keeps_device_status,
    "misses-claims-of-a-burst": misses_claims_of_a_burst,
    "misses-new-template": misses_new_template,
    "never-release": never_release,
    "no-owner-reference": no_owner_reference,
    "other-namespace": other_namespace,
    "releases-too-early": releases_too_early,
    "shares-template-claim": shares_template_claim,
}
