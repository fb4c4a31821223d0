"""Defects of what claims and pods count for in a quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from kube.errors import ApiError
from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.admission import Quotas, Usage
from kubesim.store import clone, name_of, namespace_of
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead, replace


def forgets(kind: str, prefix: str) -> Mutation:
    """Objects of a kind do not count for what begins so."""

    @instead(Quotas.usage_of)
    def mutate(_: World, original: Callable[[Obj], Usage], obj: Obj) -> Usage:
        used = original(obj)
        if obj["kind"] == kind:
            for name in [name for name in used if name.startswith(prefix)]:
                del used[name]
        return used

    return mutate


Measure = Callable[[Obj], Usage]


@instead(Quotas.usage_of)
def what_goes_is_gone(_: World, original: Measure, obj: Obj) -> Usage:
    """What is being deleted does not count."""
    return Counter() if pods.is_deleted(obj) else original(obj)


def sees(change: Callable[[Obj], None]) -> Mutation:
    """Claims are counted as if they were others. ``change`` makes the other, in place."""

    @instead(Quotas.usage_of)
    def mutate(_: World, original: Measure, obj: Obj) -> Usage:
        if obj["kind"] == "ResourceClaim":
            obj = clone(obj)
            change(obj)
        return original(obj)

    return mutate


def _requests(claim: Obj) -> list[Any]:
    return (claim["spec"].get("devices") or {}).get("requests") or []


def _each(change: Callable[[Obj], None]) -> Callable[[Obj], None]:
    def of_claim(claim: Obj) -> None:
        for request in _requests(claim):
            for wanted in (request.get("exactly"), *(request.get("firstAvailable") or [])):
                if wanted:
                    change(wanted)

    return of_claim


def _first_alternative(claim: Obj) -> None:
    for request in _requests(claim):
        del (request.get("firstAvailable") or [])[1:]


def _first_request(claim: Obj) -> None:
    del _requests(claim)[1:]


def _no_monitors(claim: Obj) -> None:
    for request in _requests(claim):
        if (request.get("exactly") or {}).get("adminAccess"):
            request.pop("exactly")


@instead(Quotas.usage_of)
def counts_allocated_only(_: World, original: Measure, obj: Obj) -> Usage:
    """A claim counts for its class once it is allocated, or when it is new."""
    used = original(obj)
    status = obj.get("status") or {}
    if obj["kind"] == "ResourceClaim" and "uid" in obj["metadata"] and not status:
        return Counter({name: n for name, n in used.items() if name.startswith("count/")})
    return used


def admits_by(difference: int) -> Mutation:
    """Where a new object is admitted, a quota is smaller by so much than it says."""

    def mutate(world: World) -> None:
        quotas, admitted = world.api.quotas, list[Obj]()

        def admit(original: Callable[[Obj], None], obj: Obj) -> None:
            admitted[:] = [obj]
            try:
                original(obj)
            finally:
                admitted.clear()

        def used_in(original: Callable[[str], Usage], namespace: str) -> Usage:
            used = original(namespace)
            for obj in admitted:
                used.update(dict.fromkeys(quotas.usage_of(obj), difference))
            return used

        replace(quotas.admit, admit)
        replace(quotas.used_in, used_in)

    return mutate


@instead(Quotas.usage_of)
def spares_generated(_: World, original: Measure, obj: Obj) -> Usage:
    if obj["kind"] == "ResourceClaim" and obj["metadata"].get("ownerReferences"):
        return Counter()
    return original(obj)


@instead(Quotas.admit)
def _first_quota_only(world: World, original: Callable[[Obj], None], obj: Obj) -> None:
    """Of several quotas of a namespace the first is asked."""
    try:
        original(obj)
    except ApiError as error:
        quotas = world.cluster.store.all("ResourceQuota", namespace_of(obj))
        if f"exceeded quota: {name_of(quotas[0])}," in error.message:
            raise


@instead(Quotas.used_in)
def _counts_ended_pods(world: World, original: Callable[[str], Usage], namespace: str) -> Usage:
    used = original(namespace)
    for pod in world.cluster.store.all("Pod", namespace):
        if pod["status"].get("phase") in {"Failed", "Succeeded"}:
            used = used + world.api.quotas.usage_of(pod)
    return used


def _counts_pods(change: Callable[[Obj], object]) -> Mutation:
    """Pods count in a quota as if they were others. ``change`` makes the other's spec."""

    @instead(Quotas.usage_of)
    def mutate(_: World, original: Callable[[Obj], Usage], obj: Obj) -> Usage:
        if obj["kind"] == "Pod":
            obj = clone(obj)
            change(obj["spec"])
        return original(obj)

    return mutate


def _sidecars_end(spec: Obj) -> None:
    for container in spec.get("initContainers") or []:
        container.pop("restartPolicy", None)


DEFECTS: Defects = {
    "quota-forgets-claims-that-go": what_goes_is_gone,
    "quota-counts-no-claims": forgets("ResourceClaim", "count/"),
    "quota-of-extended-resources-forgets-claims": forgets("ResourceClaim", "requests."),
    "quota-counts-requests": sees(_each(lambda w: w.update(allocationMode="ExactCount", count=1))),
    "quota-counts-all-as-one": sees(
        _each(lambda w: w.update(allocationMode="ExactCount", count=w.get("count", 1)))
    ),
    "quota-counts-first-alternatives": sees(_first_alternative),
    "quota-counts-first-requests": sees(_first_request),
    "quota-spares-admin-access": sees(_no_monitors),
    "quota-counts-allocated-claims": counts_allocated_only,
    "quota-refuses-the-last": admits_by(1),
    "quota-admits-one-more": admits_by(-1),
    "quota-spares-generated-claims": spares_generated,
    "quota-forgets-implicit-resources": forgets(
        "ResourceClaim", "requests.deviceclass.resource.kubernetes.io/"
    ),
    "first-quota-counts-alone": _first_quota_only,
    "quota-counts-pods-that-have-ended": _counts_ended_pods,
    "quota-takes-sidecars-for-init-containers": _counts_pods(_sidecars_end),
}
