"""Defects of what becomes of claims when their pods are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.controllers.claims import FINALIZER, ClaimController
from kubesim.store import uid_of
from kubesim.world import World
from reference_allocator.extended import ANNOTATION
from tests.mutants.replacing import Defects, Mutation, instead, part, replace


@instead(ClaimController.remaining_users)
def deletes_what_others_use(
    world: World, original: Callable[[Obj], list[Obj]], claim: Obj
) -> list[Obj]:
    controller = part(world, ClaimController)
    kept = original(claim)
    if kept:
        controller._delete_unneeded(claim)
    return kept


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


@instead(ClaimController.set_users)
def keeps_device_status(
    world: World, original: Callable[..., Obj], claim: Obj, *args: Any, **kwargs: Any
) -> Obj:
    released = original(claim, *args, **kwargs)
    reported = claim["status"].get("devices")
    if reported is None or world.cluster.store.by_uid(uid_of(claim)) is None:
        return released
    return world.cluster.store.modify(claim, lambda new: new["status"].update(devices=reported))


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


Users = Callable[[Obj], list[Obj]]


def users(world: World, kept: Callable[[Obj, Sequence[Obj]], list[Obj]]) -> None:
    """The claim controller keeps other entries of reservedFor than it should.

    ``kept``: called with the claim and the entries that it should keep.
    """

    def remaining_users(original: Users, claim: Obj) -> list[Obj]:
        return kept(claim, original(claim))

    replace(part(world, ClaimController).remaining_users, remaining_users)


def reserved(claim: Obj) -> list[Obj]:
    found: list[Obj] = claim["status"].get("reservedFor") or []
    return found


def removes(is_removed: Callable[[Obj], bool]) -> Mutation:
    """Consumers of a kind are taken out, as if they were pods that are gone."""

    def mutate(world: World) -> None:
        users(world, lambda _, kept: [user for user in kept if not is_removed(user)])

    return mutate


def is_named_like_pods(user: Obj) -> bool:
    return bool(user.get("apiGroup")) and user["resource"] == "pods"


def is_of_the_core_group(user: Obj) -> bool:
    return not user.get("apiGroup") and user["resource"] != "pods"


def unscheduled_pods_keep_claims(world: World) -> None:
    """A pod that was deleted before it got a node counts as one that may run."""
    controller, store = part(world, ClaimController), world.cluster.store

    def unscheduled(pod: Obj | None) -> bool:
        return pod is not None and pods.is_deleted(pod) and not pods.is_finished(pod)

    def kept(claim: Obj, remaining: Sequence[Obj]) -> list[Obj]:
        deleted = [user for user in reserved(claim) if unscheduled(store.by_uid(user["uid"]))]
        return [*remaining, *(user for user in deleted if user not in remaining)]

    def delete(original: Callable[[Obj], None], claim: Obj) -> None:
        owners = claim["metadata"].get("ownerReferences") or []
        if not any(unscheduled(store.by_uid(owner["uid"])) for owner in owners):
            original(claim)

    users(world, kept)
    replace(controller._delete_unneeded, delete)


def mistakes_new_pods_for_old(world: World) -> None:
    """A pod is known by its name alone."""
    store = world.cluster.store

    def kept(claim: Obj, remaining: Sequence[Obj]) -> list[Obj]:
        def there(user: Obj) -> bool:
            pod = store.get("Pod", claim["metadata"]["namespace"], user["name"])
            return pod is not None and not pods.will_not_run(pod)

        return [user for user in reserved(claim) if user in remaining or there(user)]

    users(world, kept)


def removes_unknown_consumers(world: World) -> None:
    users(world, lambda _, kept: [user for user in kept if user["resource"] == "pods"])


@instead(ClaimController._sync_claim)
def deallocates_unused(world: World, original: Callable[[Obj], None], claim: Obj) -> None:
    """An allocated claim is released as soon as it is seen unused, whoever allocated it."""
    controller = part(world, ClaimController)
    if "allocation" in claim["status"] and not reserved(claim):
        claim = controller.set_users(claim, [], release=True)
    original(claim)


@instead(ClaimController.set_users)
def keeps_finalizer(
    world: World, original: Callable[..., Obj], claim: Obj, *args: Obj, release: bool
) -> Obj:
    """Released claims keep the finalizer until they are deleted."""
    store = world.cluster.store
    released = original(claim, *args, release=release)
    if not release or pods.is_deleted(claim):
        return released

    def protect(new: Obj) -> None:
        new["metadata"]["finalizers"] = [FINALIZER]

    return store.modify(released, protect)


@instead(ClaimController.set_users)
def loses_other_finalizers(
    world: World, original: Callable[..., Obj], claim: Obj, *args: Obj, release: bool
) -> Obj:
    """With its own finalizer the controller removes those of others."""
    released = original(claim, *args, release=release)
    if not release or "finalizers" not in released["metadata"]:
        return released
    return world.cluster.store.modify(released, lambda new: new["metadata"].pop("finalizers", None))


@instead(ClaimController._sync_claim)
def leaves_unallocated_protected(_: World, original: Callable[[Obj], None], claim: Obj) -> None:
    """Only the deletion of an allocated claim ends with its finalizer removed."""
    if not pods.is_deleted(claim) or "allocation" in claim["status"] or reserved(claim):
        original(claim)


def spares(claims: Callable[[Obj], bool]) -> Mutation:
    """Some claims are not released, nor deleted, when their pods are done."""

    @instead(ClaimController._sync_claim)
    def mutate(_: World, original: Callable[[Obj], None], claim: Obj) -> None:
        if not claims(claim) or pods.is_deleted(claim):
            original(claim)

    return mutate


def claims_stay_with_jobs(world: World) -> None:
    """What the pods of a Job have stays until the pods go, since the Job may try again."""

    def is_of_job(claim: Obj) -> bool:
        owners = [
            world.cluster.store.by_uid(owner["uid"])
            for owner in claim["metadata"].get("ownerReferences") or []
        ]
        return any(
            reference["kind"] == "Job"
            for pod in owners
            if pod is not None and not pods.is_deleted(pod)
            for reference in pod["metadata"].get("ownerReferences") or []
        )

    spares(is_of_job)(world)


def is_extended(claim: Obj) -> bool:
    return ANNOTATION in (claim["metadata"].get("annotations") or {})


@instead(ClaimController.set_users)
def deletes_named_claims(
    world: World, original: Callable[..., Obj], claim: Obj, *args: Obj, release: bool
) -> Obj:
    """A claim that a user made is deleted like a generated one when its only pod is done."""
    released = original(claim, *args, release=release)
    if release and not pods.is_deleted(released):
        world.api.delete_stored(released)
    return released


def misses_what_happened(world: World) -> None:
    """A controller manager that starts does not notice pods that went while it was down."""
    controller, store = part(world, ClaimController), world.cluster.store
    kept: dict[str, list[Obj]] = {}

    def restart(original: Callable[[], None]) -> None:
        original()
        for claim in store.all("ResourceClaim"):
            kept[uid_of(claim)] = claim["status"].get("reservedFor") or []

    def remaining_users(original: Callable[[Obj], list[Obj]], claim: Obj) -> list[Obj]:
        users = original(claim)
        old = [user for user in kept.get(uid_of(claim), ()) if user not in users]
        return users + [user for user in old if store.by_uid(user["uid"]) is None]

    replace(controller.restart, restart)
    replace(controller.remaining_users, remaining_users)


@instead(ClaimController.remaining_users)
def failed_pods_keep_claims(
    world: World, original: Callable[..., list[Obj]], claim: Obj
) -> list[Obj]:
    store = world.cluster.store
    remaining = original(claim)
    for user in claim["status"].get("reservedFor") or []:
        pod = store.by_uid(user["uid"])
        if pod is not None and pod["status"]["phase"] == "Failed" and user not in remaining:
            remaining.append(user)
    return remaining


@instead(ClaimController.set_users)
def reports_go_with_a_pod(
    world: World, original: Callable[..., Obj], claim: Obj, users: Iterable[Obj], **how: Any
) -> Obj:
    """What is reported of devices is dropped when one of several pods is done with the claim."""
    claim = original(claim, users, **how)
    store = world.cluster.store
    return store.modify(claim, lambda new: new["status"].pop("devices", None)) if users else claim


DEFECTS: Defects = {
    "deletes-generated-claims-that-others-use": deletes_what_others_use,
    "deletes-claims-at-restarts": deletes_claims_at_restarts,
    "finished-pods-keep-claims": finished_pods_keep_claims,
    "forced-pods-keep-claims": forced_pods_keep_claims,
    "keeps-device-status": keeps_device_status,
    "never-release": never_release,
    "releases-too-early": releases_too_early,
    "claims-of-ended-pods-stay-with-their-job": claims_stay_with_jobs,
    "claims-of-extended-resources-outlive-finished-pods": spares(is_extended),
    "deallocates-claims-that-nobody-uses": deallocates_unused,
    "deletes-claims-of-users": deletes_named_claims,
    "leaves-unallocated-claims-protected": leaves_unallocated_protected,
    "mistakes-new-pods-for-old-ones": mistakes_new_pods_for_old,
    "released-claims-keep-the-finalizer": keeps_finalizer,
    "releasing-removes-finalizers-of-others": loses_other_finalizers,
    "removes-consumers-named-like-pods": removes(is_named_like_pods),
    "removes-consumers-of-the-core-group": removes(is_of_the_core_group),
    "removes-unknown-consumers": removes_unknown_consumers,
    "unscheduled-pods-keep-claims": unscheduled_pods_keep_claims,
    "manager-misses-what-happened": misses_what_happened,
    "failed-pods-keep-claims": failed_pods_keep_claims,
    "reports-go-with-a-pod": reports_go_with_a_pod,
}
