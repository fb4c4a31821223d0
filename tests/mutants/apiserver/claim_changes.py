"""Defects of what may change in claims, templates and their status, and who may change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

from kube.errors import ApiError
from kube.values import Obj, Ref, User
from kubesim.apiserver.authorization import Attributes, Authorizer
from kubesim.apiserver.server import ApiServer
from kubesim.resources import Kind
from kubesim.store import clone
from kubesim.validation.errors import FieldError
from kubesim.world import World
from tests.mutants.apiserver.overlooked_fields import CHANGED, CLAIM, TEMPLATE, overlooks
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace


@instead(ApiServer.delete_stored)
def deletes_claims_in_use(world: World, original: Original, obj: Obj, *args: Any) -> None:
    if obj["kind"] == "ResourceClaim":
        world.cluster.store.remove(obj)
    else:
        original(obj, *args)


Change = Callable[[Obj], Obj]


def ignores_versions(*subresources: str | None) -> Mutation:
    def mutate(world: World) -> None:
        def change(
            original: Callable[..., Obj], ref: Ref, change: Change, *args: Any, **how: Any
        ) -> Obj:
            def without_version(old: Obj) -> Obj:
                new = change(old)
                kept = {k: v for k, v in new["metadata"].items() if k != "resourceVersion"}
                return {**new, "metadata": kept}

            wanted = without_version if args[0] in subresources else change
            return original(ref, wanted, *args, **how)

        replace(world.api.change, change)

    return mutate


def may_change(kind_name: str, *paths: str) -> Mutation:
    """Parts of an object that must stay as they are may change: only the rest is compared."""

    def mutate(world: World) -> None:
        def check(original: Original, kind: Kind, new: Obj, old: Obj, *args: Any, **k: Any) -> None:
            if kind.name == kind_name:
                new = clone(new)
                for path in paths:
                    _put(new, old, path.split("."))
            original(kind, new, old, *args, **k)

        replace(world.api.validate_change, check)

    return mutate


def _put(new: Any, old: Any, path: list[str]) -> None:
    """Make one part as it was; ``*`` is every item of lists of the same length."""
    first, *rest = path
    if first == "*":
        if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
            for pair in zip(new, old, strict=True):
                _put(*pair, rest)
    elif not rest:
        if first in old:
            new[first] = old[first]
        else:
            new.pop(first, None)
    elif first in new and first in old:
        _put(new[first], old[first], rest)


def _ignores_lists_of_other_length(world: World) -> None:
    """Whether a spec has changed is looked up in the requests that it had."""

    def check(original: Original, kind: Kind, new: Obj, old: Obj, *args: Any, **k: Any) -> None:
        if kind.name == CLAIM:
            new = clone(new)
            devices = (new.get("spec") or {}).get("devices") or {}
            before = (old["spec"].get("devices") or {}).get("requests") or []
            if len(devices.get("requests") or []) > len(before):
                del devices["requests"][len(before) :]
        original(kind, new, old, *args, **k)

    replace(world.api.validate_change, check)


def _only_allocated(world: World) -> None:
    """A claim's spec may change as long as the claim is not allocated."""

    def check(original: Original, kind: Kind, new: Obj, old: Obj, *args: Any, **k: Any) -> None:
        if kind.name != CLAIM or "allocation" in (old.get("status") or {}) or k.get("status"):
            original(kind, new, old, *args, **k)

    replace(world.api.validate_change, check)


def _binding(world: World, change: Callable[..., list[FieldError]]) -> None:
    replace(world.handler.authorizer._check_binding, change)


def _reservations_are_free(original: Original, user: User, wanted: Any, *s: Any) -> Any:
    new, old = s
    same = new.get("allocation") == old.get("allocation")
    return [] if same else original(user, wanted, new, old)


def _releases_are_free(original: Original, user: User, wanted: Any, *s: Any) -> Any:
    new, old = s
    gone = "allocation" not in new and not new.get("reservedFor")
    return [] if gone else original(user, wanted, new, old)


def _always_binding(original: Original, user: User, wanted: Any, *s: Any) -> Any:
    return original(user, wanted, {"allocation": object()}, s[1])


@instead(Authorizer.allows)
def _binds_by_role(
    _: World, original: Callable[..., bool], user: User, *wanted: Attributes, **how: Any
) -> bool:
    """A Role of the claim's namespace is enough to bind claims, and not only a ClusterRole."""
    asked = [
        changed(one, namespace=user.namespace)
        if one.subresource == "binding" and one.kind.name == CLAIM
        else one
        for one in wanted
    ]
    return original(user, *asked, **how)


def _status_by_rights_to_claims(world: World) -> None:
    """Who may update claims may update their status, too."""
    authorizer: Authorizer = world.handler.authorizer

    def check(original: Original, user: User, wanted: Any) -> None:
        try:
            original(user, wanted)
        except ApiError:
            if getattr(wanted, "subresource", "") != "status":
                raise
            original(user, changed(wanted, subresource=""))

    replace(authorizer.check, check)


DEFECTS: Defects = {
    "deletes-claims-in-use": deletes_claims_in_use,
    "changes-templates": overlooks("^spec", TEMPLATE, at=(CHANGED,)),
    "ignores-versions-of-status": ignores_versions("status"),
    "reserves-claims-without-allocation": overlooks(
        r"^status\.reservedFor.*may not be specified", at=(CHANGED,)
    ),
    "claim-constraints-can-change": may_change(CLAIM, "spec.devices.constraints"),
    "claim-counts-can-change": may_change(CLAIM, "spec.devices.requests.*.exactly.count"),
    "claim-requests-can-be-added": _ignores_lists_of_other_length,
    "unallocated-claims-can-change": _only_allocated,
    "template-metadata-can-change": may_change(TEMPLATE, "spec.metadata"),
    "allocation-configs-can-change": may_change(CLAIM, "status.allocation.devices.config"),
    "allocation-nodes-can-change": may_change(CLAIM, "status.allocation.nodeSelector"),
    "allocation-results-can-be-swapped": may_change(
        CLAIM, "status.allocation.devices.results.*.device"
    ),
    "allocation-of-unknown-request": overlooks(r"results\[\d+\]\.request"),
    "allocation-driver-of-any-form": overlooks(r"results\[\d+\]\.(driver|pool|device): "),
    "allocation-share-of-any-form": overlooks(r"results\[\d+\]\.shareID"),
    "allocation-config-of-unknown-source": overlooks(r"config\[\d+\]\.source: Unsupported"),
    "allocation-config-is-not-checked": overlooks(r"allocation\.devices\.config\[\d+\]\.(req|opa)"),
    "allocation-node-selector-without-terms": overlooks("nodeSelectorTerms: Required"),
    "consumers-without-uid": overlooks(r"reservedFor\[\d+\]\.uid: Required"),
    "consumers-without-name": overlooks(r"reservedFor\[\d+\]\.(name|resource): Required"),
    "consumers-of-one-uid": overlooks(r"reservedFor\[\d+\]: Duplicate"),
    "deleted-claims-can-be-reserved": overlooks("new entries may not be added"),
    "reservations-need-no-binding": lambda world: _binding(world, _reservations_are_free),
    "releases-need-no-binding": lambda world: _binding(world, _releases_are_free),
    "reports-need-binding": lambda world: _binding(world, _always_binding),
    "roles-allow-binding": _binds_by_role,
    "claims-allow-status": _status_by_rights_to_claims,
}
