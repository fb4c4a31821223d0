"""Defects of what the API server lets be changed, and of what comes of a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

from kube.errors import ApiError
from kube.values import Obj, Ref, Request
from kubesim.apiserver.handling import Handler
from kubesim.apiserver.server import ApiServer
from kubesim.controllers.claims import ClaimController
from kubesim.resources import Kind
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead, replace

Change = Callable[[Obj], Obj]


def accepts_changes(kind_name: str, field: str, message: str = "") -> Mutation:
    """What is wrong with a field of a changed object of a kind is not looked at."""

    @instead(ApiServer.validate_change)
    def mutate(
        _: World, original: Callable[..., None], kind: Kind, *args: Any, **kwargs: Any
    ) -> None:
        try:
            original(kind, *args, **kwargs)
        except ApiError as error:
            known = kind.name == kind_name
            if not known or not all(
                c.field.startswith(field) and message in c.message for c in error.causes
            ):
                raise

    return mutate


@instead(ClaimController.remaining_users)
def failed_pods_keep_claims(
    world: World, original: Callable[..., list[Obj]], claim: Obj
) -> list[Obj]:
    store = world.cluster.store
    remaining = original(claim)
    for user in claim["status"].get("reservedFor") or []:
        pod = store.by_uid(user["uid"])
        if pod is not None and pod["status"]["phase"] == "Failed" and user not in remaining:
            remaining.append(user)
    return remaining


@instead(Handler.handle)
def ignores_evictions(
    _: World, original: Callable[..., None], request: Request, namespace: str
) -> None:
    if request.subresource != "eviction":
        original(request, namespace)


@instead(Handler.handle)
def binds_twice(_: World, original: Callable[..., None], request: Request, namespace: str) -> None:
    try:
        original(request, namespace)
    except ApiError:
        if request.subresource != "binding":
            raise


@instead(Handler.handle)
def deletes_all_of_a_kind(
    _: World, original: Callable[..., None], request: Request, namespace: str
) -> None:
    original(changed(request, labels={}), namespace)


def ignores_preconditions(world: World) -> None:
    replace(world.handler.check_preconditions, lambda *_: None)


def ignores_versions(*subresources: str | None) -> Mutation:
    def mutate(world: World) -> None:
        def change(original: Callable[..., Obj], ref: Ref, change: Change, *args: Any) -> Obj:
            def without_version(old: Obj) -> Obj:
                new = change(old)
                kept = {k: v for k, v in new["metadata"].items() if k != "resourceVersion"}
                return {**new, "metadata": kept}

            return original(ref, without_version if args[0] in subresources else change, *args)

        replace(world.api.change, change)

    return mutate


DEFECTS: Defects = {
    "binds-twice": binds_twice,
    "changes-templates": accepts_changes("ResourceClaimTemplate", "spec"),
    "deletes-all-of-a-kind": deletes_all_of_a_kind,
    "failed-pods-keep-claims": failed_pods_keep_claims,
    "ignores-evictions": ignores_evictions,
    "ignores-preconditions": ignores_preconditions,
    "ignores-versions-of-status": ignores_versions("status"),
    "reserves-claims-without-allocation": accepts_changes(
        "ResourceClaim", "status.reservedFor", "may not be specified"
    ),
    "takes-any-taint-rule": accepts_changes("DeviceTaintRule", "spec"),
}
