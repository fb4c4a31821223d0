"""Options of requests in their query or body, read and judged as kube-apiserver does.

Sources: apimachinery's pkg/runtime/converter.go (how a parameter becomes a value) and
pkg/apis/meta/v1/validation and pkg/apis/meta/internalversion/validation (which values there are).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver.labelselector import parse_label_selector
from kubesim.apiserver.watches import split_field_selector
from kubesim.validation.errors import (
    FieldError,
    forbidden,
    invalid,
    new_invalid,
    not_supported,
    required,
    too_long,
)
from reference_allocator.api.quoting import go_quote

Parameters = Mapping[str, Sequence[str]]
"""Parameter of a query -> its values, in their order; there is at least one."""

_DURATION: Final = re.compile(r"0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+")
_MANAGER_MAX: Final = 128
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_POLICIES: Final = ("Foreground", "Background", "Orphan", "nil")
_DELETE_FIELDS: Final = {
    "gracePeriodSeconds": "int64",
    "orphanDependents": "bool",
    "propagationPolicy": "string",
    "dryRun": "[]string",
    "preconditions": "Preconditions",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "bool",
}
_JSON_TYPES: Final = {
    "bool": bool,
    "int64": int,
    "string": str,
    "[]string": list,
    "Preconditions": dict,
}
_JSON_NAMES: Final = {str: "string", bool: "bool", list: "array", dict: "object"}


def parse_flag(values: Sequence[str]) -> bool:
    """Return a parameter's truth value: anything but ``false`` and ``0`` is true."""
    return values[0].lower() not in ("false", "0")


def parse_integer(text: str) -> int:
    """Return a parameter that is a whole number. Raises ApiError: 400, in Go's words."""
    number = int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else None
    if number is not None and -(1 << 63) <= number < 1 << 63:
        return number
    why = "invalid syntax" if number is None else "value out of range"
    raise ApiError(400, "BadRequest", f'strconv.ParseInt: parsing "{text}": {why}')


def check_timeout(query: Parameters) -> None:
    """Check the parameter ``timeout`` of any request (``WithRequestDeadline``).

    Raises ApiError: 400, it is no duration.
    """
    text = query.get("timeout", [""])[0]
    if text and not _DURATION.fullmatch(text):
        why = f"time: invalid duration {go_quote(text)}"
        text = f"invalid timeout specified in the request URL - {why}"
        raise ApiError(400, "BadRequest", text)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a creation, an update or a patch.

    Attributes:
        manager: ``fieldManager``, empty for none.
        field_validation: ``Ignore``, ``Warn`` (which is the default) or ``Strict``.
        force: of a server-side apply.
    """

    dry_run: bool
    manager: str
    field_validation: str
    force: bool = False


def read_write_options(name: str, query: Parameters, *, applies: bool = False) -> WriteOptions:
    """Return the options of a request that writes an object.

    Args:
        name: ``CreateOptions``, ``UpdateOptions`` or ``PatchOptions``.
        applies: the request is a server-side apply.

    Raises ApiError: 422, a value that there is not.
    """
    dry_run = [*query.get("dryRun", ())]
    manager, field_validation = (
        query.get(field, [""])[0] for field in ("fieldManager", "fieldValidation")
    )
    errors: list[FieldError] = []
    if name == "PatchOptions":
        if applies and not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
        elif not applies and "force" in query:
            errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors += _check_manager(manager)
    errors += _check_dry_run(dry_run)
    if field_validation not in _VALIDATIONS:
        errors.append(not_supported("fieldValidation", field_validation, _VALIDATIONS))
    _refuse_errors(name, errors)
    force = "force" in query and parse_flag(query["force"])
    return WriteOptions(bool(dry_run), manager, field_validation or "Warn", force)


def read_delete_options(query: Parameters, body: Obj) -> Obj:
    """Return ``metav1.DeleteOptions`` of a request: of its body if it has one, else of its query.

    Raises ApiError: 400, of a wrong type or kind; 422, a value that there is not.
    """
    options = _check_delete_body(body) if body else _read_delete_query(query)
    errors: list[FieldError] = []
    policy = options.get("propagationPolicy")
    if policy is not None and "orphanDependents" in options:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, detail))
    if policy is not None and policy not in _POLICIES[:-1]:
        errors.append(not_supported("propagationPolicy", policy, _POLICIES))
    errors += _check_dry_run(options.get("dryRun") or [])
    _refuse_errors("DeleteOptions", errors)
    return options


def _read_delete_query(query: Parameters) -> Obj:
    options: Obj = {}
    for field, shape in _DELETE_FIELDS.items():
        values = query.get(field)
        if values is None or shape == "Preconditions":
            continue
        if shape == "int64":
            options[field] = parse_integer(values[0])
        elif shape == "bool":
            options[field] = parse_flag(values)
        else:
            options[field] = values[0] if shape == "string" else [*values]
    return options


def _check_delete_body(body: Obj) -> Obj:
    version = body.get("apiVersion") or "meta.k8s.io/v1"
    kind = body.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        text = (
            f'no kind "{kind}" is registered for version "{version}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
        raise ApiError(400, "BadRequest", text)
    for field, value in body.items():
        shape = _DELETE_FIELDS.get(field, "")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or not shape or type(value) is _JSON_TYPES[shape]:
            continue
        given = f"number {value}" if is_number and shape == "int64" else _name_type(value)
        go_type = f"v1.{shape}" if shape == "Preconditions" else shape
        if shape == "string":
            go_type = "v1.DeletionPropagation"
        text = (
            f"json: cannot unmarshal {given} into Go struct field DeleteOptions.{field} of type "
            f"{go_type}"
        )
        raise ApiError(400, "BadRequest", text)
    return {field: body[field] for field in _DELETE_FIELDS if body.get(field) is not None}


def _name_type(value: Any) -> str:
    return _JSON_NAMES.get(type(value), "number")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of a list, a watch or a deletion of many.

    Attributes:
        timeout: seconds that a watch may last; None: as long as the server likes.
        revision: ``resourceVersion`` as it was sent, empty for none.
        match: ``resourceVersionMatch``.
        token: ``continue``.
        initial_events: ``sendInitialEvents``; None where it is not there.
    """

    label_selector: str = ""
    field_selector: str = ""
    is_watch: bool = False
    bookmarks: bool = False
    timeout: int | None = None
    limit: int = 0
    revision: str = ""
    match: str = ""
    token: str = ""
    initial_events: bool | None = None


