"""Defects of the API server: what it takes, stores and shows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace as changed
from typing import Any

from conformance.targets.reference.apiserver import conversion
from conformance.targets.reference.resources import DRA_GROUP, KINDS
from conformance.targets.reference.store import clone
from conformance.targets.reference.world import World
from conformance.targets.seam.values import ApiError, Obj, Ref
from reference_allocator.api import schema
from reference_allocator.api.limits import REQUESTS_MAX
from tests.mutants.faults import Fault
from tests.mutants.replacing import Mutation, replace

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

    def mutate(world: World) -> None:
        def validate_new(original: Callable[..., None], *args: Any) -> None:
            try:
                original(*args)
            except ApiError as error:
                if not all(field in c.field and message in c.message for c in error.causes):
                    raise

        replace(world.api, "validate_new", validate_new)

    return mutate


def ignores_unknown_fields(*below: str) -> Mutation:
    """Fields that it does not know are dropped, everywhere or in objects below these fields."""

    def mutate(world: World) -> None:
        def create(original: Create, obj: Obj, namespace: str) -> Obj:
            known = clone(obj)
            root = schema.root_of(obj["kind"], obj["apiVersion"])
            for mistake in schema.mistakes(root, obj) if root else ():
                if isinstance(mistake, schema.UnknownField) and holder_of(mistake) in below:
                    holder: Any = known
                    for step in mistake.path[:-1]:
                        holder = holder[step]
                    del holder[mistake.path[-1]]
            return original(known, namespace)

        replace(world.api, "create", create)

    return mutate


def holder_of(mistake: schema.UnknownField) -> str:
    """The field below which an unknown one stands, for example ``requests``."""
    names = [step for step in mistake.path[:-1] if isinstance(step, str)]
    return names[-1] if names else ""


def loses(version: str, lose: Callable[[Obj], None]) -> Mutation:
    """Objects that are written in a version lose something."""

    def mutate(world: World) -> None:
        def create(original: Create, obj: Obj, namespace: str) -> Obj:
            new = clone(obj)
            if str(new.get("apiVersion")).endswith(f"/{version}"):
                lose(new)
            return original(new, namespace)

        replace(world.api, "create", create)

    return mutate


def loses_scheduling_gates(world: World) -> None:
    def create(original: Create, obj: Obj, namespace: str) -> Obj:
        new = clone(obj)
        if new["kind"] == "Pod":
            new["spec"].pop("schedulingGates", None)
        return original(new, namespace)

    replace(world.api, "create", create)


def lose_alternatives(claim: Obj) -> None:
    for request in conversion.device_requests(claim):
        del (request.get("firstAvailable") or [])[1:]


def lose_capacity(resource_slice: Obj) -> None:
    for device in conversion.devices(resource_slice):
        for body in (device, device.get("basic") or {}):
            body.pop("capacity", None)


def no_request_defaults(world: World) -> None:
    def create(original: Create, obj: Obj, namespace: str) -> Obj:
        created = original(obj, namespace)
        stored = world.cluster.store.by_uid(created["metadata"]["uid"])
        assert stored is not None
        new = world.cluster.store.modify(stored, lose_defaults)
        return conversion.to_version(new, obj["apiVersion"])

    replace(world.api, "create", create)


def lose_defaults(claim: Obj) -> None:
    for wanted in alternatives(claim):
        for field, default in (("allocationMode", "ExactCount"), ("count", 1)):
            if wanted.get(field) == default:
                del wanted[field]


def returns_stored_form(world: World) -> None:
    def get(original: Callable[..., Obj | None], ref: Ref, namespace: str) -> Obj | None:
        kind = KINDS[ref.kind]
        if ref.api_version not in kind.api_versions:
            return original(ref, namespace)
        found = original(changed(ref, api_version=kind.api_version), namespace)
        return found and {**found, "apiVersion": ref.api_version}

    replace(world.api, "get", get)


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


def deletes_claims_in_use(world: World) -> None:
    def delete_stored(original: Callable[..., None], obj: Obj, *args: Any) -> None:
        if obj["kind"] == "ResourceClaim":
            world.cluster.store.remove(obj)
        else:
            original(obj, *args)

    replace(world.api, "delete_stored", delete_stored)


def keeps_disabled_fields(world: World) -> None:
    def create(original: Create, obj: Obj, namespace: str) -> Obj:
        created = original(obj, namespace)
        stored = world.cluster.store.by_uid(created["metadata"]["uid"])
        if stored is not None and obj["kind"] == "ResourceSlice":
            world.cluster.store.modify(stored, lambda new: new.update(spec=clone(obj["spec"])))
        return created

    replace(world.api, "create", create)


def mistake_driver(obj: Obj) -> None:
    if obj["kind"] == "DeviceTaintRule":
        obj["spec"]["deviceSelector"] = {"driver": "other.example.com"}


def limits_are_one_less(world: World) -> None:
    """Lists of a claim that are as long as they may be are refused."""

    def create(original: Create, obj: Obj, namespace: str) -> Obj:
        if obj.get("kind") == "ResourceClaim":
            devices = obj["spec"].get("devices") or {}
            lists = [devices.get(name) or [] for name in ("requests", "constraints", "config")]
            lists += [wanted.get("selectors") or [] for wanted in alternatives(obj)]
            if any(len(found) == REQUESTS_MAX for found in lists):
                raise ApiError(422, "Invalid", f"must have at most {REQUESTS_MAX - 1} items")
        return original(obj, namespace)

    replace(world.api, "create", create)


MUTATIONS: dict[Fault, Mutation] = {
    Fault.LIMITS_ARE_ONE_LESS: limits_are_one_less,
    Fault.ACCEPT_INVALID_POD_CLAIM: accept_in_spite_of("spec.resourceClaims"),
    Fault.ADMIN_ACCESS_ANYWHERE: accept_in_spite_of("adminAccess"),
    Fault.ACCEPTS_POD_CLAIM_WITHOUT_SOURCE: accept_in_spite_of(
        "spec.resourceClaims", "must specify"
    ),
    Fault.ACCEPTS_POD_CLAIM_WITH_TWO_SOURCES: accept_in_spite_of("spec.resourceClaims", "at most"),
    Fault.DELETES_CLAIMS_IN_USE: deletes_claims_in_use,
    Fault.IGNORES_UNKNOWN_FIELDS_OF_CLAIMS: ignores_unknown_fields("spec"),
    Fault.IGNORES_UNKNOWN_FIELDS_OF_POD_CLAIMS: ignores_unknown_fields("resourceClaims"),
    Fault.IGNORES_UNKNOWN_FIELDS_OF_REQUESTS: ignores_unknown_fields("requests"),
    Fault.LOSES_CAPACITY_OF_V1BETA1: loses("v1beta1", lose_capacity),
    Fault.LOSES_ALTERNATIVES_OF_V1BETA2: loses("v1beta2", lose_alternatives),
    Fault.KEEPS_FIELDS_OF_DISABLED_FEATURES: keeps_disabled_fields,
    Fault.MISTAKES_RULES_OF_V1BETA2: loses("v1beta2", mistake_driver),
    Fault.TAKES_ANY_NUMBER_OF_ALTERNATIVES: accept_in_spite_of("firstAvailable"),
    Fault.TAKES_ANY_NODE_OPERATIONS: accept_in_spite_of("spec.skipNodeOperations"),
    Fault.TAKES_ANY_NUMBER_OF_TAINTS: accept_in_spite_of("spec.devices[0].taints", "must have at"),
    Fault.TAKES_ANY_POOL_NAME: accept_in_spite_of("spec.pool.name"),
    Fault.TAKES_ANY_RESOURCE_NAME: accept_in_spite_of("spec.extendedResourceName"),
    Fault.TAKES_ANY_TOLERATION: accept_in_spite_of("tolerations"),
    Fault.TAKES_LISTS_OF_ANY_LENGTH: accept_in_spite_of("spec.devices", "must have at most"),
    Fault.TAKES_NAMES_TWICE: accept_in_spite_of("spec.devices", "Duplicate value"),
    Fault.TAKES_NAMES_OF_ANY_FORM: accept_in_spite_of("ame", "RFC 1123"),
    Fault.TAKES_UNKNOWN_VALUES: accept_in_spite_of("spec.devices", "Unsupported value"),
    Fault.LOSES_SCHEDULING_GATES: loses_scheduling_gates,
    Fault.LOSES_CAPACITY: loses("v1beta2", lose_capacity),
    Fault.NO_REQUEST_DEFAULTS: no_request_defaults,
    Fault.RETURNS_STORED_FORM: returns_stored_form,
    Fault.SERVES_RETIRED_CLAIMS: serves_retired("ResourceClaim"),
    Fault.SERVES_RETIRED_CLASSES: serves_retired("ResourceClass"),
    Fault.SERVES_RETIRED_TEMPLATES: serves_retired("ResourceClaimTemplate"),
    Fault.SHOWS_NEW_FORM_TO_OLD_CLIENTS: shows_new_form_to_old_clients,
    Fault.WRONG_VERSION_CONVERSION: loses("v1beta1", lose_selectors),
}
