"""Defects of evictions from tainted devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed

from kube.slices import results_of
from kube.values import Obj
from kubesim.controllers.eviction import EvictionController, RuleReporter
from kubesim.controllers.evictor import Eviction, Evictor
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead


@instead(EvictionController.list_evictions)
def evicts_at_once(
    _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
) -> list[Eviction]:
    return [changed(eviction, when=0.0) for eviction in original(evictor, pod)]


@instead(EvictionController.list_evictions)
def evicts_who_tolerates_for_ever(
    _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
) -> list[Eviction]:
    tolerated = [
        toleration
        for _, claim in evictor.cluster.claims_of(pod)
        if claim is not None
        for result in results_of(claim)
        for toleration in result.get("tolerations") or []
        if "tolerationSeconds" not in toleration
    ]
    rule = evictor.rules[0] if evictor.rules else None
    return [Eviction(0.0, rule)] if tolerated else original(evictor, pod)


def only_by(kept: Callable[[Eviction], bool]) -> Mutation:
    """Pods are evicted for some reasons only."""

    @instead(EvictionController.list_evictions)
    def mutate(
        _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
    ) -> list[Eviction]:
        return [eviction for eviction in original(evictor, pod) if kept(eviction)]

    return mutate


@instead(EvictionController.list_evictions)
def by_named_claims_only(
    _: World, original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
) -> list[Eviction]:
    return list(original(evictor, pod)) if pod["spec"].get("resourceClaims") else []


def as_created(eviction: Eviction) -> bool:
    return eviction.rule is None or eviction.rule["metadata"].get("generation", 1) == 1


@instead(RuleReporter.build_condition)
def no_dry_run(_: World, original: Callable[[Obj], Obj], rule: Obj) -> Obj:
    if rule["spec"]["taint"]["effect"] != "None":
        return original(rule)
    message = "Eviction only happens for the NoExecute effect."
    return {"status": "False", "reason": "OtherEffect", "message": message}


DEFECTS: Defects = {
    "evicts-by-named-claims-only": by_named_claims_only,
    "misses-changed-rules": only_by(as_created),
    "evicts-at-once": evicts_at_once,
    "evicts-who-tolerates-for-ever": evicts_who_tolerates_for_ever,
    "no-dry-run": no_dry_run,
}