def read_list_options(query: Parameters) -> ListOptions:
    """Return the options of a request for many objects.

    Raises ApiError: 400, no number; 422, values that do not go together.
    """

    def text(name: str) -> str:
        return query.get(name, [""])[0]

    def flag(name: str) -> bool:
        return name in query and parse_flag(query[name])

    timeout = parse_integer(text("timeoutSeconds")) if "timeoutSeconds" in query else None
    limit = parse_integer(text("limit")) if "limit" in query else 0
    options = ListOptions(
        text("labelSelector"),
        text("fieldSelector"),
        flag("watch"),
        flag("allowWatchBookmarks"),
        timeout,
        limit,
        text("resourceVersion"),
        text("resourceVersionMatch"),
        text("continue"),
        flag("sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    # Selectors are read with the parameters, so that a malformed one comes first.
    parse_label_selector(options.label_selector)
    split_field_selector(options.field_selector)
    is_default = options.initial_events is None and not options.match
    if options.is_watch and is_default and options.revision in ("", "0"):
        # As if it had been asked for (``SetListOptionsDefaults``).
        options = replace(options, initial_events=True, match="NotOlderThan")
    check = _check_watch if options.is_watch else _check_list
    _refuse_errors("ListOptions", [*check(options)])
    return options


def _check_list(options: ListOptions) -> Iterator[FieldError]:
    """Check the options of a list (``ValidateListOptions``)."""
    match, path = options.match, "resourceVersionMatch"
    if match:
        if not options.revision:
            yield forbidden(path, f"{path} is forbidden unless resourceVersion is provided")
        if options.token:
            yield forbidden(path, f"{path} is forbidden when continue is provided")
        if match not in ("Exact", "NotOlderThan"):
            yield not_supported(path, match, ("Exact", "NotOlderThan", ""))
        if match == "Exact" and options.revision == "0":
            yield forbidden(path, f'{path} "exact" is forbidden for resourceVersion "0"')
    if options.initial_events is not None:
        yield forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _check_watch(options: ListOptions) -> Iterator[FieldError]:
    """Check the options of a watch (``validateWatchOptions``)."""
    match, path = options.match, "resourceVersionMatch"
    if options.initial_events is not None and match != "NotOlderThan":
        yield forbidden(path, f"sendInitialEvents requires setting {path} to NotOlderThan")
    if match:
        if options.initial_events is None:
            detail = f"{path} is forbidden for watch unless sendInitialEvents is provided"
            yield forbidden(path, detail)
        if match != "NotOlderThan":
            yield not_supported(path, match, ("NotOlderThan",))
        if options.token:
            yield forbidden(path, f"{path} is forbidden when continue is provided")


def _check_manager(manager: str) -> Iterator[FieldError]:
    if len(manager.encode()) > _MANAGER_MAX:
        yield too_long("fieldManager", _MANAGER_MAX)
    position = 0
    for character in manager:
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            yield invalid("fieldManager", manager, detail)
        position += len(character.encode())


def _check_dry_run(values: Sequence[str]) -> Iterator[FieldError]:
    if any(value != "All" for value in values):
        yield not_supported("dryRun", [*values], ("All",))


def _refuse_errors(name: str, errors: Sequence[FieldError]) -> None:
    if errors:
        raise new_invalid(name, "meta.k8s.io", "", errors)
