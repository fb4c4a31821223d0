"""Defects of a scheduler that starts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim.scheduling.scheduler import Scheduler
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.replacing import Defects, Original, instead, replace


@instead(Scheduler.restart)
def frees_half_bound(world: World, original: Callable[[], None]) -> None:
    """A scheduler that starts takes back what pods have that are not bound yet."""
    original()
    store = world.cluster.store
    for pod in store.all("Pod"):
        for _, claim in world.cluster.claims_of(pod):
            if claim is not None and not pod["spec"].get("nodeName"):
                store.modify(claim, lose_allocation)


def lose_allocation(claim: Obj) -> None:
    for field in ("allocation", "reservedFor"):
        claim["status"].pop(field, None)


def only_new_pods(world: World) -> None:
    """A scheduler that starts looks only at pods that come later."""
    old: set[str] = set()

    def restart(original: Callable[[], None]) -> None:
        original()
        old.update(uid_of(pod) for pod in world.cluster.store.all("Pod"))

    def ready_claims(original: Original, pod: Obj) -> Any:
        return None if uid_of(pod) in old else original(pod)

    replace(world.scheduler.restart, restart)
    replace(world.scheduler.ready_claims, ready_claims)


DEFECTS: Defects = {
    "scheduler-frees-half-bound": frees_half_bound,
    "scheduler-sees-only-new-pods": only_new_pods,
}
