"""Defects of the API server: PodGroups, and what their gate does to them."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.apiserver.server import ApiServer
from kubesim.world import World
from tests.mutants.apiserver.overlooked_fields import overlooks
from tests.mutants.replacing import Defects, instead

_GROUP = "PodGroup"


@instead(ApiServer.create)
def keeps_claims_without_gate(
    world: World, original: Callable[..., Obj], obj: Obj, *args: object
) -> Obj:
    """A new group keeps its claims though their gate is off."""
    created = original(obj, *args)
    claims = obj["spec"].get("resourceClaims") if obj["kind"] == _GROUP else None
    stored = world.cluster.store.by_uid(created["metadata"]["uid"])
    if not claims or stored is None or "resourceClaims" in stored["spec"]:
        return created
    return world.cluster.store.modify(stored, lambda new: new["spec"].update(resourceClaims=claims))


@instead(ApiServer.create)
def adds_no_finalizer(world: World, original: Callable[..., Obj], obj: Obj, *args: object) -> Obj:
    """A new group has no finalizer that keeps it for its pods."""
    created = original(obj, *args)
    stored = world.cluster.store.by_uid(created["metadata"]["uid"])
    if obj["kind"] != _GROUP or stored is None:
        return created
    return world.cluster.store.modify(stored, lambda new: new["metadata"].pop("finalizers", None))


DEFECTS: Defects = {
    "gangs-of-no-pods": overlooks(r"minCount: Required", _GROUP),
    "group-claims-can-change": overlooks(r"^spec\.resourceClaims: .*immutable", _GROUP),
    "group-claims-have-one-name": overlooks(r"resourceClaims\[\d+\]: Duplicate", _GROUP),
    "group-claims-in-both-ways": overlooks(r"resourceClaims.*: must specify exactly one", _GROUP),
    "group-claims-in-no-way": overlooks(r"resourceClaims.*: must specify one of", _GROUP),
    "group-status-names-any-claim": overlooks(r"must match the name of an entry", _GROUP),
    "groups-are-not-protected": adds_no_finalizer,
    "groups-keep-claims-without-gate": keeps_claims_without_gate,
    "groups-take-five-claims": overlooks(r"resourceClaims: Too many: 5:", _GROUP),
}
