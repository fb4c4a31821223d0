"""Defects of claims, templates and classes in versions before v1, and of selecting them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace as changed
from typing import Any

from kube.errors import ApiError
from kube.values import Obj, Ref
from kubesim.apiserver import conversion
from kubesim.apiserver.server import ApiServer
from kubesim.resources import DRA_GROUP, KINDS
from kubesim.store import clone
from kubesim.world import World
from tests.mutants.apiserver.claim_checks import Create
from tests.mutants.apiserver.claim_storage import alternatives
from tests.mutants.apiserver.overlooked_fields import CLAIM, CLASS, TEMPLATE
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace

RETIRED = f"{DRA_GROUP}/v1alpha2"


SERVED = f"{DRA_GROUP}/v1"


SUCCESSORS = {"ResourceClass": "DeviceClass"}


def lose_selectors(claim: Obj) -> None:
    for wanted in alternatives(claim):
        wanted.pop("selectors", None)


def loses(version: str, lose: Callable[[Obj], None]) -> Mutation:
    """Objects that are written in a version lose something."""

    @instead(ApiServer.create)
    def mutate(_: World, original: Create, obj: Obj, *args: Any) -> Obj:
        new = clone(obj)
        if str(new.get("apiVersion")).endswith(f"/{version}"):
            lose(new)
        return original(new, *args)

    return mutate


def serves_retired(*kinds: str) -> Mutation:
    """It takes objects of v1alpha2 and keeps them as what replaced them, without parameters."""
    return lambda world: take_retired(world, kinds)


def take_retired(world: World, kinds: Collection[str]) -> None:
    def create(original: Create, obj: Obj, *args: Any) -> Obj:
        if obj.get("apiVersion") != RETIRED or obj["kind"] not in kinds:
            return original(obj, *args)
        kind = SUCCESSORS.get(obj["kind"], obj["kind"])
        new = {**obj, "apiVersion": SERVED, "kind": kind, "spec": spec_today(obj)}
        new.pop("driverName", None)
        return {**original(new, *args), "apiVersion": RETIRED, "kind": obj["kind"]}

    def by_ref(original: Original, ref: Ref, *args: Any) -> Any:
        if ref.api_version == RETIRED and ref.kind in kinds:
            ref = changed(ref, api_version=SERVED, kind=SUCCESSORS.get(ref.kind, ref.kind))
        return original(ref, *args)

    replace(world.api.create, create)
    replace(world.api.get, by_ref)
    replace(world.api.delete, by_ref)


def serves_claims_of_v1alpha3(world: World) -> None:
    """The version is there for other kinds, so claims are taken in it, too, as in v1beta1."""
    old, successor = f"{DRA_GROUP}/v1alpha3", f"{DRA_GROUP}/v1beta1"

    def create(original: Create, obj: Obj, *args: Any) -> Obj:
        if obj.get("apiVersion") != old or obj["kind"] != "ResourceClaim":
            return original(obj, *args)
        return {**original({**obj, "apiVersion": successor}, *args), "apiVersion": old}

    def by_ref(original: Original, ref: Ref, *args: Any) -> Any:
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


OLD = "v1beta1"


def hides(version: str, hide: Callable[[Obj], object], kind: str = CLAIM) -> Mutation:
    """Objects of a kind that are read in a version lack something. ``hide``: in place."""

    def shown(obj: Obj) -> Obj:
        if obj["kind"] == kind and obj["apiVersion"].endswith(f"/{version}"):
            obj = clone(obj)
            hide(obj)
        return obj

    def mutate(world: World) -> None:
        def get(original: Callable[..., Obj | None], *args: Any) -> Obj | None:
            found = original(*args)
            return None if found is None else shown(found)

        replace(world.api.get, get)
        replace(world.api.list, lambda original, *args: [shown(o) for o in original(*args)])

    return mutate


def without(*fields: str) -> Callable[[Obj], None]:
    def lose(obj: Obj) -> None:
        for wanted in alternatives(obj):
            for field in fields:
                wanted.pop(field, None)

    return lose


def without_constraints(obj: Obj) -> None:
    for constraint in (obj["spec"].get("devices") or {}).get("constraints") or []:
        constraint.pop("distinctAttribute", None)


def without_spec(*fields: str) -> Callable[[Obj], None]:
    def lose(obj: Obj) -> None:
        for field in fields:
            (obj.get("spec") or {}).pop(field, None)

    return lose


def of_kind(kind: str, lose: Callable[[Obj], None]) -> Callable[[Obj], None]:
    return lambda obj: lose(obj) if obj["kind"] == kind else None


def without_template_selectors(obj: Obj) -> None:
    if obj["kind"] == TEMPLATE:
        without("selectors")(obj)


@instead(ApiServer.create)
def with_exactly(_: World, original: Callable[..., Obj], obj: Obj, *args: Any) -> Obj:
    """A request for alternatives in v1beta1 gets the defaults of a single one beside them."""
    if obj.get("apiVersion", "").endswith(OLD) and any(
        request.get("firstAvailable") for request in conversion.device_requests(obj)
    ):
        raise ApiError(422, "Invalid", "exactly one of `exactly` or `firstAvailable`")
    return original(obj, *args)


def _result_fields(*fields: str) -> Callable[[Obj], None]:
    def hide(obj: Obj) -> None:
        allocation = (obj.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or []:
            for field in fields:
                result.pop(field, None)

    return hide


@instead(ApiServer.change)
def no_old_updates(
    _: World, original: Callable[..., Obj], ref: Ref, wish: Any, *args: Any, **how: Any
) -> Obj:
    """Who has read a claim in v1beta1 cannot write it back."""
    if ref.kind == CLAIM and ref.api_version.endswith(f"/{OLD}") and not args[0]:
        raise ApiError(422, "Invalid", "spec: Invalid value: field is immutable")
    return original(ref, wish, *args, **how)


@instead(ApiServer.list)
def lists_stored_form(
    _: World, original: Callable[..., list[Obj]], version: str, kind: str, *args: Any
) -> Any:
    if kind not in (CLAIM, TEMPLATE) or not version.endswith(f"/{OLD}"):
        return original(version, kind, *args)
    found = original(KINDS[kind].api_version, kind, *args)
    return [{**obj, "apiVersion": version} for obj in found]


@instead(ApiServer.list)
def no_selecting_by_name(
    _: World,
    original: Callable[..., list[Obj]],
    version: str,
    kind: str,
    ns: str,
    labels: Any,
    *f: Any,
) -> list[Obj]:
    """Claims that are listed by name are all claims."""
    return original(version, kind, ns, labels, *(() if kind == CLAIM else f))


def prints(kind: str, change: Callable[[Obj, list[str]], None]) -> Mutation:
    """Cells of a table differ. ``change``: an object's metadata, and its cells."""

    @instead(ApiServer.build_table)
    def mutate(
        _: World, original: Callable[..., Obj | None], of: str, objects: list[Obj], meta: Obj
    ) -> Obj | None:
        found = original(of, objects, meta)
        for row in found["rows"] if found and of == kind else ():
            change(row["object"]["metadata"], row["cells"])
        return found

    return mutate


