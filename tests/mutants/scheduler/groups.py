"""Defects of the scheduler: pods that are placed together, and claims that their group has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim.scheduling.binding import Binder
from kubesim.scheduling.groups import GroupScheduling
from kubesim.world import World
from tests.mutants.replacing import Defects, Original, instead, part, replace


@instead(Binder._find_consumer)
def reserves_for_each_pod(_: World, _original: Original, pod: Obj, _claim: Obj) -> Obj:
    """What a group has is reserved for the pod that comes first."""
    return pod


@instead(GroupScheduling.place_all)
def places_what_fits(
    _: World, original: Callable[..., tuple[Any, str]], group: Obj, waiting: Any
) -> tuple[Any, str]:
    """Of a gang for which there is no room as many pods run as fit."""
    attempts, problem = original(group, waiting)
    return attempts, "" if len(attempts) == len(waiting) else problem


def keeps_what_was_tried(world: World) -> None:
    """What a gang would get is not free again when there is not enough for it."""
    groups, pending = part(world, GroupScheduling), world.scheduler.filter.listers.pending
    tried: dict[str, Obj] = {}

    def find_place(original: Callable[..., Any], pod: Obj, claims: list[Obj]) -> Any:
        attempt = original(pod, claims)
        tried.update(pending)
        return attempt

    def give_up(original: Callable[..., None], *args: Any) -> None:
        original(*args)
        groups._filter.listers.pending.update(tried)

    groups._find_place = lambda pod, claims: find_place(world.scheduler.find_place, pod, claims)
    replace(groups.give_up_claims, give_up)


@instead(GroupScheduling.is_held)
def gangs_do_not_wait(world: World, original: Original, pod: Obj) -> bool:
    """The pods of a gang are placed as they come."""
    return bool(original(pod)) and world.cluster.group_of(pod) is None


def gangs_are_basic(world: World) -> None:
    """No group needs more than one pod at a time."""
    replace(part(world, GroupScheduling).count_needed, lambda *_: 1)


@instead(GroupScheduling.give_up_claims)
def takes_claims_from_pods(
    world: World, original: Callable[..., None], group: Obj, attempts: Any, waiting: Any
) -> None:
    """The claim of a group is allocated elsewhere though a pod of the group uses it."""
    original(group, attempts, waiting)
    for attempt in attempts:
        part(world, Binder).deallocate(group, attempt.plan)


@instead(GroupScheduling.is_held)
def does_not_wait_for_groups(world: World, original: Original, pod: Obj) -> bool:
    """A pod whose group is not there is placed by itself."""
    return bool(original(pod)) and world.cluster.group_of(pod) is not None


DEFECTS: Defects = {
    "gangs-are-placed-as-they-come": gangs_do_not_wait,
    "gangs-are-placed-in-part": places_what_fits,
    "gangs-are-placed-one-by-one": gangs_are_basic,
    "gangs-keep-what-they-did-not-get": keeps_what_was_tried,
    "group-claims-are-reserved-for-pods": reserves_for_each_pod,
    "group-claims-leave-pods": takes_claims_from_pods,
    "group-claims-never-move": instead(GroupScheduling.give_up_claims)(lambda *_: None),
    "pods-do-not-wait-for-their-group": does_not_wait_for_groups,
}
