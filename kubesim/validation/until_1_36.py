"""What the minors before 1.37 say of the same mistakes, and what they do not look into.

The checks here are those of 1.37. Sources: the differences of pkg/apis/resource/validation/
validation.go between v1.36.3 and v1.37.1, and of pkg/api/validation/objectmeta.go in
k8s.io/apimachinery between v0.36.3 and v0.37.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from kube.values import Obj
from kubesim.goforms import show_internal
from kubesim.resources import list_lacking_fields
from kubesim.validation import names
from kubesim.validation.conditions import CONDITION_STATUSES
from kubesim.validation.constraints import Expressions
from kubesim.validation.device import ONE_VALUE, shorten_key
from kubesim.validation.errors import (
    FieldError,
    duplicate,
    invalid,
    list_in_full,
    not_supported,
    required,
)

_OWNER: Final = re.compile(r"metadata\.ownerReferences\[(\d+)\]\.(\w+)")
_ATTRIBUTE: Final = re.compile(r"spec\.devices\[(\d+)\]\.attributes\[([^]]*)\]")
_REQUEST: Final = re.compile(r".*\.(requests|firstAvailable)\[\d+\](\.name)?")
_REPORT: Final = re.compile(r"status\.devices\[(\d+)\]")
_CONDITION: Final = re.compile(r".*\.conditions\[\d+\]")
_STATUS: Final = re.compile(r".*\.conditions\[\d+\]\.status")
_CLAIM_NAME: Final = re.compile(r"status\.resourceClaimStatuses\[\d+\]\.resourceClaimName")
_CLAIM_NAME_UNTIL: Final = 35
"""The last minor that calls the name of a pod's claim by the name of its entry."""
_CONSTRAINT: Final = re.compile(
    r"spec\.(?:spec\.)?devices\.constraints\[(\d+)\](\.distinctAttribute)?"
)
_ATTRIBUTE_TYPE: Final = "resource/v1.DeviceAttribute"
_IMMUTABLE: Final = "field is immutable"
_SPECS: Final = {
    "ResourceClaim": "resource/v1.ResourceClaimSpec",
    "ResourceClaimTemplate": "resource/v1.ResourceClaimTemplateSpec",
}
_NOT_ALLOCATED: Final = "must be an allocated device in the claim"
_DUPLICATE: Final = "FieldValueDuplicate"
_UUID_LENGTHS: Final = (32, 36, 38, 45)
_BOUNDS: Final = {"default is less than min": "min", "default is more than max": "max"}


def reword(errors: Iterable[FieldError], obj: Obj, server: Expressions) -> Iterator[FieldError]:
    """Return errors as a minor before 1.37 has them.

    Args:
        obj: the object that is checked, in its stored version.
        server: which minor, and its gates.
    """
    is_extended_name_told = False
    if server.minor <= 34:
        errors = _as_in_1_34([*list_in_full(errors)])
    for error in errors:
        if error.path == "spec.extendedResourceName":
            if not is_extended_name_told:
                name = obj["spec"]["extendedResourceName"]
                yield invalid(error.path, name, "must be a valid extended resource name")
            is_extended_name_told = True
        else:
            yield from _reword(error, obj, server)


def _is_of_no_name(error: FieldError) -> bool:
    is_qualified = error.path.endswith((".matchAttribute", ".distinctAttribute"))
    return is_qualified and error.body.startswith('Invalid value: "": a valid C identifier')


def _find_key_field(path: str) -> str:
    """Return the field that 1.34 names of items of a list that are the same."""
    for pattern, field in _KEY_FIELDS.items():
        if re.fullmatch(pattern, path):
            return field
    return ""


_KEY_FIELDS: Final = {
    r".*\.devices\.requests\[\d+\]": ".name",
    r".*\.firstAvailable\[\d+\]": ".name",
    r"spec\.(devices|sharedCounters)\[\d+\]": ".name",
    r"status\.reservedFor\[\d+\]": ".uid",
}


def _as_in_1_34(errors: list[FieldError]) -> Iterator[FieldError]:
    """Yield errors as 1.34 has them: lengths in characters, an empty driver's name looked into."""
    nameless = {error.path for error in errors if _is_of_no_name(error)}
    for error in errors:
        if error.path in nameless:
            if _is_of_no_name(error):
                yield required(error.path, "name required")
            continue
        body = re.sub(r"(must be no more than \d+) bytes", r"\1 characters", error.body)
        qualified = "a fully qualified name must be a domain and a name separated by a slash"
        body = body.replace(qualified, "must include a domain")
        body = body.replace("a valid label key must", "a qualified name must")
        if error.path.endswith(".effect"):
            body = body.replace(', "None"', "")
        place = _find_key_field(error.path) if error.reason == _DUPLICATE else ""
        yield replace(error, path=f"{error.path}{place}", body=body)
        if error.path.endswith(".driver") and error.body == "Required value":
            yield from names.check_subdomain("", error.path)


