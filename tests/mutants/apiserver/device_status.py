"""What drivers report of allocated devices (KEP-4817): taken, refused, lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.errors import ApiError
from kube.values import Obj, Request, User
from kubesim.apiserver.authorization import Authorizer
from kubesim.apiserver.fieldmanagers import FieldManagers
from kubesim.validation.errors import FieldError
from kubesim.world import World
from tests.mutants.apiserver.claim_storage import after_change, takes
from tests.mutants.apiserver.overlooked_fields import CHANGED, CLAIM, NEW, refuses, table
from tests.mutants.replacing import Defects, Mutation, instead


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


_DEVICE = r"^status\.devices\[\d+\]"


def _reports(obj: Obj) -> list[Any]:
    return (obj.get("status") or {}).get("devices") or []


def _report(what: Callable[[Any], bool]) -> Mutation:
    return refuses(lambda obj: any(what(report) for report in _reports(obj)), at=(NEW, CHANGED))


def _network(report: Obj) -> Obj:
    return report.get("networkData") or {}


def _one_driver_alone(new: Obj, _: Obj, __: Obj) -> None:
    reports = _reports(new)
    if reports:
        new["status"]["devices"] = [
            one for one in reports if one["driver"] == reports[-1]["driver"]
        ]


def _loses(field: str) -> Mutation:
    def lose(new: Obj, _: Obj, __: Obj) -> None:
        for report in _reports(new):
            report.pop(field, None)

    return after_change(CLAIM, lose, "status")


DEFECTS: Defects = {
    "first-driver-decides-on-reports": _first_driver_decides,
    "reports-of-two-pools-are-one": _one_report_for("pool"),
    "reports-of-two-shares-are-one": _one_report_for("shareID"),
    **table(
        "ResourceClaim",
        {
            "takes-reports-on-devices-of-others": (_DEVICE, "must be an allocated device"),
            "takes-reports-twice": (_DEVICE, "Duplicate"),
            "takes-9-conditions": (_DEVICE + r"\.conditions$", "must have at most"),
            "takes-conditions-twice": (_DEVICE + r"\.conditions\[", "Duplicate"),
            "takes-conditions-without-reason": (_DEVICE + r"\.conditions.*reason$", "Required"),
            "takes-any-status-of-conditions": (_DEVICE + r"\.conditions.*status$", ""),
            "takes-conditions-without-time": (_DEVICE + r".*lastTransitionTime$", ""),
            "takes-long-data": (_DEVICE + r"\.data$", "may not be more"),
            "takes-17-addresses": (_DEVICE + r".*ips$", "must have at most"),
            "takes-addresses-twice": (_DEVICE + r".*ips\[", "Duplicate"),
            "takes-addresses-of-any-form": (_DEVICE + r".*ips\[", "CIDR"),
            "takes-long-interface-names": (_DEVICE + r".*interfaceName$", ""),
            "takes-long-hardware-addresses": (_DEVICE + r".*hardwareAddress$", ""),
        },
    ),
    "refuses-8-conditions": _report(lambda one: len(one.get("conditions") or ()) >= 8),
    "refuses-16-addresses": _report(lambda one: len(_network(one).get("ips") or ()) >= 16),
    "refuses-interface-names-of-256-bytes": _report(
        lambda one: len(_network(one).get("interfaceName") or "") >= 256
    ),
    "refuses-hardware-addresses-of-128-bytes": _report(
        lambda one: len(_network(one).get("hardwareAddress") or "") >= 128
    ),
    "refuses-addresses-of-version-6": _report(
        lambda one: any(":" in ip for ip in _network(one).get("ips") or ())
    ),
    "keeps-the-report-of-one-driver": after_change(CLAIM, _one_driver_alone, "status"),
    "loses-data-of-reports": _loses("data"),
    "loses-network-data": _loses("networkData"),
    "loses-conditions-of-reports": _loses("conditions"),
    "status-changes-specs-of-claims": after_change(CLAIM, takes("spec"), "status"),
    "status-changes-labels-of-claims": after_change(CLAIM, takes("metadata", "labels"), "status"),
}
