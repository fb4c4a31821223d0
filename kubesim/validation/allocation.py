"""Checks of what somebody writes into a claim's status: users, reports, and the allocation.

Sources: validateResourceClaimStatusUpdate and what it calls in
pkg/apis/resource/validation/validation.go, with the sizes and the form of ``shareID`` that
k8s.io/api/resource/v1 declares, and AuthorizedForAdminStatus in pkg/registry/resource/utils.go.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from kube.slices import results_of
from kube.values import Obj
from kubesim.rawjson import text_of
from kubesim.validation import names
from kubesim.validation.conditions import check_conditions
from kubesim.validation.constraints import check_references, request_names
from kubesim.validation.device import check_binding
from kubesim.validation.device_requests import check_claim_config, check_toleration
from kubesim.validation.errors import (
    FieldError,
    accept_any,
    check_each,
    check_fields,
    check_unique,
    forbidden,
    invalid,
    one_of,
    require,
    too_long,
)
from kubesim.validation.nodes import check_node_selector
from kubesim.validation.resource_slice import check_skipped
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX, CONFIGS_MAX, RESERVED_FOR_MAX

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_PATH: Final = "status.allocation"
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_PROBLEM: Final = "must be a lowercase UUID in 8-4-4-4-12 format"
_DATA_MAX: Final = 10 * 1024
_IPS_MAX: Final = 16
_NETWORK_MAX: Final = {"interfaceName": 256, "hardwareAddress": 128}
_NO_LIMIT: Final = 1 << 31


def admin_refusal(path: str) -> FieldError:
    """Return the error of admin access in a namespace that is not labeled for it."""
    return forbidden(
        path,
        f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing"
        " namespace",
    )


def check_admin_status(new: Obj, old: Obj, labels: Mapping[str, str]) -> Iterator[FieldError]:
    """Check admin access that a claim's status did not have; ``labels``: of its namespace."""
    granted, requested = (
        [item.get("adminAccess") for item in results_of(claim)] for claim in (old, new)
    )
    if any(requested) and not any(granted) and labels.get(ADMIN_LABEL) != "true":
        yield admin_refusal(f"{_PATH}.devices.results[{requested.index(True)}].adminAccess")


def check_status(new: Obj, old: Obj) -> Iterator[FieldError]:
    """Check a claim's new status: reservations need an allocation, which never changes."""
    status, old_status = new.get("status") or {}, old.get("status") or {}
    users = status.get("reservedFor") or []
    yield from check_unique(users, RESERVED_FOR_MAX, _check_user, "status.reservedFor", by="uid")
    allocated = {_device_key(result) for result in results_of(new)}
    check, reports = partial(_check_report, allocated=allocated), status.get("devices") or []
    yield from check_unique(reports, _NO_LIMIT, check, "status.devices", by=_device_key)
    if users and status.get("allocation") is None:
        detail = "may not be specified when `allocated` is not set"
        yield forbidden("status.reservedFor", detail)
    elif "deletionTimestamp" in new["metadata"]:
        earlier_users = old_status.get("reservedFor") or []
        if any(user not in earlier_users for user in users):
            yield forbidden(
                "status.reservedFor",
                "new entries may not be added while `deallocationRequested` or "
                "`deletionTimestamp` are set",
            )
    allocation, old_allocation = status.get("allocation"), old_status.get("allocation")
    if allocation is not None and old_allocation is None:
        yield from _check_allocation(new, allocation)
    elif allocation is not None and allocation != old_allocation:
        yield invalid(_PATH, None, "field cannot be modified once set")


def _check_user(user: Obj, path: str) -> Iterator[FieldError]:
    yield from check_fields(
        user, path, dict.fromkeys(("resource", "name", "uid"), require(accept_any))
    )


def _check_allocation(claim: Obj, allocation: Obj) -> Iterator[FieldError]:
    """Check the allocation of a claim that had none."""
    devices = allocation.get("devices") or {}
    subrequests = request_names((claim["spec"].get("devices") or {}).get("requests") or [])
    for field, limit, check in (
        (
            "results",
            ALLOCATION_RESULTS_MAX,
            partial(_check_result, subrequests=subrequests),
        ),
        (
            "config",
            2 * CONFIGS_MAX,
            partial(_check_config, subrequests=subrequests),
        ),
    ):
        yield from check_each(devices.get(field) or [], limit, check, f"{_PATH}.devices.{field}")
    selector = allocation.get("nodeSelector")
    if selector is not None:
        yield from check_node_selector(selector, f"{_PATH}.nodeSelector")


def _check_result(result: Obj, path: str, subrequests: dict[str, set[str]]) -> Iterator[FieldError]:
    for error in check_references([result.get("request") or ""], "", subrequests):
        yield FieldError(f"{path}.request", error.reason, error.body)
    yield from check_fields(result, path, names.DEVICE)
    yield from check_binding(result, path)
    for index, tolerated in enumerate(result.get("tolerations") or []):
        yield from check_toleration(tolerated, f"{path}.tolerations[{index}]")
    share = result.get("shareID")
    if share is not None and not _UUID.fullmatch(share):
        yield invalid(f"{path}.shareID", share, _UUID_PROBLEM)
    yield from check_skipped(result.get("skipNodeOperations") or [], f"{path}.skipNodeOperations")


def _check_config(config: Obj, path: str, subrequests: dict[str, set[str]]) -> Iterator[FieldError]:
    yield from check_fields(config, path, {"source": one_of("FromClaim", "FromClass")})
    yield from check_claim_config(config, path, subrequests)


def _check_report(device: Obj, path: str, allocated: set[str]) -> Iterator[FieldError]:
    yield from check_fields(device, path, names.DEVICE)
    if device.get("shareID") is not None and not _UUID.fullmatch(device["shareID"]):
        yield invalid(f"{path}.shareID", device["shareID"], _UUID_PROBLEM)
    if _device_key(device) not in allocated:
        names_of_device = ("driver", "pool", "device", "shareID")
        shown = {name[:1].upper() + name[1:]: device.get(name) or "" for name in names_of_device}
        yield invalid(path, shown, "must be an allocated device in the claim")
    yield from check_conditions(device.get("conditions") or [], f"{path}.conditions")
    data, network = device.get("data"), device.get("networkData") or {}
    if data is not None and len(text_of(data).encode()) > _DATA_MAX:
        yield too_long(f"{path}.data", _DATA_MAX)
    elif data is not None and not isinstance(data, dict):
        yield invalid(f"{path}.data", "<value omitted>", "must be a valid JSON object")
    path = f"{path}.networkData"
    for field, limit in _NETWORK_MAX.items():
        if len((network.get(field) or "").encode()) > limit:
            yield too_long(f"{path}.{field}", limit)
    yield from check_unique(
        network.get("ips") or [], _IPS_MAX, _check_address, f"{path}.ips", by=str
    )


def _device_key(device: Obj) -> str:
    segments = (device.get(field) or "" for field in ("driver", "pool", "device", "shareID"))
    return "/".join(segments).rstrip("/")


def _check_address(address: str, path: str) -> Iterator[FieldError]:
    try:
        is_canonical = "/" in address and str(ipaddress.ip_interface(address)) == address
    except ValueError:
        is_canonical = False
    if not is_canonical:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid(path, address, detail)
