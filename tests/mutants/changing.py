"""Defects of what the API server lets be changed, and of what comes of a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

from conformance.targets.reference.controllers.claims import ClaimController
from conformance.targets.reference.resources import Kind
from conformance.targets.reference.world import World
from conformance.targets.seam.values import ApiError, Obj, Ref, Request
from tests.mutants.replacing import Defects, Mutation, part, replace

Change = Callable[[Obj], Obj]


def accepts_changes(kind_name: str, field: str, message: str = "") -> Mutation:
    """What is wrong with a field of a changed object of a kind is not looked at."""

    def mutate(world: World) -> None:
        def validate_change(
            original: Callable[..., None], kind: Kind, *args: Any, **kwargs: Any
        ) -> None:
            try:
                original(kind, *args, **kwargs)
            except ApiError as error:
                known = kind.name == kind_name
                if not known or not all(
                    c.field.startswith(field) and message in c.message for c in error.causes
                ):
                    raise

        replace(world.api, "validate_change", validate_change)

    return mutate


def failed_pods_keep_claims(world: World) -> None:
    store = world.cluster.store

    def remaining_users(original: Callable[..., list[Obj]], claim: Obj) -> list[Obj]:
        remaining = original(claim)
        for user in claim["status"].get("reservedFor") or []:
            pod = store.by_uid(user["uid"])
            if pod is not None and pod["status"]["phase"] == "Failed" and user not in remaining:
                remaining.append(user)
        return remaining

    replace(part(world, ClaimController), "remaining_users", remaining_users)


def ignores_evictions(world: World) -> None:
    def handle(original: Callable[..., None], request: Request, namespace: str) -> None:
        if request.subresource != "eviction":
            original(request, namespace)

    replace(world.handler, "handle", handle)


def binds_twice(world: World) -> None:
    def handle(original: Callable[..., None], request: Request, namespace: str) -> None:
        try:
            original(request, namespace)
        except ApiError:
            if request.subresource != "binding":
                raise

    replace(world.handler, "handle", handle)


def deletes_all_of_a_kind(world: World) -> None:
    def handle(original: Callable[..., None], request: Request, namespace: str) -> None:
        original(changed(request, labels={}), namespace)

    replace(world.handler, "handle", handle)


def ignores_field_selectors(world: World) -> None:
    def listed(original: Callable[..., list[Obj]], *args: Any) -> list[Obj]:
        return original(*args[:4])

    replace(world.api, "list", listed)


def ignores_preconditions(world: World) -> None:
    replace(world.handler, "check_preconditions", lambda *_: None)


def ignores_versions(*subresources: str | None) -> Mutation:
    def mutate(world: World) -> None:
        def change(original: Callable[..., Obj], ref: Ref, change: Change, *args: Any) -> Obj:
            def without_version(old: Obj) -> Obj:
                new = change(old)
                kept = {k: v for k, v in new["metadata"].items() if k != "resourceVersion"}
                return {**new, "metadata": kept}

            return original(ref, without_version if args[0] in subresources else change, *args)

        replace(world.api, "change", change)

    return mutate


DEFECTS: Defects = {
    "binds-twice": binds_twice,
    "changes-allocations": accepts_changes("ResourceClaim", "status.allocation"),
    "changes-claims": accepts_changes("ResourceClaim", "spec"),
    "changes-templates": accepts_changes("ResourceClaimTemplate", "spec"),
    "deletes-all-of-a-kind": deletes_all_of_a_kind,
    "failed-pods-keep-claims": failed_pods_keep_claims,
    "ignores-evictions": ignores_evictions,
    "ignores-field-selectors": ignores_field_selectors,
    "ignores-preconditions": ignores_preconditions,
    "ignores-versions": ignores_versions("", None),
    "ignores-versions-of-status": ignores_versions("status"),
    "moves-slices": accepts_changes("ResourceSlice", "spec", "immutable"),
    "reserves-claims-without-allocation": accepts_changes(
        "ResourceClaim", "status.reservedFor", "may not be specified"
    ),
    "reserves-claims-for-any-number": accepts_changes(
        "ResourceClaim", "status.reservedFor", "must have at most"
    ),
    "takes-any-report": accepts_changes("ResourceClaim", "status.devices"),
    "takes-any-taint-rule": accepts_changes("DeviceTaintRule", "spec"),
}
