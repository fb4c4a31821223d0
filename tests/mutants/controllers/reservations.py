"""Defects of how the claim controller reserves claims for pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.cluster import Cluster
from kubesim.controllers.claims import ClaimController
from kubesim.store import namespace_of, uid_of
from kubesim.views import View
from kubesim.world import World
from tests.mutants.replacing import Defects, Original, instead, part, replace


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

    controller = part(world, ClaimController)
    controller.claims = View(store, ["ResourceClaim"], lambda _: True)  # also those without users
    replace(controller.remaining_users, remaining_users)


@instead(Cluster.claims_of)
def waits_for_unneeded_claims(_: World, original: Original, pod: Obj) -> Any:
    """An entry of a pod's claims waits for a claim, though the pod's status says there is none."""
    found = {entry["name"]: claim for entry, claim in original(pod)}
    for entry in pod["spec"].get("resourceClaims") or []:
        yield entry, found.get(entry["name"])


def _with_first_claim(pod: Obj) -> Obj:
    return {**pod, "spec": {**pod["spec"], "resourceClaims": pod["spec"]["resourceClaims"][:1]}}


@instead(ClaimController.reserve_for_pod)
def _reserves_first(_: World, original: Callable[[Obj], None], pod: Obj) -> None:
    original(_with_first_claim(pod))


@instead(ClaimController.reserve_for_pod)
def _reserves_all_or_none(world: World, original: Callable[[Obj], None], pod: Obj) -> None:
    claims = [claim for _, claim in world.cluster.claims_of(pod)]
    if all(claim is not None and "allocation" in claim["status"] for claim in claims):
        original(pod)


def _gives_full_claims_up(world: World) -> None:
    """A claim that was full when a bound pod came is not looked at again."""
    full: set[tuple[str, str]] = set()
    controller = part(world, ClaimController)

    def reserve(original: Callable[[Obj], None], pod: Obj) -> None:
        claims = [claim for _, claim in world.cluster.claims_of(pod) if claim is not None]
        pairs = {(uid_of(pod), uid_of(claim)): claim for claim in claims}
        full.update(pair for pair, claim in pairs.items() if not controller.can_be_reserved(claim))
        if not full & pairs.keys():
            original(pod)

    replace(controller.reserve_for_pod, reserve)


@instead(ClaimController.can_be_reserved)
def _reserves_full_claims(_world: World, _original: Original, _claim: Obj) -> bool:
    return True


DEFECTS: Defects = {
    "bound-pods-give-full-claims-up": _gives_full_claims_up,
    "bound-pods-reserve-full-claims": _reserves_full_claims,
    "allocates-without-pod": allocates_without_pod,
    "reserves-for-ended-pods": reserves_for_ended_pods,
    "waits-for-unneeded-claims": waits_for_unneeded_claims,
    "bound-pods-reserve-all-claims-or-none": _reserves_all_or_none,
    "bound-pods-reserve-their-first-claim": _reserves_first,
}
