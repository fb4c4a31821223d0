"""Defects of requests to the API server that are not about one kind."""

from __future__ import annotations

from dataclasses import replace as changed

from kube.errors import ApiError
from kube.values import Request
from kubesim.apiserver.handling import Handler
from kubesim.world import World
from tests.mutants.replacing import Defects, Original, instead, replace


@instead(Handler.handle)
def ignores_evictions(_: World, original: Original, request: Request, namespace: str) -> None:
    if request.subresource != "eviction":
        original(request, namespace)


@instead(Handler.handle)
def binds_twice(_: World, original: Original, request: Request, namespace: str) -> None:
    try:
        original(request, namespace)
    except ApiError:
        if request.subresource != "binding":
            raise


@instead(Handler.handle)
def deletes_all_of_a_kind(_: World, original: Original, request: Request, namespace: str) -> None:
    original(changed(request, labels={}), namespace)


def ignores_preconditions(world: World) -> None:
    replace(world.handler.check_preconditions, lambda *_: None)


DEFECTS: Defects = {
    "binds-twice": binds_twice,
    "deletes-all-of-a-kind": deletes_all_of_a_kind,
    "ignores-evictions": ignores_evictions,
    "ignores-preconditions": ignores_preconditions,
}
