"""Defects of evictions from tainted devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed

from conformance.targets.base import Obj
from conformance.targets.reference.controllers.eviction import EvictionController
from conformance.targets.reference.controllers.evictor import Eviction, Evictor, results
from conformance.targets.reference.world import World
from tests.mutants.faults import Fault
from tests.mutants.replacing import Mutation, part, replace


def evicts_at_once(world: World) -> None:
    def evictions(
        original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
    ) -> list[Eviction]:
        return [changed(eviction, when=0.0) for eviction in original(evictor, pod)]

    replace(part(world, EvictionController), "evictions", evictions)


def no_eviction(world: World) -> None:
    replace(part(world, EvictionController), "evictions", lambda *_: [])


def evicts_who_tolerates_for_ever(world: World) -> None:
    def evictions(
        original: Callable[..., list[Eviction]], evictor: Evictor, pod: Obj
    ) -> list[Eviction]:
        tolerated = [
            toleration
            for _, claim in evictor.cluster.claims_of(pod)
            if claim is not None
            for result in results(claim)
            for toleration in result.get("tolerations") or []
            if "tolerationSeconds" not in toleration
        ]
        rule = evictor.rules[0] if evictor.rules else None
        return [Eviction(0.0, rule)] if tolerated else original(evictor, pod)

    replace(part(world, EvictionController), "evictions", evictions)


def no_dry_run(world: World) -> None:
    def condition(original: Callable[[Obj], Obj], rule: Obj) -> Obj:
        if rule["spec"]["taint"]["effect"] != "None":
            return original(rule)
        message = "Eviction only happens for the NoExecute effect."
        return {"status": "False", "reason": "OtherEffect", "message": message}

    replace(part(world, EvictionController).reporter, "condition", condition)


MUTATIONS: dict[Fault, Mutation] = {
    Fault.EVICTS_AT_ONCE: evicts_at_once,
    Fault.EVICTS_WHO_TOLERATES_FOR_EVER: evicts_who_tolerates_for_ever,
    Fault.NO_DRY_RUN: no_dry_run,
    Fault.NO_EVICTION: no_eviction,
}