def _without(state: str) -> Callable[[Obj, list[str]], None]:
    def change(_: Obj, cells: list[str]) -> None:
        cells[1] = ",".join(one for one in cells[1].split(",") if one != state)

    return change


def _pending_for_good(_: Obj, cells: list[str]) -> None:
    cells[1] = cells[1].replace("allocated,reserved", "pending")


def _node_of_the_pool(_: Obj, cells: list[str]) -> None:
    cells[1], cells[2] = cells[2], cells[1]


DEFECTS: Defects = {
    "serves-claims-of-v1alpha3": serves_claims_of_v1alpha3,
    "serves-retired-classes": serves_retired("ResourceClass"),
    "serves-retired-templates": serves_retired("ResourceClaimTemplate"),
    "wrong-version-conversion": loses("v1beta1", lose_selectors),
    "prints-no-reservation": prints("ResourceClaim", _without("reserved")),
    "prints-no-deletion": prints("ResourceClaim", _without("deleted")),
    "prints-claims-as-pending": prints("ResourceClaim", _pending_for_good),
    "prints-columns-of-slices-in-another-order": prints("ResourceSlice", _node_of_the_pool),
    "v1beta1-loses-tolerations": loses(OLD, without("tolerations")),
    "v1beta1-loses-capacity-requests": loses(OLD, of_kind(CLAIM, without("capacity"))),
    "v1beta1-loses-admin-access": loses(OLD, without("adminAccess")),
    "v1beta1-loses-counts": loses(OLD, without("count")),
    "v1beta1-loses-distinct-attributes": loses(OLD, of_kind(CLAIM, without_constraints)),
    "v1beta1-templates-lose-selectors": loses(OLD, without_template_selectors),
    "v1beta1-classes-lose-extended-resource-names": loses(
        OLD, of_kind(CLASS, without_spec("extendedResourceName"))
    ),
    "v1beta2-loses-capacity-requests": loses("v1beta2", of_kind(CLAIM, without("capacity"))),
    "v1beta1-takes-no-alternatives": with_exactly,
    "v1beta1-hides-alternatives": hides(
        OLD, lambda o: [r.pop("firstAvailable", None) for r in conversion.device_requests(o)]
    ),
    "v1beta1-hides-shares": hides(OLD, _result_fields("shareID", "consumedCapacity")),
    "v1beta1-claims-cannot-change": no_old_updates,
    "lists-are-in-stored-form": lists_stored_form,
    "claims-are-not-selected-by-name": no_selecting_by_name,
}
