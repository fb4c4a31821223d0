"""Defects of where pods with claims may go, and of which template their claims are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from kube.values import Obj
from kubesim.controllers.claims import ClaimController
from kubesim.scheduling.binding import Binder
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.listers import Listers
from kubesim.scheduling.scheduler import Scheduler
from kubesim.store import clone, name_of, namespace_of, uid_of
from kubesim.world import World
from tests.mutants.allocator.inputs import devices, reads
from tests.mutants.replacing import Defects, instead, part, replace


@instead(Filter.check_node)
def needs_no_labels(_: World, original: Callable[..., Any], pod: Obj, plan: Any, *rest: Any) -> Any:
    if pod["spec"].get("resourceClaims"):
        pod = clone(pod)
        pod["spec"].pop("nodeSelector", None)
    return original(pod, plan, *rest)


def rules(item: Obj) -> Iterator[Obj]:
    """What a slice and its devices ask of the labels of nodes."""
    for holder in (item["spec"], *devices(item)):
        for term in (holder.get("nodeSelector") or {}).get("nodeSelectorTerms") or []:
            yield from term.get("matchExpressions") or []


def any_number_will_do(item: Obj) -> None:
    for rule in rules(item):
        if rule["operator"] in ("Gt", "Lt"):
            rule["operator"] = "Exists"
            rule.pop("values", None)


def templates_as_first_seen(world: World) -> None:
    known: dict[tuple[str, str], Obj] = {}

    def new_claim(original: Callable[..., Obj], pod: Obj, pod_claim: str, template: Obj) -> Obj:
        key = (namespace_of(template), name_of(template))
        return original(pod, pod_claim, known.setdefault(key, clone(template)))

    replace(part(world, ClaimController).new_claim, new_claim)


@instead(ClaimController.create_claim)
def templates_of_any_namespace(
    world: World, original: Callable[..., Any], pod: Obj, pod_claim: str, name: str
) -> Any:
    controller = part(world, ClaimController)
    store = world.cluster.store
    if store.get("ResourceClaimTemplate", namespace_of(pod), name) is None:
        for other in store.all("ResourceClaimTemplate"):
            if name_of(other) == name:
                return store.add(controller.new_claim(pod, pod_claim, other))
    return original(pod, pod_claim, name)


@instead(ClaimController.remaining_users)
def deletes_what_others_use(
    world: World, original: Callable[[Obj], list[Obj]], claim: Obj
) -> list[Obj]:
    controller = part(world, ClaimController)
    kept = original(claim)
    if kept:
        controller._delete_unneeded(claim)
    return kept


@instead(Binder.reserve_claim)
def negative_seconds_have_no_end(
    _: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
) -> Obj:
    for result in ((allocation or {}).get("devices") or {}).get("results") or []:
        for toleration in result.get("tolerations") or []:
            if toleration.get("tolerationSeconds", 0) < 0:
                del toleration["tolerationSeconds"]
    return original(pod, claim, allocation)


@instead(Scheduler.ready_claims)
def waits_for_a_claim_twice(_: World, original: Callable[[Obj], Any], pod: Obj) -> Any:
    found = original(pod)
    uids = [uid_of(claim) for claim in found or ()]
    return None if len(uids) > len({*uids}) else found


@instead(Binder.report_failure)
def names_no_missing_class(
    _: World, original: Callable[..., None], pod: Obj, reason: str, message: str
) -> None:
    original(pod, reason, re.sub(r"device class \S+ does not", "device class does not", message))


DEFECTS: Defects = {
    "does-not-name-the-missing-class": names_no_missing_class,
    "claims-need-no-labels-of-nodes": needs_no_labels,
    "compares-no-numbers-of-nodes": reads(Listers.resource_slices, any_number_will_do),
    "deletes-generated-claims-that-others-use": deletes_what_others_use,
    "entries-of-one-claim-wait": waits_for_a_claim_twice,
    "negative-seconds-have-no-end": negative_seconds_have_no_end,
    "templates-as-first-seen": templates_as_first_seen,
    "templates-of-any-namespace": templates_of_any_namespace,
}
