"""What becomes of slices and taint rules that are changed, listed or watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kube.errors import ApiError
from kube.values import Obj, Ref
from kubesim.apiserver import conversion
from kubesim.apiserver.conversion import list_devices
from kubesim.apiserver.server import ApiServer
from kubesim.resources import KINDS
from kubesim.store import clone
from kubesim.world import World
from tests.mutants.apiserver.claim_changes import Change
from tests.mutants.apiserver.claim_storage import after_change, after_creation, take_status, takes
from tests.mutants.apiserver.claim_versions import OLD, hides, loses
from tests.mutants.apiserver.overlooked_fields import CHANGED, SLICE, overlooks
from tests.mutants.apiserver.watches import without_field
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace


def lose_capacity(resource_slice: Obj) -> None:
    for device in conversion.list_devices(resource_slice):
        for body in (device, device.get("basic") or {}):
            body.pop("capacity", None)


def _keep_disabled_fields(new: Obj, sent: Obj) -> None:
    new["spec"] = clone(sent["spec"])


def mistake_driver(obj: Obj) -> None:
    if obj["kind"] == "DeviceTaintRule":
        obj["spec"]["deviceSelector"] = {"driver": "other.example.com"}


def _without_taints(obj: Obj) -> None:
    for device in obj["spec"].get("devices") or []:
        device["basic"].pop("taints", None)


LATE = "2026-01-01T00:00:00Z"


def stores(kind_name: str, wrong: Callable[[Obj, Obj | None], None]) -> Mutation:
    """Something is wrong with every object of a kind that a client has created or changed.

    Args:
        wrong: changes the object as it is stored; knows it as it was before, if it was.
    """

    def mutate(world: World) -> None:
        store = world.cluster.store

        def put(made: Obj, before: Obj | None) -> Obj:
            stored = store.by_uid(made["metadata"]["uid"])
            if made["kind"] != kind_name or stored is None:
                return made
            new = clone(stored)
            wrong(new, before)
            stored.clear()
            stored.update(new)
            again = world.api.get(Ref(made["apiVersion"], kind_name, new["metadata"]["name"]), "")
            return again or made

        def create(original: Callable[..., Obj], *args: Any) -> Obj:
            return put(original(*args), None)

        def change(
            original: Callable[..., Obj], ref: Ref, make: Change, *args: Any, **how: Any
        ) -> Obj:
            before = clone(store.get(ref.kind, "", ref.name)) if ref.kind == kind_name else None
            return put(original(ref, make, *args, **how), before)

        replace(world.api.create, create)
        replace(world.api.change, change)

    return mutate


def _keep_partition_types(new: Obj, sent: Obj) -> None:
    """The attribute of a slice that tells the type of partitions is behind no gate."""
    if name := (sent.get("spec") or {}).get("partitionTypeAttribute"):
        new["spec"]["partitionTypeAttribute"] = name


def _stays(new: Obj, before: Obj | None) -> None:
    new["metadata"]["generation"] = 1


def _counts_everything(new: Obj, before: Obj | None) -> None:
    if before is not None:
        new["metadata"]["generation"] = before["metadata"]["generation"] + 1


def _taints_of_old(new: Obj, before: Obj | None) -> None:
    for device in list_devices(new):
        for taint in device.get("taints") or ():
            taint["timeAdded"] = "1970-01-01T00:00:00Z"


def _keeps_time(new: Obj, before: Obj | None) -> None:
    if before is not None:
        new["spec"]["taint"]["timeAdded"] = before["spec"]["taint"]["timeAdded"]


def _new_time(new: Obj, before: Obj | None) -> None:
    if before is not None and new["spec"] != before["spec"]:
        new["spec"]["taint"]["timeAdded"] = LATE


def lists_without(forgotten: str) -> Mutation:
    """A list is not narrowed by a field, as if nobody had asked for it."""

    @instead(ApiServer.list)
    def mutate(_: World, original: Callable[..., list[Obj]], *args: Any) -> list[Obj]:
        fields: Mapping[str, str] = (args[4] if len(args) > 4 else None) or {}
        kept = {name: value for name, value in fields.items() if name != forgotten}
        return original(*args[:4], kept)

    return mutate


def lists_nothing_of(kind_name: str, wrong: Callable[[Obj, Mapping[str, str]], bool]) -> Mutation:
    """A list by fields lacks some objects of a kind."""

    @instead(ApiServer.list)
    def mutate(_: World, original: Callable[..., list[Obj]], *args: Any) -> list[Obj]:
        found = original(*args)
        fields: Mapping[str, str] = (args[4] if len(args) > 4 else None) or {}
        if args[1] != kind_name or not fields:
            return found
        return [obj for obj in found if not wrong(obj, fields)]

    return mutate


@instead(ApiServer.validate_change)
def never_goes_back(
    _: World, original: Original, kind: Any, new: Obj, old: Obj, **how: Any
) -> None:
    """The generation of a pool must grow."""
    original(kind, new, old, **how)
    if kind is KINDS["ResourceSlice"]:
        now, before = (obj["spec"]["pool"].get("generation", 0) for obj in (new, old))
        if now < before:
            raise ApiError(422, "Invalid", "spec.pool.generation: must not be less")


def lose_of_basic(*fields: str) -> Callable[[Obj], None]:
    def lose(obj: Obj) -> None:
        for device in list_devices(obj):
            for field in fields:
                (device.get("basic") or device).pop(field, None)

    return lose


DEFECTS: Defects = {
    "keeps-fields-of-disabled-features": after_creation(SLICE, _keep_disabled_fields),
    "mistakes-rules-of-v1beta2": loses("v1beta2", mistake_driver),
    "loses-capacity": loses("v1beta2", lose_capacity),
    "takes-any-taint-rule": overlooks("^spec", "DeviceTaintRule", at=(CHANGED,)),
    "slices-may-lose-their-node": overlooks(
        r"^spec\.nodeName: .*Invalid value: null", SLICE, at=(CHANGED,)
    ),
    "v1beta1-hides-taints": hides(OLD, _without_taints, "ResourceSlice"),
    "generation-of-slices-stays": stores("ResourceSlice", _stays),
    "generation-of-slices-counts-everything": stores("ResourceSlice", _counts_everything),
    "generation-of-rules-stays": stores("DeviceTaintRule", _stays),
    "taints-of-slices-have-no-time": stores("ResourceSlice", _taints_of_old),
    "rules-keep-the-time-of-the-old-effect": stores("DeviceTaintRule", _keeps_time),
    "rules-get-a-new-time-with-each-change": stores("DeviceTaintRule", _new_time),
    "status-of-rules-changes-their-spec": after_change("DeviceTaintRule", takes("spec"), "status"),
    "changed-rules-lose-their-status": after_change(
        "DeviceTaintRule", lambda new, *_: new.update(status={}), ""
    ),
    "keeps-partition-types-of-a-gate-that-is-off": after_creation(SLICE, _keep_partition_types),
    "new-rules-bring-their-status": after_creation("DeviceTaintRule", take_status),
    "generations-of-pools-must-grow": never_goes_back,
    "lists-slices-of-all-drivers": lists_without("spec.driver"),
    "lists-slices-of-all-nodes": lists_without("spec.nodeName"),
    "lists-slices-of-all-pools": lists_without("spec.pool.name"),
    "lists-slices-of-all-names": lists_without("metadata.name"),
    "lists-lack-slices-without-node": lists_nothing_of(
        "ResourceSlice", lambda obj, _: "nodeName" not in obj["spec"]
    ),
    "watches-all-drivers": without_field("spec.driver"),
    "watches-all-slices": without_field("metadata.name"),
    "loses-nodes-of-devices-of-v1beta1": loses("v1beta1", lose_of_basic("nodeName", "allNodes")),
    "loses-binding-conditions-of-v1beta1": loses(
        "v1beta1", lose_of_basic("bindingConditions", "bindingFailureConditions", "bindsToNode")
    ),
}
