"""The API server looks at a part: the first item, new objects, one quota, some keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.errors import ApiError
from kube.values import Obj, Request, User
from kubesim.apiserver.admission import Quotas, Usage
from kubesim.apiserver.authorization import Authorizer
from kubesim.apiserver.fieldmanagers import FieldManagers
from kubesim.apiserver.handling import Handler
from kubesim.store import clone, name_of, namespace_of
from kubesim.validation.errors import FieldError
from kubesim.world import World
from tests.mutants.claims.checks import TEMPLATE, overlooks
from tests.mutants.claims.versions import OLD, hides
from tests.mutants.replacing import Defects, Mutation, instead
from tests.mutants.slices.overlooked_fields import overlooks as overlooks_field


def _names_whole_claim_first(pod: Obj) -> bool:
    found = [
        (container.get("resources") or {}).get("claims") or []
        for container in pod["spec"]["containers"]
    ]
    return any(len(claims) == 2 and not claims[0].get("request") and claims[1].get("request")
               for claims in found)  # fmt: skip


@instead(Authorizer._check_device_reports)
def _first_driver_decides(
    _: World,
    original: Callable[..., list[FieldError]],
    user: User,
    wanted: Any,
    new: Obj,
    old: Obj,
) -> list[FieldError]:
    """Of several drivers whose reports change, who writes needs the right for one."""
    before, after = (status.get("devices") or [] for status in (old, new))
    changed = [one for one in after if one not in before]
    changed += [one for one in before if one not in after]
    first = min((one["driver"] for one in changed), default="")
    return [error for error in original(user, wanted, new, old) if f'"{first}"' in error.body]


@instead(Handler._bind)
def _binds_gated_pods(_: World, original: Callable[..., None], pod: Obj, binding: Obj) -> None:
    spec = {field: value for field, value in pod["spec"].items() if field != "schedulingGates"}
    original({**pod, "spec": spec}, binding)


def _one_report_for(forgotten: str) -> Mutation:
    """Server-side apply takes reports for one that differ in nothing but this field."""

    @instead(FieldManagers.change)
    def mutate(
        _: World, original: Callable[..., Callable[[Obj], Obj]], request: Request
    ) -> Callable[[Obj], Obj]:
        change = original(request)

        def key(report: Obj) -> list[Any]:
            fields = {"driver", "pool", "device", "shareID"} - {forgotten}
            return [report.get(field) for field in sorted(fields)]

        def changed(live: Obj) -> Obj:
            known = (live.get("status") or {}).get("devices") or []
            for report in (request.body.get("status") or {}).get("devices") or []:
                for other in known:
                    apart = other.get(forgotten) != report.get(forgotten)
                    if apart and key(other) == key(report):
                        raise ApiError(409, "Conflict", "Apply failed with 1 conflict")
            return change(live)

        return changed

    return mutate


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


def _without_taints(obj: Obj) -> None:
    for device in obj["spec"].get("devices") or []:
        device["basic"].pop("taints", None)


_RESULT = r"^status\.allocation\.devices\.results\[\d+\]\."

DEFECTS: Defects = {
    "consumers-after-the-first-are-not-checked": overlooks(r"^status\.reservedFor\[[1-9]\d*\]\."),
    "slices-may-lose-their-node": overlooks_field(
        "ResourceSlice", r"^spec\.nodeName$", "Invalid value: null", new=False
    ),
    "containers-name-requests-of-claims-that-they-have": overlooks_field(
        "Pod", r"\.resources\.claims", "Duplicate", when=_names_whole_claim_first
    ),
    "takes-5-binding-failure-conditions": overlooks_field(
        "ResourceSlice", r"\.bindingFailureConditions$", "Too many"
    ),
    "changed-taints-are-not-checked": overlooks_field(
        "ResourceSlice", r"^spec\.devices\[\d+\]\.taints", new=False
    ),
    "first-driver-decides-on-reports": _first_driver_decides,
    "gated-pods-can-be-bound": _binds_gated_pods,
    "reports-of-two-pools-are-one": _one_report_for("pool"),
    "reports-of-two-shares-are-one": _one_report_for("shareID"),
    "first-quota-counts-alone": _first_quota_only,
    "quota-counts-pods-that-have-ended": _counts_ended_pods,
    "quota-takes-sidecars-for-init-containers": _counts_pods(_sidecars_end),
    "v1beta1-hides-taints": hides(OLD, _without_taints, "ResourceSlice"),
    "template-annotations-of-any-form": overlooks(r"^spec\.metadata\.annotations", TEMPLATE),
    "allocation-conditions-of-any-form": overlooks(_RESULT + "binding"),
}
