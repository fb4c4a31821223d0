"""Defects of what becomes of claims when their pods are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kube.values import Obj
from kubesim import pods
from kubesim.controllers.claims import FINALIZER, ClaimController
from kubesim.world import World
from reference_allocator.extended import ANNOTATION
from tests.mutants.replacing import Defects, Mutation, instead, part, replace

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


DEFECTS: Defects = {
    "claims-of-ended-pods-stay-with-their-job": claims_stay_with_jobs,
    "claims-of-extended-resources-outlive-finished-pods": spares(is_extended),
    "deallocates-claims-that-nobody-uses": deallocates_unused,
    "deletes-claims-of-users": deletes_named_claims,
    "leaves-unallocated-claims-protected": leaves_unallocated_protected,
    "mistakes-new-pods-for-old-ones": mistakes_new_pods_for_old,
    "released-claims-keep-the-finalizer": keeps_finalizer,
    "releasing-removes-finalizers-of-others": loses_other_finalizers,
    "removes-unknown-consumers": removes_unknown_consumers,
    "unscheduled-pods-keep-claims": unscheduled_pods_keep_claims,
}
