"""Defects of requests to the API server that are not about one kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as changed

from kube.errors import ApiError
from kube.values import Obj, Request
from kubesim.apiserver.handling import Handler
from kubesim.apiserver.server import ApiServer
from kubesim.resources import Kind
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


@instead(ApiServer.admit)
def takes_any_namespace(_: World, original: Original, kind: Kind, new: Obj) -> None:
    """A namespace that is being deleted takes new objects."""
    try:
        original(kind, new)
    except ApiError as error:
        if "being terminated" not in error.message:
            raise


@instead(ApiServer.validate_new)
def takes_several_controllers(
    _: World, original: Original, kind: Kind, obj: Obj, labels: Mapping[str, str]
) -> None:
    owners = obj["metadata"].get("ownerReferences") or []
    first = [{**owner, "controller": False} for owner in owners]
    original(kind, {**obj, "metadata": {**obj["metadata"], "ownerReferences": first}}, labels)


def ignores_preconditions(world: World) -> None:
    replace(world.handler.check_preconditions, lambda *_: None)


DEFECTS: Defects = {
    "binds-twice": binds_twice,
    "deletes-all-of-a-kind": deletes_all_of_a_kind,
    "namespaces-that-go-take-new-claims": takes_any_namespace,
    "objects-may-have-two-controllers": takes_several_controllers,
    "deleted-claims-take-new-finalizers": lambda world: replace(
        world.api.check_new_finalizers, lambda *_: []
    ),
    "ignores-evictions": ignores_evictions,
    "ignores-preconditions": ignores_preconditions,
}
