"""Checks of the allocation that somebody writes into the status of a claim.

Sources: validateAllocationResult in pkg/apis/resource/validation/validation.go, with the sizes and
the form of ``shareID`` that k8s.io/api/resource/v1 declares, and AuthorizedForAdminStatus in
pkg/registry/resource/utils.go. What binding conditions must be like is not checked.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.targets.reference.apiserver.validation import names
from conformance.targets.reference.apiserver.validation.constraints import (
    check_references,
    request_names,
)
from conformance.targets.reference.apiserver.validation.device_requests import (
    device_config,
    toleration,
)
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
)
from conformance.targets.reference.apiserver.validation.nodes import check_node_selector
from conformance.targets.seam.values import Obj
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX, CONFIGS_MAX

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_PATH: Final = "status.allocation"
_SOURCES: Final = ("FromClaim", "FromClass")


def admin_refusal(path: str) -> FieldError:
    """Admin access in a namespace that is not labeled for it."""
    return forbidden(
        path,
        f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing"
        " namespace",
    )


def check_admin_status(new: Obj, old: Obj, labels: Mapping[str, str]) -> Iterator[FieldError]:
    """Admin access that a claim's status did not have; ``labels``: those of its namespace."""
    granted = [item.get("adminAccess") for item in _results(old)]
    if any(granted) or labels.get(ADMIN_LABEL) == "true":
        return
    wanted = [item.get("adminAccess") for item in _results(new)]
    if any(wanted):
        index = wanted.index(True)
        yield admin_refusal(f"{_PATH}.devices.results[{index}].adminAccess")


def check_allocation(claim: Obj) -> Iterator[FieldError]:
    """The allocation of a claim that had none."""
    allocation = claim["status"]["allocation"]
    devices = allocation.get("devices") or {}
    known = request_names((claim["spec"].get("devices") or {}).get("requests") or [])
    yield from each(
        devices.get("results") or [],
        ALLOCATION_RESULTS_MAX,
        lambda result, path: _result(result, path, known),
        f"{_PATH}.devices.results",
    )
    yield from each(
        devices.get("config") or [],
        2 * CONFIGS_MAX,
        lambda config, path: _config(config, path, known),
        f"{_PATH}.devices.config",
    )
    selector = allocation.get("nodeSelector")
    if selector is not None:
        yield from check_node_selector(selector, f"{_PATH}.nodeSelector")


def _results(claim: Obj) -> list[Any]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _result(result: Obj, path: str, known: dict[str, set[str]]) -> Iterator[FieldError]:
    for error in check_references([result.get("request") or ""], "", known):
        yield FieldError(f"{path}.request", error.reason, error.body)
    yield from names.driver(result.get("driver") or "", f"{path}.driver")
    yield from names.pool(result.get("pool") or "", f"{path}.pool")
    yield from names.label(result.get("device") or "", f"{path}.device")
    for index, tolerated in enumerate(result.get("tolerations") or []):
        yield from toleration(tolerated, f"{path}.tolerations[{index}]")
    share = result.get("shareID")
    if share is not None and not _is_uuid(share):
        detail = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with"
            " lowercase hexadecimal characters"
        )
        yield invalid(f"{path}.shareID", share, detail)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _config(config: Obj, path: str, known: dict[str, set[str]]) -> Iterator[FieldError]:
    if not config.get("source"):
        yield required(f"{path}.source")
    elif config["source"] not in _SOURCES:
        yield not_supported(f"{path}.source", config["source"], _SOURCES)
    yield from check_references(config.get("requests") or [], f"{path}.requests", known)
    yield from device_config(config, path)
