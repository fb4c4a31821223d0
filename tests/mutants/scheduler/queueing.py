"""Defects of which pods the scheduler takes on, when it tries again, and what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kube.errors import ApiError
from kube.values import Obj
from kubesim import pods
from kubesim.controllers.claims import ClaimController
from kubesim.scheduling.binding import Binder, Plan
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.nodefit import Misfit
from kubesim.scheduling.scheduler import Scheduler
from kubesim.store import name_of, namespace_of, uid_of
from kubesim.world import World
from reference_allocator.api.limits import RESERVED_FOR_MAX
from tests.mutants.allocation.inputs import changed, devices, requests
from tests.mutants.kubelet.pods import take_any_reservation
from tests.mutants.replacing import Defects, Mutation, Original, instead, part, replace

Ready = Callable[[Obj], list[Obj] | None]


@instead(Scheduler.ready_claims)
def take_any_claim(world: World, _original: Ready, pod: Obj) -> list[Obj] | None:
    """The scheduler does not care whether a generated claim is the pod's own."""
    found = [claim for _, claim in world.cluster.claims_of(pod)]
    ready = [claim for claim in found if claim is not None and not pods.is_deleted(claim)]
    return ready if len(ready) == len(found) else None


@instead(Scheduler.ready_claims)
def take_deleted_claims(world: World, original: Ready, pod: Obj) -> list[Obj] | None:
    found = [claim for _, claim in world.cluster.claims_of(pod) if claim is not None]
    if found and any(map(pods.is_deleted, found)):
        return found
    return original(pod)


@instead(Scheduler.ready_claims)
def take_later_deleted_claims(world: World, original: Ready, pod: Obj) -> list[Obj] | None:
    """Of a pod's claims the first must not be on its way out."""
    found = [claim for _, claim in world.cluster.claims_of(pod) if claim is not None]
    if any(map(pods.is_deleted, found[1:])) and not pods.is_deleted(found[0]):
        return found
    return original(pod)


@instead(Scheduler.ready_claims)
def take_no_claim_of_others(_: World, original: Ready, pod: Obj) -> list[Obj] | None:
    found = original(pod)
    owners = [owner for one in found or () for owner in one["metadata"].get("ownerReferences", ())]
    others = any(one["kind"] == "Pod" and one["uid"] != uid_of(pod) for one in owners)
    return None if others else found


@instead(Binder.reserve_claim)
def reserve_without_pod(
    world: World, original: Callable[..., Obj], pod: Obj, claim: Obj, *args: Any
) -> Obj:
    reserved = original(pod, claim, *args)
    if pods.is_reserved(claim, pod):
        return reserved
    return world.cluster.store.modify(reserved, lambda new: lose_user(new, uid_of(pod)))


def lose_user(claim: Obj, uid: str) -> None:
    users = [user for user in claim["status"]["reservedFor"] if user["uid"] != uid]
    claim["status"]["reservedFor"] = users
    if not users:
        del claim["status"]["reservedFor"]


@instead(Binder.report_failure)
def says_it_otherwise(_: World, original: Original, pod: Obj, reason: str, _message: str) -> None:
    original(pod, reason, "there is no place for this pod")


def misses_new_claim(world: World) -> None:
    missed = set()

    def ready_claims(original: Ready, pod: Obj) -> list[Obj] | None:
        claims = original(pod)
        if claims is None:
            missed.add(uid_of(pod))
        return None if uid_of(pod) in missed else claims

    replace(world.scheduler.ready_claims, ready_claims)


