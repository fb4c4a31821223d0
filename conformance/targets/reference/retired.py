"""An API server that never retired resource.k8s.io/v1alpha2: the fault SERVES_RETIRED_VERSIONS.

It takes objects of that version and keeps them as what replaced them, without parameters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from conformance.targets.base import Obj, Ref
from conformance.targets.reference.apiserver.resources import DRA_GROUP
from conformance.targets.reference.apiserver.server import ApiServer

_RETIRED: Final = f"{DRA_GROUP}/v1alpha2"
_SERVED: Final = f"{DRA_GROUP}/v1"
_SUCCESSORS: Final = {"ResourceClass": "DeviceClass"}


class LenientApiServer(ApiServer):
    """Requests of clients against the store, in a version that is no longer served, too."""

    def create(self, obj: Obj, default_namespace: str) -> Obj:
        """See `ApiServer.create`."""
        if obj.get("apiVersion") != _RETIRED:
            return super().create(obj, default_namespace)
        new = {
            **obj,
            "apiVersion": _SERVED,
            "kind": _SUCCESSORS.get(obj["kind"], obj["kind"]),
            "spec": _spec(obj),
        }
        new.pop("driverName", None)
        stored = super().create(new, default_namespace)
        return {**stored, "apiVersion": _RETIRED, "kind": obj["kind"]}

    def get(self, ref: Ref, default_namespace: str) -> Obj | None:
        """See `ApiServer.get`."""
        return super().get(_served(ref), default_namespace)

    def delete(self, ref: Ref, grace_seconds: int | None, default_namespace: str) -> None:
        """See `ApiServer.delete`."""
        super().delete(_served(ref), grace_seconds, default_namespace)


def _served(ref: Ref) -> Ref:
    if ref.api_version != _RETIRED:
        return ref
    return replace(ref, api_version=_SERVED, kind=_SUCCESSORS.get(ref.kind, ref.kind))


def _spec(obj: Obj) -> Obj:
    """The spec of the successor; a class keeps nothing."""
    spec = obj.get("spec") or {}
    if obj["kind"] == "ResourceClaimTemplate":
        return {"spec": _claim_spec(spec.get("spec") or {})}
    return _claim_spec(spec) if obj["kind"] == "ResourceClaim" else {}


def _claim_spec(spec: Obj) -> Obj:
    exactly = {"deviceClassName": spec.get("resourceClassName")}
    return {"devices": {"requests": [{"name": "request", "exactly": exactly}]}}
