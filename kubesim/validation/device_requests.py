"""Checks of ``spec.devices`` of a claim or claim template.

Source: pkg/apis/resource/validation/validation.go, validateDeviceClaim and what it calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

from kube.errors import Cause
from kube.values import Obj
from kubesim.rawjson import text_of
from kubesim.validation import names
from kubesim.validation.constraints import (
    Expressions,
    check_constraint,
    check_derived,
    check_references,
    request_names,
)
from kubesim.validation.declared import is_declared
from kubesim.validation.errors import (
    FieldError,
    check_each,
    check_fields,
    check_unique,
    invalid,
    not_supported,
    one_of,
    require,
    required,
    too_long,
)
from reference_allocator.api.limits import (
    CONFIGS_MAX,
    CONSTRAINTS_MAX,
    FIRST_AVAILABLE_MAX,
    OPAQUE_PARAMETERS_MAX,
    REQUESTS_MAX,
    SELECTORS_MAX,
)

_TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_WITH_EFFECT_UNTIL: Final = 34
"""The last minor whose taints all do something."""

_LOOKED_AT_BOTH_UNTIL: Final = 34
"""The last minor that looks into both parts of a request that may have one of them."""

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


def check_claim_spec(spec: Any, path: str, expressions: Expressions) -> Iterator[FieldError]:
    """Check ``spec`` of a ResourceClaim, defaults applied; ``path`` is its field path."""
    devices = (spec or {}).get("devices") or {}
    path = f"{path}.devices"
    requests = devices.get("requests") or []
    subrequests, constraints = request_names(requests), devices.get("constraints") or []
    check = partial(_check_request, constraints=constraints, expressions=expressions)
    yield from check_unique(requests, REQUESTS_MAX, check, f"{path}.requests", show=_in_go_order)
    for field, limit, checked in (
        (
            "constraints",
            CONSTRAINTS_MAX,
            partial(check_constraint, subrequests=subrequests),
        ),
        ("config", CONFIGS_MAX, partial(check_claim_config, subrequests=subrequests)),
    ):
        yield from check_each(devices.get(field) or [], limit, checked, f"{path}.{field}")
    yield from expressions.check_together(devices, path)


def _in_go_order(request: Any) -> Any:
    """Return a request with its fields in the order in which Go prints them."""
    if not isinstance(request, dict):
        return request
    order = {name: index for index, name in enumerate(_ORDER)}
    fields = sorted(request, key=lambda name: order.get(name, len(order)))
    return {name: _in_go_order(request[name]) for name in fields}


def _check_request(
    request: Obj, path: str, constraints: Sequence[Obj], expressions: Expressions
) -> Iterator[FieldError]:
    name = request.get("name") or ""
    yield from names.check_label(name, f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    check = partial(_check_device_request, constraints=constraints, expressions=expressions)

    def check_alternative(alternative: Obj, inner: str) -> Iterator[FieldError]:
        own_name = alternative.get("name") or ""
        yield from names.check_label(own_name, f"{inner}.name")
        yield from check(alternative, inner, name=f"{name}/{own_name}")

    def check_alternatives() -> Iterator[FieldError]:
        place, limit = f"{path}.firstAvailable", FIRST_AVAILABLE_MAX
        yield from check_unique(alternatives, limit, check_alternative, place, show=_in_go_order)

    def check_exactly() -> Iterator[FieldError]:
        yield from check(exactly or {}, f"{path}.exactly", name=name)

    if exactly is None and not alternatives:
        yield required(path, "exactly one of `exactly` or `firstAvailable` is required")
    elif exactly is not None and alternatives:
        if expressions.minor <= _LOOKED_AT_BOTH_UNTIL:
            yield from check_alternatives()
            yield from check_exactly()
        yield invalid(
            path,
            None,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )
        if expressions.with_declared_rules:  # which look at both
            for error in chain(check_alternatives(), check_exactly()):
                if is_declared(Cause(error.path, error.reason, error.body), "ResourceClaim"):
                    yield error
    elif alternatives:
        yield from check_alternatives()
    else:
        yield from check_exactly()


def _check_device_request(
    device_request: Obj,
    path: str,
    name: str,
    constraints: Sequence[Obj],
    expressions: Expressions,
) -> Iterator[FieldError]:
    yield from check_fields(
        device_request, path, {"deviceClassName": require(names.check_subdomain)}
    )
    yield from check_selectors(
        device_request.get("selectors") or [], f"{path}.selectors", expressions
    )
    derived = device_request.get("derivedAttributes") or []
    yield from check_derived(derived, f"{path}.derivedAttributes", name, constraints, expressions)
    mode, count = device_request.get("allocationMode"), device_request.get("count") or 0
    if mode == "All":
        if count:
            detail = "must not be specified when allocationMode is 'All'"
            yield invalid(f"{path}.count", count, detail)
    elif mode == "ExactCount":
        if count <= 0:
            yield invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield not_supported(f"{path}.allocationMode", mode or "", ("All", "ExactCount"))
    for index, tolerated in enumerate(device_request.get("tolerations") or []):
        yield from check_toleration(tolerated, f"{path}.tolerations[{index}]", expressions)


def check_selectors(
    items: Sequence[Obj], path: str, expressions: Expressions | None
) -> Iterator[FieldError]:
    """Check CEL selectors; without ``expressions`` they are stored already."""

    def check(selector: Obj, inner: str) -> Iterator[FieldError]:
        cel = selector.get("cel")
        if cel is None:
            yield required(f"{inner}.cel")
        elif expressions is not None:
            text = cel.get("expression") or ""
            yield from expressions.check(text, f"{inner}.cel.expression")

    yield from check_each(items, SELECTORS_MAX, check, path)


def list_taint_effects(server: Expressions | None) -> Sequence[str]:
    """Return the effects of a device's taint, and so of a toleration (``validDeviceTaintEffects``).

    ``server``: what the API server is; None for the newest that is known.
    """
    has_none = server is None or server.minor > _WITH_EFFECT_UNTIL
    return _TAINT_EFFECTS if has_none else _TAINT_EFFECTS[:-1]


def check_toleration(
    tolerated: Obj, path: str, server: Expressions | None = None
) -> Iterator[FieldError]:
    """Check what a request, or a device that was allocated for it, tolerates."""
    operator, value = tolerated.get("operator"), tolerated.get("value") or ""
    if tolerated.get("key"):
        yield from names.check_label_key(tolerated["key"], f"{path}.key")
    if operator == "Exists":
        if value:
            yield invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from names.check_label_value(value, f"{path}.value")
    else:
        yield from one_of("Equal", "Exists")(operator, f"{path}.operator")
    effect = tolerated.get("effect")
    if effect:
        yield from one_of(*list_taint_effects(server))(effect, f"{path}.effect")


def check_claim_config(
    config: Obj, path: str, subrequests: dict[str, set[str]]
) -> Iterator[FieldError]:
    """Check the configuration of a claim's requests; ``subrequests``: as `request_names` gives."""
    yield from check_references(config.get("requests") or [], f"{path}.requests", subrequests)
    yield from check_device_config(config, path)


def check_device_config(config: Obj, path: str) -> Iterator[FieldError]:
    """Check the driver's configuration in a claim or class: opaque parameters."""
    opaque = config.get("opaque")
    if opaque is None:
        yield required(f"{path}.opaque")
        return
    yield from names.check_driver_name(opaque.get("driver") or "", f"{path}.opaque.driver")
    parameters = opaque.get("parameters")
    if parameters is None:
        yield required(f"{path}.opaque.parameters")
    elif not isinstance(parameters, dict):
        yield invalid(f"{path}.opaque.parameters", "<value omitted>", "must be a valid JSON object")
    elif len(text_of(parameters).encode()) > OPAQUE_PARAMETERS_MAX:
        yield too_long(f"{path}.opaque.parameters", OPAQUE_PARAMETERS_MAX)
