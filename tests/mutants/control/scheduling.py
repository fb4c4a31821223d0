"""Defects of which pods the scheduler takes on, and what it compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.cluster import Counts
from kubesim.scheduling.binding import Binder, Plan
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.scheduler import Scheduler
from kubesim.store import namespace_of, uid_of
from kubesim.world import World
from tests.mutants.allocator.inputs import requests
from tests.mutants.replacing import Defects, Mutation, instead, replace


def takes_on(whom: Callable[[Obj], bool], change: Callable[[Obj], None]) -> Mutation:
    """Pods that are not the scheduler's, or not yet, are scheduled, too."""

    @instead(Scheduler.sync)
    def mutate(world: World, original: Callable[[], None]) -> None:
        scheduler = world.scheduler
        store = world.cluster.store
        for pod in store.all("Pod"):
            if whom(pod) and not pods.is_deleted(pod) and not pod["spec"].get("nodeName"):
                claims = scheduler.ready_claims(pod)
                if claims and not pods.is_finished(pod):
                    scheduler._schedule(store.modify(pod, change), claims)
        original()

    return mutate


def prefilter(problem: Callable[[World, Sequence[Obj]], bool]) -> Mutation:
    """What PreFilter finds wrong is passed over, in some cases."""

    @instead(Filter.pre_filter)
    def mutate(world: World, original: Callable[..., str | None], claims: Sequence[Obj]) -> Any:
        why = original(claims)
        return None if why and problem(world, claims) else why

    return mutate


def has_some_class(world: World, claims: Sequence[Obj]) -> bool:
    """Every request has an alternative whose class exists."""
    known = {item["metadata"]["name"] for item in world.cluster.store.all("DeviceClass")}
    return all(
        any(one["deviceClassName"] in known for one in request.get("firstAvailable") or [])
        for claim in claims
        for request in requests(claim)
    )


def skips_missing_classes(world: World) -> None:
    """An alternative whose class does not exist is skipped."""
    prefilter(has_some_class)(world)

    def allocate(original: Callable[..., Any], allocator: Any, node: Obj, claims: Any) -> Any:
        known = {item["metadata"]["name"] for item in world.cluster.store.all("DeviceClass")}
        return original(allocator, node, [with_known(claim, known) for claim in claims])

    replace(world.scheduler.filter.allocate, allocate)


def with_known(claim: Obj, known: set[str]) -> Obj:
    def kept(request: Obj) -> Obj:
        found = [one for one in request["firstAvailable"] if one["deviceClassName"] in known]
        return {**request, "firstAvailable": found}

    asked = [kept(one) if one.get("firstAvailable") else one for one in requests(claim)]
    return {
        **claim,
        "spec": {**claim["spec"], "devices": {**claim["spec"]["devices"], "requests": asked}},
    }


def scoring(score: Callable[[Obj, Obj], int]) -> Mutation:
    """Nodes are compared by something else: of a claim and the allocation it would get."""

    def mutate(world: World) -> None:
        replace(
            world.scheduler.filter.score,
            lambda _, plan: sum(map(score, plan.to_allocate, plan.allocations)),
        )

    return mutate


def places(claim: Obj, allocation: Obj) -> list[int]:
    """For each request with alternatives, which of them was taken, from 0."""
    chosen = {result["request"] for result in allocation["devices"].get("results") or ()}
    return [
        index
        for request in requests(claim)
        for index, one in enumerate(request.get("firstAvailable") or [])
        if f"{request['name']}/{one['name']}" in chosen
    ]


@instead(Filter.score)
def first_claim_scores(_: World, original: Callable[[Plan], int], plan: Plan) -> int:
    first = Plan(plan.claims[:1])
    first.to_allocate, first.allocations = plan.to_allocate[:1], plan.allocations[:1]
    return original(first)


@instead(Scheduler.observe_cluster)
def retries_own_namespace(world: World, original: Callable[[], Any]) -> Any:
    """Only releases in its own namespace make the scheduler look at a pod again."""
    store = world.cluster.store
    pending = {
        namespace_of(pod)
        for pod in store.all("Pod")
        if not pod["spec"].get("nodeName") and not pods.is_finished(pod)
    }
    seen = sorted(
        claim["metadata"]["resourceVersion"]
        for claim in store.all("ResourceClaim")
        if namespace_of(claim) in pending
    )
    return {**original(), "ResourceClaim": seen, "bound pods": 0}


