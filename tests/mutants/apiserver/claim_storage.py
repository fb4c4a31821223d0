"""Defects of what is stored of a claim, template or class, and what comes of a change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj, Ref
from kubesim.apiserver import conversion
from kubesim.apiserver.fieldmanagers import FieldManagers
from kubesim.apiserver.server import ApiServer
from kubesim.store import clone
from kubesim.world import World
from tests.mutants.apiserver.claim_checks import Create
from tests.mutants.apiserver.overlooked_fields import CLAIM, CLASS, TEMPLATE
from tests.mutants.replacing import Defects, Mutation, instead


def alternatives(claim: Obj) -> list[Any]:
    """What the requests of a claim or template ask for; v1beta1 has no ``exactly``."""
    return [
        wanted
        for request in conversion.device_requests(claim)
        for wanted in (request, request.get("exactly"), *(request.get("firstAvailable") or []))
        if wanted
    ]


@instead(ApiServer.create)
def no_request_defaults(world: World, original: Create, obj: Obj, *args: Any) -> Obj:
    created = original(obj, *args)
    stored = world.cluster.store.by_uid(created["metadata"]["uid"])
    assert stored is not None
    new = world.cluster.store.modify(stored, lose_defaults)
    return conversion.to_version(new, obj["apiVersion"])


def lose_defaults(claim: Obj) -> None:
    for wanted in alternatives(claim):
        for field, default in (("allocationMode", "ExactCount"), ("count", 1)):
            if wanted.get(field) == default:
                del wanted[field]


Changed = Callable[[Obj, Obj, Obj], None]
"""From what was wanted, stored, and there before to what is stored, in place."""


def after_creation(kind: str, change: Callable[[Obj, Obj], None]) -> Mutation:
    """What is stored of a new object of a kind differs. ``change``: stored, as it was sent."""

    @instead(ApiServer.create)
    def mutate(world: World, original: Callable[..., Obj], obj: Obj, *args: Any) -> Obj:
        created = original(obj, *args)
        stored = world.cluster.store.by_uid(created["metadata"]["uid"])
        if stored is None or obj["kind"] != kind:
            return created
        new = world.cluster.store.modify(stored, lambda new: change(new, obj))
        return conversion.to_version(new, obj["apiVersion"])

    return mutate


def after_change(kind: str, change: Changed, *subresources: str) -> Mutation:
    """What is stored of a changed object, or of one whose status was written, differs."""

    @instead(ApiServer.change)
    def mutate(
        world: World,
        original: Callable[..., Obj],
        ref: Ref,
        wish: Callable[[Obj], Obj],
        *args: Any,
        **how: Any,
    ) -> Obj:
        store = world.cluster.store
        wanted: list[Obj] = []
        before: list[Obj] = []

        def wished(old: Obj) -> Obj:
            before.append(clone(old))
            wanted.append(clone(wish(old)))
            return clone(wanted[-1])

        new = original(ref, wished, *args, **how)
        stored = store.by_uid(new["metadata"]["uid"])
        if ref.kind != kind or (args[0] or "") not in subresources or stored is None:
            return new
        new = store.modify(stored, lambda obj: change(obj, wanted[-1], before[-1]))
        return conversion.to_version(new, ref.api_version)

    return mutate


def takes(*path: str) -> Changed:
    """A field that is not to be written in this way is stored."""

    def change(stored: Obj, wanted: Obj, _: Obj) -> None:
        for part in path[:-1]:
            stored, wanted = stored.setdefault(part, {}), wanted.get(part) or {}
        if path[-1] in wanted or path == ("status",):
            stored[path[-1]] = clone(wanted.get(path[-1]) or {})
        else:
            stored.pop(path[-1], None)

    return change


def keeps_generation(stored: Obj, _: Obj, before: Obj) -> None:
    stored["metadata"]["generation"] = before["metadata"]["generation"]


def counts_every_change(stored: Obj, _: Obj, before: Obj) -> None:
    stored["metadata"]["generation"] = before["metadata"]["generation"] + 1


def lose(*fields: str) -> Callable[[Obj, Obj], None]:
    """Requests and alternatives lose fields."""

    def change(stored: Obj, _: Obj) -> None:
        for wanted in alternatives(stored):
            for field in fields:
                wanted.pop(field, None)

    return change


def lose_alternatives_defaults(stored: Obj, sent: Obj) -> None:
    for new, old in zip(
        conversion.device_requests(stored), conversion.device_requests(sent), strict=True
    ):
        pairs = zip(new.get("firstAvailable") or [], old.get("firstAvailable") or [], strict=True)
        for wanted, asked in pairs:
            for field in {"allocationMode", "count"} - asked.keys():
                wanted.pop(field, None)


def default_counts(stored: Obj, sent: Obj) -> None:
    """A request that says its mode gets the default count, whatever count it has."""
    for new, old in zip(alternatives(stored), alternatives(sent), strict=False):
        if old.get("allocationMode") == "ExactCount" and "count" in new:
            new["count"] = 1


def lose_operators(stored: Obj, _: Obj) -> None:
    for wanted in alternatives(stored):
        for toleration in wanted.get("tolerations") or []:
            if toleration.get("operator") == "Equal":
                del toleration["operator"]


def count_all(stored: Obj, _: Obj) -> None:
    for wanted in alternatives(stored):
        if wanted.get("allocationMode") == "All":
            wanted["count"] = 1


def _sort_configs(stored: Obj, _: Obj) -> None:
    spec = stored["spec"] if stored["kind"] == CLASS else stored["spec"].get("devices") or {}
    if "config" in spec:
        spec["config"].reverse()


def _lose_config_requests(stored: Obj, _: Obj) -> None:
    for config in (stored["spec"].get("devices") or {}).get("config") or []:
        config.pop("requests", None)


def _lose_annotations(stored: Obj, _: Obj) -> None:
    (stored["spec"].get("metadata") or {}).pop("annotations", None)


def take_status(stored: Obj, sent: Obj) -> None:
    stored["status"] = clone(sent.get("status") or {})


def _lose(field: str) -> Callable[[Obj, Obj], None]:
    return lambda stored, _: stored["spec"].pop(field, None)


def _status_loses(*fields: str) -> Changed:
    """Results of a new allocation lose fields."""

    def change(stored: Obj, *_: Obj) -> None:
        allocation = stored["status"].get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or []:
            for field in fields:
                result.pop(field, None)

    return change


@instead(FieldManagers.change)
def _reserved_for_atomic(
    _: World, original: Callable[..., Callable[[Obj], Obj]], request: Any
) -> object:
    """Who applies a list of consumers replaces all others."""
    made = original(request)

    def changed(live: Obj) -> Obj:
        new = made(live)
        users = (request.body.get("status") or {}).get("reservedFor")
        if users is not None:
            new["status"]["reservedFor"] = clone(users)
        return new

    return changed


@instead(FieldManagers.change)
def _selectors_merged(
    _: World, original: Callable[..., Callable[[Obj], Obj]], request: Any
) -> object:
    """Selectors of a class that is applied are added to those that are there."""
    made = original(request)

    def changed(live: Obj) -> Obj:
        new = made(live)
        before = (live.get("spec") or {}).get("selectors") or []
        if live["kind"] == CLASS and "selectors" in (request.body.get("spec") or {}):
            added = [one for one in new["spec"]["selectors"] if one not in before]
            new["spec"]["selectors"] = before + added
        return new

    return changed


DEFECTS: Defects = {
    "no-request-defaults": no_request_defaults,
    "status-is-taken-at-creation": after_creation(CLAIM, take_status),
    "updates-take-status": after_change(CLAIM, takes("status"), ""),
    "status-updates-take-spec": after_change(CLAIM, takes("spec"), "status"),
    "status-updates-take-labels": after_change(CLAIM, takes("metadata", "labels"), "status"),
    "status-updates-take-annotations": after_change(
        CLAIM, takes("metadata", "annotations"), "status"
    ),
    "status-updates-take-finalizers": after_change(
        CLAIM, takes("metadata", "finalizers"), "status"
    ),
    "class-generation-stays": after_change(CLASS, keeps_generation, ""),
    "class-generation-counts-labels": after_change(CLASS, counts_every_change, ""),
    "templates-get-no-defaults": after_creation(TEMPLATE, lose("allocationMode", "count")),
    "alternatives-get-no-defaults": after_creation(CLAIM, lose_alternatives_defaults),
    "tolerations-get-no-operator": after_creation(CLAIM, lose_operators),
    "explicit-modes-lose-their-count": after_creation(CLAIM, default_counts),
    "all-gets-a-count": after_creation(CLAIM, count_all),
    "classes-lose-order-of-configs": after_creation(CLASS, _sort_configs),
    "configs-lose-requests": after_creation(CLAIM, _lose_config_requests),
    "templates-lose-annotations": after_creation(TEMPLATE, _lose_annotations),
    "templates-lose-tolerations": after_creation(TEMPLATE, lose("tolerations")),
    "classes-lose-extended-resource-names": after_creation(CLASS, _lose("extendedResourceName")),
    "status-loses-share-ids": after_change(CLAIM, _status_loses("shareID"), "status"),
    "status-loses-binding-conditions": after_change(
        CLAIM, _status_loses("bindingConditions", "bindingFailureConditions"), "status"
    ),
    "status-loses-tolerations": after_change(CLAIM, _status_loses("tolerations"), "status"),
    "reserved-for-is-atomic": _reserved_for_atomic,
    "class-selectors-are-merged": _selectors_merged,
}
