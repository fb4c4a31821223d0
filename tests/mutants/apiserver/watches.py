"""Defects of watches: what they tell, and what they keep to themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kube.values import Obj
from kubesim.apiserver.server import ApiServer
from kubesim.apiserver.watches import Tell, Watch
from kubesim.scheduling.listers import Listers
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.allocation.inputs import reads_all
from tests.mutants.replacing import Defects, Mutation, instead, replace


def overlooks_slices_of(version: str) -> Mutation:
    """Whoever watches v1 is not told of slices that were written in another version."""

    def mutate(world: World) -> None:
        others: set[str] = set()

        def create(original: Callable[..., Obj], obj: Obj, *args: Any, **how: Any) -> Obj:
            created = original(obj, *args, **how)
            if obj["kind"] == "ResourceSlice" and obj["apiVersion"].endswith(f"/{version}"):
                others.add(created["metadata"]["uid"])
            return created

        replace(world.api.create, create)
        told = reads_all(
            Listers.resource_slices, lambda slices: [x for x in slices if uid_of(x) not in others]
        )
        told(world)

    return mutate


Selected = Mapping[str, str] | None


Open = Callable[[str, str, str, Selected, Selected, Tell], Watch]


def without_field(forgotten: str) -> Mutation:
    """A watch is not narrowed by a field, as if nobody had asked for it."""

    @instead(ApiServer.watch)
    def mutate(
        _: World,
        original: Open,
        version: str,
        kind: str,
        namespace: str,
        labels: Selected,
        fields: Selected,
        tell: Tell,
    ) -> Watch:
        kept = {name: value for name, value in (fields or {}).items() if name != forgotten}
        return original(version, kind, namespace, labels, kept, tell)

    return mutate


def telling(told: Callable[[World, Tell], Tell]) -> Mutation:
    """What a watch tells goes through something else."""

    @instead(ApiServer.watch)
    def mutate(
        world: World,
        original: Open,
        version: str,
        kind: str,
        namespace: str,
        labels: Selected,
        fields: Selected,
        tell: Tell,
    ) -> Watch:
        return original(version, kind, namespace, labels, fields, told(world, tell))

    return mutate


def only_what_is_gone(world: World, tell: Tell) -> Tell:
    """What is there, and only selected no longer, is not told as DELETED."""

    def told(change: str, obj: Obj) -> None:
        if change != "DELETED" or world.cluster.store.by_uid(uid_of(obj)) is None:
            tell(change, obj)

    return told


def deletions_late(_: World, tell: Tell) -> Tell:
    """A deletion is told after what happens next."""
    waiting: list[Obj] = []

    def told(change: str, obj: Obj) -> None:
        late = waiting.copy()
        waiting.clear()
        if change == "DELETED":
            waiting.append(obj)
        else:
            tell(change, obj)
        for gone in late:
            tell("DELETED", gone)

    return told


DEFECTS: Defects = {
    "slices-of-v1beta1-are-not-watched": overlooks_slices_of("v1beta1"),
    "slices-of-v1beta2-are-not-watched": overlooks_slices_of("v1beta2"),
    "watches-all-nodes": without_field("spec.nodeName"),
    "watches-all-pools": without_field("spec.pool.name"),
    "watches-miss-what-leaves": telling(only_what_is_gone),
    "watches-tell-deletions-late": telling(deletions_late),
}