@instead(Counts.count)
def admin_access_is_not_told(
    _: World, original: Callable[..., None], of: str, name: str, **labels: str
) -> None:
    if "admin_access" in labels:
        labels["admin_access"] = "false"
    original(of, name, **labels)


@instead(Counts.count)
def failures_count_as_successes(
    _: World, original: Callable[..., None], of: str, name: str, **labels: str
) -> None:
    if labels.get("status") == "failure":
        labels["status"] = "success"
    original(of, name, **labels)


@instead(Binder.report_failure)
def says_it_once(
    _: World, original: Callable[..., None], pod: Obj, reason: str, message: str
) -> None:
    """The condition keeps the first reason for which a pod waited."""
    told = [c for c in pod["status"].get("conditions") or [] if c["type"] == "PodScheduled"]
    if not told or told[0]["status"] == "True":
        original(pod, reason, message)


@instead(Scheduler.ready_claims)
def allocates_what_is_there(
    world: World, original: Callable[[Obj], list[Obj] | None], pod: Obj
) -> list[Obj] | None:
    """While a claim that the user has to make is missing, the pod's others are allocated."""
    ready = original(pod)
    found = [*world.cluster.claims_of(pod)]
    missing = [entry for entry, claim in found if claim is None]
    there = [one for _, one in found if one and not pods.is_deleted(one) and not allocated(one)]
    if ready is None and there and missing and all("resourceClaimName" in e for e in missing):
        scheduler, plan = world.scheduler, Plan(there)
        if scheduler.filter.pre_filter(there) is None:
            scheduler.filter.filter(pod, plan, scheduler._nodes())
        if plan.node is not None:
            scheduler.binder.reserve(pod, plan)
    return ready


def allocated(claim: Obj) -> bool:
    return "allocation" in claim["status"]


def wakes_one_pod(world: World) -> None:
    """Slices that are new make one waiting pod be tried again."""
    known: dict[str, frozenset[str]] = {}
    woken = set()

    def schedule(original: Callable[[Obj, list[Obj]], None], pod: Obj, claims: list[Obj]) -> None:
        now = frozenset(map(uid_of, world.cluster.store.all("ResourceSlice")))
        new = now - known.get(uid_of(pod), now)
        if not new or new not in woken:
            known[uid_of(pod)] = now
            woken.add(new)
            original(pod, claims)

    replace(world.scheduler._schedule, schedule)


def overlooks_other_schedulers(world: World) -> None:
    """A scheduler counts devices as in use only where its own pods have them."""

    def ours(claim: Obj, name: str) -> bool:
        users = [one["uid"] for one in claim["status"].get("reservedFor") or ()]
        own = [pod for pod in world.cluster.store.all("Pod") if uid_of(pod) in users]
        return not own or any(pod["spec"]["schedulerName"] == name for pod in own)

    for scheduler in world.schedulers if len(world.schedulers) > 1 else ():

        def claims(original: Callable[[], list[Obj]], name: str = scheduler.name) -> list[Obj]:
            return [claim for claim in original() if ours(claim, name)]

        replace(scheduler.filter.listers.resource_claims, claims)


DEFECTS: Defects = {
    "admin-access-of-new-claims-is-not-counted": admin_access_is_not_told,
    "allocates-before-all-claims-are-there": allocates_what_is_there,
    "alternatives-of-later-claims-do-not-score": first_claim_scores,
    "alternatives-without-class-are-skipped": skips_missing_classes,
    "claims-that-were-refused-count-as-made": failures_count_as_successes,
    "new-slices-wake-one-pod": wakes_one_pod,
    "later-alternatives-score-more": scoring(lambda *of: sum(place + 1 for place in places(*of))),
    "misses-releases-in-other-namespaces": retries_own_namespace,
    "overlooks-other-schedulers": overlooks_other_schedulers,
    "schedules-gated-pods": takes_on(
        lambda pod: bool(pod["spec"].get("schedulingGates")),
        lambda pod: pod["spec"].pop("schedulingGates", None),
    ),
    "schedules-pods-of-other-schedulers": takes_on(
        lambda pod: pod["spec"].get("schedulerName") != "default-scheduler", lambda _: None
    ),
    "says-only-the-first-reason": says_it_once,
}
