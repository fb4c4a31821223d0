"""Checks of ``spec.devices`` of a claim or claim template.

Source: pkg/apis/resource/validation/validation.go, validateDeviceClaim and what it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.validation import derived, names
from conformance.targets.reference.apiserver.validation.errors import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from conformance.targets.reference.apiserver.validation.expressions import Expressions

MAX_REQUESTS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIGS: Final = 32
_ORDER: Final = (
    "name",
    "exactly",
    "firstAvailable",
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
_MAX_SELECTORS: Final = 32
_MAX_FIRST_AVAILABLE: Final = 8
_MAX_PARAMETERS: Final = 10 * 1024


def check_claim_spec(spec: Any, path: str, expressions: Expressions) -> Iterator[FieldError]:
    """``spec`` of a ResourceClaim, defaults applied; ``path`` is its field path."""
    devices = (spec or {}).get("devices") or {}
    path = f"{path}.devices"
    known = _request_names(devices.get("requests") or [])
    yield from unique(
        devices.get("requests") or [],
        MAX_REQUESTS,
        lambda request, inner: _request(request, inner, expressions),
        lambda request: request.get("name") or "",
        f"{path}.requests",
        show=_in_go_order,
    )
    yield from derived.check(devices, path, expressions)
    yield from each(
        devices.get("constraints") or [],
        MAX_CONSTRAINTS,
        lambda constraint, inner: _constraint(constraint, inner, known),
        f"{path}.constraints",
    )
    yield from each(
        devices.get("config") or [],
        MAX_CONFIGS,
        lambda config, inner: _claim_config(config, inner, known),
        f"{path}.config",
    )
    yield from expressions.check_together(devices, path)


def each(
    items: Sequence[Any],
    limit: int,
    check: Callable[[Any, str], Iterator[FieldError]],
    path: str,
) -> Iterator[FieldError]:
    """Every item of a list that may have ``limit`` of them."""
    if len(items) > limit:
        yield too_many(path, len(items), limit)
        return
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")


def unique(
    items: Sequence[Any],
    limit: int,
    check: Callable[[Any, str], Iterator[FieldError]],
    key: Callable[[Any], str],
    path: str,
    *,
    show: Callable[[Any], Any] | None = None,
) -> Iterator[FieldError]:
    """Every item of a list with unique keys; ``show`` is what a duplicate's error prints."""
    yield from each(items, limit, check, path)
    if len(items) > limit:
        return
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = key(item)
        if name in seen:
            yield duplicate(f"{path}[{index}]", name if show is None else show(item))
        seen.add(name)


def _in_go_order(request: Any) -> Any:
    """A request with its fields in the order in which Go prints them."""
    if not isinstance(request, dict):
        return request
    order = {name: index for index, name in enumerate(_ORDER)}
    fields = sorted(request, key=lambda name: order.get(name, len(order)))
    return {name: _in_go_order(request[name]) for name in fields}