def misses(*events: str) -> Mutation:
    """These events do not make the scheduler try again."""

    def mutate(world: World) -> None:
        def state(original: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
            return {event: seen for event, seen in original().items() if event not in events}

        assert set(events) <= set(world.scheduler.observe_cluster())
        replace(world.scheduler.observe_cluster, state)

    return mutate


def sees_only(event: str, change: Callable[[Obj], object]) -> Mutation:
    """Of a kind, only these changes make the scheduler try again."""

    @instead(Scheduler.observe_cluster)
    def mutate(world: World, original: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        seen = [change(obj) for obj in world.cluster.store.all(event)]
        texts = [json.dumps(each, sort_keys=True) for each in seen if each]
        return {**original(), event: sorted(texts)}

    return mutate


def revision_if_changed(obj: Obj) -> object:
    meta = obj["metadata"]
    return meta["resourceVersion"] if meta.get("generation", 1) > 1 else ""


def spec_without(lose: Callable[[Obj], object]) -> Callable[[Obj], object]:
    """What a slice says, without something in its devices."""

    def change(resource_slice: Obj) -> None:
        for device in devices(resource_slice):
            lose(device)

    def spec(resource_slice: Obj) -> object:
        (copy,) = changed([resource_slice], change)
        return name_of(copy), copy["spec"]

    return spec


def tainted_devices(resource_slice: Obj) -> object:
    """How many there are, and not which."""
    tainted = sum(bool(device.get("taints")) for device in devices(resource_slice))
    return spec_without(lambda device: device.pop("taints", None))(resource_slice), tainted


@instead(Filter.check_node)
def no_sharing(
    _: World, original: Callable[..., Sequence[Misfit]], pod: Obj, plan: Plan, *args: Any
) -> Sequence[Misfit]:
    for claim in plan.claims:
        if claim["status"].get("reservedFor") and not pods.is_reserved(claim, pod):
            return [Misfit("resourceclaim in use")]
    return original(pod, plan, *args)


@instead(Binder.reserve_claim)
def beyond_the_limit(
    _: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
) -> Obj:
    try:
        return original(pod, claim, allocation)
    except ApiError:
        return claim


@instead(Filter.pre_filter)
def full_claims_fit_nowhere(
    _: World, original: Callable[..., str | None], claims: Sequence[Obj]
) -> str | None:
    """The scheduler counts consumers itself, so that the pod is unschedulable and not in error."""
    full = any(len(c["status"].get("reservedFor") or ()) >= RESERVED_FOR_MAX for c in claims)
    return "resourceclaim in use" if full else original(claims)


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

    def allocate(original: Original, allocator: Any, node: Obj, claims: Any) -> Any:
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


@instead(Binder.report_failure)
def says_it_once(_: World, original: Original, pod: Obj, reason: str, message: str) -> None:
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


@instead(Scheduler.ready_claims)
def waits_for_a_claim_twice(_: World, original: Callable[[Obj], Any], pod: Obj) -> Any:
    found = original(pod)
    uids = [uid_of(claim) for claim in found or ()]
    return None if len(uids) > len({*uids}) else found


@instead(Binder.report_failure)
def names_no_missing_class(
    _: World, original: Original, pod: Obj, reason: str, message: str
) -> None:
    original(pod, reason, re.sub(r"device class \S+ does not", "device class does not", message))


def other_namespace(world: World) -> None:
    take_any_reservation(world)

    def claims_of(original: Original, pod: Obj) -> Any:
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


DEFECTS: Defects = {
    "takes-no-generated-claims-of-others": take_no_claim_of_others,
    "takes-deleted-claims": take_deleted_claims,
    "takes-deleted-claims-after-the-first": take_later_deleted_claims,
    "misses-changed-node": misses("Node"),
    "misses-lifted-taint": misses("DeviceTaintRule"),
    "misses-new-claim": misses_new_claim,
    "misses-changed-class": sees_only("DeviceClass", name_of),
    "misses-changed-capacity": sees_only(
        "ResourceSlice", spec_without(lambda device: device.pop("capacity", None))
    ),
    "misses-taints-that-move": sees_only("ResourceSlice", tainted_devices),
    "misses-new-class": sees_only("DeviceClass", revision_if_changed),
    "misses-added-slice": sees_only("ResourceSlice", revision_if_changed),
    "misses-release": misses("ResourceClaim", "bound pods"),
    "full-claims-fit-nowhere": full_claims_fit_nowhere,
    "no-sharing": no_sharing,
    "schedules-beyond-the-limit": beyond_the_limit,
    "says-it-in-other-words": says_it_otherwise,
    "allocates-before-all-claims-are-there": allocates_what_is_there,
    "alternatives-without-class-are-skipped": skips_missing_classes,
    "new-slices-wake-one-pod": wakes_one_pod,
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
    "does-not-name-the-missing-class": names_no_missing_class,
    "entries-of-one-claim-wait": waits_for_a_claim_twice,
    "other-namespace": other_namespace,
}
