"""Defects of the API server: what it takes, stores and shows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace as changed
from typing import Any

from kube.errors import ApiError
from kube.values import Obj, Ref
from kubesim.apiserver import conversion
from kubesim.apiserver.server import ApiServer
from kubesim.resources import DRA_GROUP
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api import schema
from tests.mutants.replacing import Defects, Mutation, instead, replace

RETIRED = f"{DRA_GROUP}/v1alpha2"
SERVED = f"{DRA_GROUP}/v1"
SUCCESSORS = {"ResourceClass": "DeviceClass"}

Create = Callable[[Obj, str], Obj]


def alternatives(claim: Obj) -> list[Any]:
    """What the requests of a claim or template ask for; v1beta1 has no ``exactly``."""
    return [
        wanted
        for request in conversion.device_requests(claim)
        for wanted in (request, request.get("exactly"), *(request.get("firstAvailable") or []))
        if wanted
    ]


def lose_selectors(claim: Obj) -> None:
    for wanted in alternatives(claim):
        wanted.pop("selectors", None)


def accept_in_spite_of(field: str, message: str = "") -> Mutation:
    """What is wrong with a field is not looked at."""

    @instead(ApiServer.validate_new)
    def mutate(_: World, original: Callable[..., None], *args: Any) -> None:
        try:
            original(*args)
        except ApiError as error:
            if not all(field in c.field and message in c.message for c in error.causes):
                raise

    return mutate


def ignores_unknown_fields(*below: str) -> Mutation:
    """Fields that it does not know are dropped, everywhere or in objects below these fields."""

    @instead(ApiServer.create)
    def mutate(_: World, original: Create, obj: Obj, namespace: str) -> Obj:
        known = clone(obj)
        root = schema.root_of(obj["kind"], obj["apiVersion"])
        for mistake in schema.find_mistakes(root, obj) if root else ():
            if isinstance(mistake, schema.UnknownField) and holder_of(mistake) in below:
                holder: Any = known
                for step in mistake.path[:-1]:
                    holder = holder[step]
                del holder[mistake.path[-1]]
        return original(known, namespace)

    return mutate


def holder_of(mistake: schema.UnknownField) -> str:
    """The field below which an unknown one stands, for example ``requests``."""
    names = [step for step in mistake.path[:-1] if isinstance(step, str)]
    return names[-1] if names else ""


def loses(version: str, lose: Callable[[Obj], None]) -> Mutation:
    """Objects that are written in a version lose something."""

    @instead(ApiServer.create)
    def mutate(_: World, original: Create, obj: Obj, namespace: str) -> Obj:
        new = clone(obj)
        if str(new.get("apiVersion")).endswith(f"/{version}"):
            lose(new)
        return original(new, namespace)

    return mutate


def lose_capacity(resource_slice: Obj) -> None:
    for device in conversion.list_devices(resource_slice):
        for body in (device, device.get("basic") or {}):
            body.pop("capacity", None)


@instead(ApiServer.create)
def no_request_defaults(world: World, original: Create, obj: Obj, namespace: str) -> Obj:
    created = original(obj, namespace)
    stored = world.cluster.store.by_uid(created["metadata"]["uid"])
    assert stored is not None
    new = world.cluster.store.modify(stored, lose_defaults)
    return conversion.to_version(new, obj["apiVersion"])


def lose_defaults(claim: Obj) -> None:
    for wanted in alternatives(claim):
        for field, default in (("allocationMode", "ExactCount"), ("count", 1)):
            if wanted.get(field) == default:
                del wanted[field]


def serves_retired(*kinds: str) -> Mutation:
    """It takes objects of v1alpha2 and keeps them as what replaced them, without parameters."""
    return lambda world: take_retired(world, kinds)


def take_retired(world: World, kinds: Collection[str]) -> None:
    def create(original: Create, obj: Obj, namespace: str) -> Obj:
        if obj.get("apiVersion") != RETIRED or obj["kind"] not in kinds:
            return original(obj, namespace)
        kind = SUCCESSORS.get(obj["kind"], obj["kind"])
        new = {**obj, "apiVersion": SERVED, "kind": kind, "spec": spec_today(obj)}
        new.pop("driverName", None)
        return {**original(new, namespace), "apiVersion": RETIRED, "kind": obj["kind"]}

    def by_ref(original: Callable[..., Any], ref: Ref, *args: Any) -> Any:
        if ref.api_version == RETIRED and ref.kind in kinds:
            ref = changed(ref, api_version=SERVED, kind=SUCCESSORS.get(ref.kind, ref.kind))
        return original(ref, *args)

    replace(world.api.create, create)
    replace(world.api.get, by_ref)
    replace(world.api.delete, by_ref)


def serves_claims_of_v1alpha3(world: World) -> None:
    """The version is there for other kinds, so claims are taken in it, too, as in v1beta1."""
    old, successor = f"{DRA_GROUP}/v1alpha3", f"{DRA_GROUP}/v1beta1"

    def create(original: Create, obj: Obj, namespace: str) -> Obj:
        if obj.get("apiVersion") != old or obj["kind"] != "ResourceClaim":
            return original(obj, namespace)
        return {**original({**obj, "apiVersion": successor}, namespace), "apiVersion": old}

    def by_ref(original: Callable[..., Any], ref: Ref, *args: Any) -> Any:
        if ref.api_version == old and ref.kind == "ResourceClaim":
            ref = changed(ref, api_version=successor)
        return original(ref, *args)

    replace(world.api.create, create)
    replace(world.api.get, by_ref)
    replace(world.api.delete, by_ref)


def spec_today(obj: Obj) -> Obj:
    """The spec of the successor; a class keeps nothing."""
    spec = obj.get("spec") or {}
    if obj["kind"] == "ResourceClaimTemplate":
        return {"spec": claim_spec_today(spec.get("spec") or {})}
    return claim_spec_today(spec) if obj["kind"] == "ResourceClaim" else {}


def claim_spec_today(spec: Obj) -> Obj:
    exactly = {"deviceClassName": spec.get("resourceClassName")}
    return {"devices": {"requests": [{"name": "request", "exactly": exactly}]}}


def shows_new_form_to_old_clients(world: World) -> None:
    written_in_v1 = set()

    def create(original: Create, obj: Obj, namespace: str) -> Obj:
        created = original(obj, namespace)
        if obj.get("apiVersion") == SERVED:
            written_in_v1.add(created["metadata"]["uid"])
        return created

    def get(original: Callable[..., Obj | None], ref: Ref, namespace: str) -> Obj | None:
        found = original(ref, namespace)
        if found is None or found["metadata"]["uid"] not in written_in_v1:
            return found
        stored = world.cluster.store.by_uid(found["metadata"]["uid"])
        return stored and {**stored, "apiVersion": ref.api_version}

    replace(world.api.create, create)
    replace(world.api.get, get)


@instead(ApiServer.delete_stored)
def deletes_claims_in_use(
    world: World, original: Callable[..., None], obj: Obj, *args: Any
) -> None:
    if obj["kind"] == "ResourceClaim":
        world.cluster.store.remove(obj)
    else:
        original(obj, *args)


@instead(ApiServer.create)
def keeps_disabled_fields(world: World, original: Create, obj: Obj, namespace: str) -> Obj:
    created = original(obj, namespace)
    stored = world.cluster.store.by_uid(created["metadata"]["uid"])
    if stored is not None and obj["kind"] == "ResourceSlice":
        world.cluster.store.modify(stored, lambda new: new.update(spec=clone(obj["spec"])))
    return created


def mistake_driver(obj: Obj) -> None:
    if obj["kind"] == "DeviceTaintRule":
        obj["spec"]["deviceSelector"] = {"driver": "other.example.com"}


DEFECTS: Defects = {
    "admin-access-anywhere": accept_in_spite_of("adminAccess"),
    "accepts-pod-claim-without-source": accept_in_spite_of("spec.resourceClaims", "must specify"),
    "deletes-claims-in-use": deletes_claims_in_use,
    "ignores-unknown-fields-of-claims": ignores_unknown_fields("spec"),
    "ignores-unknown-fields-of-pod-claims": ignores_unknown_fields("resourceClaims"),
    "ignores-unknown-fields-of-requests": ignores_unknown_fields("requests"),
    "keeps-fields-of-disabled-features": keeps_disabled_fields,
    "mistakes-rules-of-v1beta2": loses("v1beta2", mistake_driver),
    "takes-any-node-operations": accept_in_spite_of("spec.skipNodeOperations"),
    "takes-any-number-of-taints": accept_in_spite_of("spec.devices[0].taints", "must have at"),
    "takes-any-pool-name": accept_in_spite_of("spec.pool.name"),
    "takes-any-resource-name": accept_in_spite_of("spec.extendedResourceName"),
    "loses-capacity": loses("v1beta2", lose_capacity),
    "no-request-defaults": no_request_defaults,
    "serves-claims-of-v1alpha3": serves_claims_of_v1alpha3,
    "serves-retired-classes": serves_retired("ResourceClass"),
    "serves-retired-templates": serves_retired("ResourceClaimTemplate"),
    "sources-of-later-pod-claims-are-not-checked": accept_in_spite_of(
        "spec.resourceClaims[1]", "ust specify"
    ),
    "shows-new-form-to-old-clients": shows_new_form_to_old_clients,
    "wrong-version-conversion": loses("v1beta1", lose_selectors),
}