def _request(request: Obj, path: str, expressions: Expressions) -> Iterator[FieldError]:
    yield from names.label(request.get("name") or "", f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        yield required(path, "exactly one of `exactly` or `firstAvailable` is required")
    elif exactly is not None and alternatives:
        yield invalid(
            path,
            None,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )
    elif alternatives:
        yield from unique(
            alternatives,
            _MAX_FIRST_AVAILABLE,
            lambda wanted, inner: _sub_request(wanted, inner, expressions),
            lambda alternative: alternative.get("name") or "",
            f"{path}.firstAvailable",
            show=_in_go_order,
        )
    else:
        yield from _wanted(exactly or {}, f"{path}.exactly", expressions)


def _sub_request(request: Obj, path: str, expressions: Expressions) -> Iterator[FieldError]:
    yield from names.label(request.get("name") or "", f"{path}.name")
    yield from _wanted(request, path, expressions)


def _wanted(wanted: Obj, path: str, expressions: Expressions) -> Iterator[FieldError]:
    class_name = wanted.get("deviceClassName") or ""
    if not class_name:
        yield required(f"{path}.deviceClassName")
    else:
        yield from names.subdomain(class_name, f"{path}.deviceClassName")
    yield from selectors(wanted.get("selectors") or [], f"{path}.selectors", expressions)
    mode, count = wanted.get("allocationMode"), wanted.get("count") or 0
    if mode == "All":
        if count:
            detail = "must not be specified when allocationMode is 'All'"
            yield invalid(f"{path}.count", count, detail)
    elif mode == "ExactCount":
        if count <= 0:
            yield invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield not_supported(f"{path}.allocationMode", mode or "", ("All", "ExactCount"))
    for index, toleration in enumerate(wanted.get("tolerations") or []):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")


def selectors(
    items: Sequence[Obj], path: str, expressions: Expressions | None
) -> Iterator[FieldError]:
    """CEL selectors of a request or a class; without ``expressions`` these are stored already."""

    def check(selector: Obj, inner: str) -> Iterator[FieldError]:
        cel = selector.get("cel")
        if cel is None:
            yield required(f"{inner}.cel")
        elif expressions is not None:
            text = cel.get("expression") or ""
            yield from expressions.check(text, f"{inner}.cel.expression")

    yield from each(items, _MAX_SELECTORS, check, path)


def _toleration(toleration: Obj, path: str) -> Iterator[FieldError]:
    operator, value = toleration.get("operator"), toleration.get("value") or ""
    if operator == "Exists":
        if value:
            yield invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        for problem in names.label_value_problems(value):
            yield invalid(f"{path}.value", value, problem)
    elif not operator:
        yield required(f"{path}.operator")
    else:
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    effect = toleration.get("effect")
    if effect and effect not in {"NoSchedule", "NoExecute"}:
        yield not_supported(f"{path}.effect", effect, ("NoExecute", "NoSchedule"))


def _constraint(constraint: Obj, path: str, known: dict[str, set[str]]) -> Iterator[FieldError]:
    yield from _request_references(constraint.get("requests") or [], f"{path}.requests", known)
    match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    if match is not None:
        yield from names.fully_qualified(match, f"{path}.matchAttribute")
    elif distinct is not None:
        yield from names.fully_qualified(distinct, f"{path}.distinctAttribute")
    else:
        # The text speaks of multiple fields although none is set; so does the API server.
        yield required(
            path,
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
            "fields are set",
        )


def _claim_config(config: Obj, path: str, known: dict[str, set[str]]) -> Iterator[FieldError]:
    yield from _request_references(config.get("requests") or [], f"{path}.requests", known)
    yield from device_config(config, path)


def device_config(config: Obj, path: str) -> Iterator[FieldError]:
    """The driver's configuration in a claim or class: opaque parameters."""
    opaque = config.get("opaque")
    if opaque is None:
        yield required(f"{path}.opaque")
        return
    yield from names.driver(opaque.get("driver") or "", f"{path}.opaque.driver")
    parameters = opaque.get("parameters")
    if parameters is None:
        yield required(f"{path}.opaque.parameters")
    elif not isinstance(parameters, dict):
        yield invalid(f"{path}.opaque.parameters", "<value omitted>", "must be a valid JSON object")
    elif len(str(parameters)) > _MAX_PARAMETERS:
        yield too_long(f"{path}.opaque.parameters", _MAX_PARAMETERS)


def _request_names(requests: Sequence[Obj]) -> dict[str, set[str]]:
    return {
        request.get("name") or "": {
            alternative.get("name") or "" for alternative in request.get("firstAvailable") or []
        }
        for request in requests
    }


def _request_references(
    references: Sequence[str], path: str, known: dict[str, set[str]]
) -> Iterator[FieldError]:
    def check(reference: str, inner: str) -> Iterator[FieldError]:
        request, _, alternative = reference.partition("/")
        if "/" not in alternative:
            for segment in reference.split("/"):
                yield from names.label(segment, inner)
            if request in known and ("/" not in reference or alternative in known[request]):
                return
        yield invalid(
            inner,
            reference,
            "must be the name of a request in the claim or the name of a request and a "
            "subrequest separated by '/'",
        )

    yield from unique(references, MAX_REQUESTS, check, str, path)
