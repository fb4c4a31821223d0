"""Defects of an API server that refuses what is valid: the greatest, and what is seldom written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver import conversion
from kubesim.resources import Kind
from kubesim.world import World
from tests.mutants.apiserver.claim_storage import alternatives
from tests.mutants.apiserver.overlooked_fields import CHANGED, CLAIM, CLASS, TEMPLATE, refuses
from tests.mutants.replacing import Defects, Mutation, Original, replace


def refuses_change(wrong: Callable[[Obj, Obj], bool], kind_name: str = CLAIM) -> Mutation:
    """Changes of a new and an old object, or of their status, are refused."""

    def mutate(world: World) -> None:
        def check(original: Original, kind: Kind, new: Obj, old: Obj, *args: Any, **k: Any) -> None:
            if kind.name == kind_name and wrong(new, old):
                raise ApiError(422, "Invalid", "is invalid: refused by a defect")
            original(kind, new, old, *args, **k)

        replace(world.api.validate_change, check)

    return mutate


def claim_spec(obj: Obj) -> Any:
    spec = obj.get("spec") or {}
    return ((spec.get("spec") or {}) if obj["kind"] == TEMPLATE else spec).get("devices") or {}


def listed(obj: Obj, name: str) -> Sequence[Any]:
    """``constraints`` or ``config`` of a claim, template or class."""
    holder = obj["spec"] if obj["kind"] == CLASS else claim_spec(obj)
    return holder.get(name) or []


def _references(obj: Obj) -> list[str]:
    items = [*listed(obj, "constraints"), *listed(obj, "config")]
    return [name for item in items for name in item.get("requests") or []]


def _with_alternatives(obj: Obj) -> set[str]:
    return {r["name"] for r in conversion.device_requests(obj) if r.get("firstAvailable")}


def _alternative_names(obj: Obj) -> list[str]:
    requests = conversion.device_requests(obj)
    return [one["name"] for r in requests for one in r.get("firstAvailable") or []]


def _parameters(obj: Obj) -> list[str]:
    opaque = (item.get("opaque") or {} for item in listed(obj, "config"))
    return [json.dumps(one.get("parameters"), separators=(",", ":")) for one in opaque]


def _drivers(obj: Obj) -> list[str]:
    opaque = (item.get("opaque") or {} for item in listed(obj, "config"))
    return [one.get("driver") or "" for one in opaque]


def _status(obj: Obj) -> Any:
    return obj.get("status") or {}


def _users(obj: Obj) -> list[Any]:
    return _status(obj).get("reservedFor") or []


def _twice(names: Sequence[Any]) -> bool:
    return len(names) != len(set(names))


DEFECTS: Defects = {
    "claim-refuses-32-requests": refuses(lambda o: len(conversion.device_requests(o)) == 32),
    "claim-refuses-32-constraints": refuses(lambda o: len(listed(o, "constraints")) == 32),
    "claim-refuses-32-configs": refuses(lambda o: len(listed(o, "config")) == 32),
    "request-refuses-32-selectors": refuses(
        lambda o: any(len(one.get("selectors") or []) == 32 for one in alternatives(o))
    ),
    "request-refuses-8-alternatives": refuses(
        lambda o: any(
            len(r.get("firstAvailable") or []) == 8 for r in conversion.device_requests(o)
        )
    ),
    "class-refuses-32-selectors": refuses(lambda o: len(listed(o, "selectors")) == 32, CLASS),
    "class-refuses-32-configs": refuses(lambda o: len(listed(o, "config")) == 32, CLASS),
    "claim-refuses-256-consumers": refuses(lambda o: len(_users(o)) == 256, at=(CHANGED,)),
    "allocation-refuses-32-results": refuses(
        lambda o: (
            len(((_status(o).get("allocation") or {}).get("devices") or {}).get("results", []))
            == 32
        ),
        at=(CHANGED,),
    ),
    "takes-10-kb-for-10-kib": refuses(
        lambda o: any(len(text) > 10_000 for text in _parameters(o)), CLAIM, CLASS, TEMPLATE
    ),
    "refuses-request-names-of-63-bytes": refuses(
        lambda o: any(len(r.get("name") or "") == 63 for r in conversion.device_requests(o))
    ),
    "refuses-config-drivers-of-63-bytes": refuses(
        lambda o: any(len(name) == 63 for name in _drivers(o)), CLAIM, CLASS
    ),
    "refuses-config-drivers-in-capitals": refuses(
        lambda o: any(name != name.lower() for name in _drivers(o)), CLAIM, CLASS
    ),
    "refuses-config-for-other-drivers": refuses(
        lambda o: len(set(_drivers(o))) > 1, CLAIM, TEMPLATE, CLASS
    ),
    "refuses-references-to-alternatives": refuses(lambda o: any("/" in n for n in _references(o))),
    "refuses-references-to-requests-with-alternatives": refuses(
        lambda o: not _with_alternatives(o).isdisjoint(_references(o))
    ),
    "alternatives-are-unique-in-claims": refuses(lambda o: _twice(_alternative_names(o))),
    "refuses-claims-without-requests": refuses(lambda o: not conversion.device_requests(o)),
    "refuses-classes-without-selectors": refuses(lambda o: not o["spec"], CLASS),
    "refuses-tolerations-of-everything": refuses(
        lambda o: any(
            not t.get("key") for one in alternatives(o) for t in one.get("tolerations") or []
        )
    ),
    "refuses-admin-access-that-is-false": refuses(
        lambda o: any(one.get("adminAccess") is False for one in alternatives(o))
    ),
    "claims-cannot-be-labeled": refuses_change(
        lambda new, old: new["metadata"].get("labels") != old["metadata"].get("labels")
    ),
    "classes-cannot-change": refuses_change(lambda n, o: n.get("spec") != o.get("spec"), CLASS),
    "allocation-cannot-be-cleared": refuses_change(
        lambda n, o: "allocation" in _status(o) and "allocation" not in _status(n)
    ),
    "deleted-claims-cannot-be-released": refuses_change(
        lambda n, o: "deletionTimestamp" in n["metadata"] and _status(n) != _status(o)
    ),
    "consumers-of-one-name-are-refused": refuses(
        lambda o: _twice([user.get("name") for user in _users(o)]), at=(CHANGED,)
    ),
    "consumers-are-pods-alone": refuses(
        lambda o: any(user.get("resource") != "pods" for user in _users(o)), at=(CHANGED,)
    ),
    "consumers-cannot-leave": refuses_change(lambda n, o: len(_users(n)) < len(_users(o))),
}