def _reword(error: FieldError, obj: Obj, server: Expressions) -> Iterator[FieldError]:
    path, body = error.path, error.body
    lacking = list_lacking_fields(server.kubernetes)
    if path.startswith("metadata."):
        yield from _reword_metadata(error, obj, server)
    elif path == "spec" and body.endswith(_IMMUTABLE) and obj["kind"] in _SPECS:
        shown = show_internal(_SPECS[obj["kind"]], obj.get("spec") or {}, lacking)
        yield invalid(path, shown, _IMMUTABLE)
    elif (match := _ATTRIBUTE.fullmatch(path)) and "must specify" in body:
        attribute = obj["spec"]["devices"][int(match[1])]["attributes"][match[2]]
        has_many = "exactly one of" in body
        path = f"spec.devices[{match[1]}].attributes[{shorten_key(match[2])}]"
        if has_many:
            yield invalid(path, show_internal(_ATTRIBUTE_TYPE, attribute, lacking), ONE_VALUE)
        else:
            yield invalid(path, "", ONE_VALUE) if server.minor > 34 else required(path, ONE_VALUE)
    elif _REQUEST.fullmatch(path) and error.reason == _DUPLICATE and "{" in body:
        yield duplicate(path, json.loads(body.partition(": ")[2]).get("name", ""))
    elif (match := _REPORT.fullmatch(path)) and error.reason == _DUPLICATE:
        report = obj["status"]["devices"][int(match[1])]
        fields = ("driver", "pool", "device", "shareID")
        yield duplicate(path, {f[:1].upper() + f[1:]: report.get(f) or "" for f in fields})
    elif (
        path.startswith("status.devices[") and server.minor <= 34 and body.endswith(_NOT_ALLOCATED)
    ):
        shown = {name: {} for name in ("Driver", "Pool", "Device", "ShareID")}  # unique.Handle
        yield invalid(path, shown, _NOT_ALLOCATED)
    elif path.endswith(".type") and body == "Required value: is required":
        yield from names.check_label_key("", path)
    elif _STATUS.fullmatch(path) and body == "Required value":
        yield not_supported(path, "", CONDITION_STATUSES)
    elif _CLAIM_NAME.fullmatch(path) and server.minor <= _CLAIM_NAME_UNTIL:
        yield replace(error, path=path.replace(".resourceClaimName", ".name"))
    elif _CONDITION.fullmatch(path) and error.reason == _DUPLICATE:
        yield replace(error, path=f"{path}.type")
    elif path.endswith(".counters") and error.reason == "FieldValueInvalid" and server.minor <= 35:
        yield replace(error, path=f"{path}[{_read_shown_value(error)}]")
    elif path.endswith(".shareID") and error.reason == "FieldValueInvalid":
        yield _reword_share(error)
    elif ".validRange." in path:
        yield from _reword_range(error)
    elif match := _CONSTRAINT.fullmatch(path):
        yield from _reword_constraint(error, obj, server, int(match[1]))
    else:
        yield error


def _reword_metadata(error: FieldError, obj: Obj, server: Expressions) -> Iterator[FieldError]:
    match = _OWNER.fullmatch(error.path)
    if match is not None:  # errors of all owners stand at one place
        value = obj["metadata"]["ownerReferences"][int(match[1])].get(match[2]) or ""
        what = "version must" if match[2] == "apiVersion" else "must"
        yield invalid(f"metadata.ownerReferences.{match[2]}", value, f"{what} not be empty")
    elif error.path == "metadata.name" and obj["kind"] == "DeviceClass" and server.minor > 34:
        yield replace(error, body=error.body.replace("253 characters", "253 bytes"))
    else:
        yield error


def _reword_share(error: FieldError) -> FieldError:
    """Return the error of a share's id, which a library reads first (google/uuid)."""
    value = _read_shown_value(error)
    if len(value) not in _UUID_LENGTHS:
        return invalid(
            error.path, value, f"error validating uid: invalid UUID length: {len(value)}"
        )
    detail = (
        "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with "
        "lowercase hexadecimal characters"
    )
    return invalid(error.path, value, detail)


def _read_shown_value(error: FieldError) -> str:
    """Return the text that an error says is wrong."""
    text, _ = json.JSONDecoder().raw_decode(error.body.partition(": ")[2])
    return str(text)


def _reword_range(error: FieldError) -> Iterator[FieldError]:
    where, _, field = error.path.rpartition(".")
    for text, bound in _BOUNDS.items():
        if field == "default" and f": {text}" in error.body:
            yield replace(error, path=f"{where}.{bound}")
            return
    yield error


def _reword_constraint(
    error: FieldError, obj: Obj, server: Expressions, index: int
) -> Iterator[FieldError]:
    """Yield the error of a constraint: its distinctAttribute counts if there is no other."""
    spec: Any = obj["spec"]["spec"] if obj["kind"] == "ResourceClaimTemplate" else obj["spec"]
    constraint = spec["devices"]["constraints"][index]
    if error.path.endswith(".distinctAttribute"):
        yield from [] if constraint.get("matchAttribute") is not None else [error]
    elif error.reason == "FieldValueRequired" and not server.gates.get("DRAConsumableCapacity"):
        yield required(f"{error.path}.matchAttribute")
    else:
        yield error
