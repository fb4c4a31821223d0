"""Defects of the API server: what it takes, stores and shows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace as changed
from typing import Any

from kube.errors import ApiError
from kube.values import Obj, Ref
from kubesim.apiserver import conversion
from kubesim.resources import DRA_GROUP, KINDS
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.api import schema
from reference_allocator.api.limits import REQUESTS_MAX
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

    @instead("api.validate_new")
    def mutate(_: World, original: Callable[..., None], *args: Any) -> None:
        try:
            original(*args)
        except ApiError as error:
            if not all(field in c.field and message in c.message for c in error.causes):
                raise

    return mutate


def ignores_unknown_fields(*below: str) -> Mutation:
    """Fields that it does not know are dropped, everywhere or in objects below these fields."""

    @instead("api.create")
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

    @instead("api.create")
    def mutate(_: World, original: Create, obj: Obj, namespace: str) -> Obj:
        new = clone(obj)
        if str(new.get("apiVersion")).endswith(f"/{version}"):
            lose(new)
        return original(new, namespace)

    return mutate


@instead("api.create")
def loses_scheduling_gates(_: World, original: Create, obj: Obj, namespace: str) -> Obj:
    new = clone(obj)
    if new["kind"] == "Pod":
        new["spec"].pop("schedulingGates", None)
    return original(new, namespace)


def lose_alternatives(claim: Obj) -> None:
    for request in conversion.device_requests(claim):
        del (request.get("firstAvailable") or [])[1:]


def lose_capacity(resource_slice: Obj) -> None:
    for device in conversion.list_devices(resource_slice):
        for body in (device, device.get("basic") or {}):
            body.pop("capacity", None)


@instead("api.create")
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


@instead("api.get")
def returns_stored_form(
    _: World, original: Callable[..., Obj | None], ref: Ref, namespace: str
) -> Obj | None:
    kind = KINDS[ref.kind]
    if ref.api_version not in kind.api_versions:
        return original(ref, namespace)
    found = original(changed(ref, api_version=kind.api_version), namespace)
    return found and {**found, "apiVersion": ref.api_version}


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

    replace(world.api, "create", create)
    replace(world.api, "get", by_ref)
    replace(world.api, "delete", by_ref)


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

    replace(world.api, "create", create)
    replace(world.api, "get", by_ref)
    replace(world.api, "delete", by_ref)


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

    replace(world.api, "create", create)
    replace(world.api, "get", get)


@instead("api.delete_stored")
def deletes_claims_in_use(
    world: World, original: Callable[..., None], obj: Obj, *args: Any
) -> None:
    if obj["kind"] == "ResourceClaim":
        world.cluster.store.remove(obj)
    else:
        original(obj, *args)


@instead("api.create")
def keeps_disabled_fields(world: World, original: Create, obj: Obj, namespace: str) -> Obj:
    created = original(obj, namespace)
    stored = world.cluster.store.by_uid(created["metadata"]["uid"])
    if stored is not None and obj["kind"] == "ResourceSlice":
        world.cluster.store.modify(stored, lambda new: new.update(spec=clone(obj["spec"])))
    return created


def mistake_driver(obj: Obj) -> None:
    if obj["kind"] == "DeviceTaintRule":
        obj["spec"]["deviceSelector"] = {"driver": "other.example.com"}


@instead("api.create")
def limits_are_one_less(_: World, original: Create, obj: Obj, namespace: str) -> Obj:
    """Lists of a claim that are as long as they may be are refused."""
    if obj.get("kind") == "ResourceClaim":
        devices = obj["spec"].get("devices") or {}
        lists = [devices.get(name) or [] for name in ("requests", "constraints", "config")]
        lists += [wanted.get("selectors") or [] for wanted in alternatives(obj)]
        if any(len(found) == REQUESTS_MAX for found in lists):
            raise ApiError(422, "Invalid", f"must have at most {REQUESTS_MAX - 1} items")
    return original(obj, namespace)


DEFECTS: Defects = {
    "limits-are-one-less": limits_are_one_less,
    "admin-access-anywhere": accept_in_spite_of("adminAccess"),
    "accepts-pod-claim-without-source": accept_in_spite_of("spec.resourceClaims", "must specify"),
    "accepts-pod-claim-with-two-sources": accept_in_spite_of("spec.resourceClaims", "at most"),
    "deletes-claims-in-use": deletes_claims_in_use,
    "ignores-unknown-fields-of-claims": ignores_unknown_fields("spec"),
    "ignores-unknown-fields-of-pod-claims": ignores_unknown_fields("resourceClaims"),
    "ignores-unknown-fields-of-requests": ignores_unknown_fields("requests"),
    "loses-capacity-of-v1beta1": loses("v1beta1", lose_capacity),
    "loses-alternatives-of-v1beta2": loses("v1beta2", lose_alternatives),
    "keeps-fields-of-disabled-features": keeps_disabled_fields,
    "mistakes-rules-of-v1beta2": loses("v1beta2", mistake_driver),
    "takes-any-number-of-alternatives": accept_in_spite_of("firstAvailable"),
    "takes-any-node-operations": accept_in_spite_of("spec.skipNodeOperations"),
    "takes-any-number-of-taints": accept_in_spite_of("spec.devices[0].taints", "must have at"),
    "takes-any-pool-name": accept_in_spite_of("spec.pool.name"),
    "takes-any-resource-name": accept_in_spite_of("spec.extendedResourceName"),
    "takes-lists-of-any-length": accept_in_spite_of("spec.devices", "must have at most"),
    "takes-unknown-values": accept_in_spite_of("spec.devices", "Unsupported value"),
    "loses-scheduling-gates": loses_scheduling_gates,
    "loses-capacity": loses("v1beta2", lose_capacity),
    "no-request-defaults": no_request_defaults,
    "returns-stored-form": returns_stored_form,
    "serves-claims-of-v1alpha3": serves_claims_of_v1alpha3,
    "serves-retired-classes": serves_retired("ResourceClass"),
    "serves-retired-templates": serves_retired("ResourceClaimTemplate"),
    "sources-of-later-pod-claims-are-not-checked": accept_in_spite_of(
        "spec.resourceClaims[1]", "ust specify"
    ),
    "shows-new-form-to-old-clients": shows_new_form_to_old_clients,
    "wrong-version-conversion": loses("v1beta1", lose_selectors),
}
