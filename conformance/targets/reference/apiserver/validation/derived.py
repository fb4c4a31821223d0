"""Checks of derived attributes (KEP-6080): each is used by a constraint, compiles, and is cheap.

Source: pkg/apis/resource/validation/validation.go, validateDeviceDerivedAttribute and
isAttributeUsedByConstraint. Kubernetes reports these errors between a request's others; here they
come after those of all requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.validation.errors import FieldError, invalid
from conformance.targets.reference.apiserver.validation.expressions import Expressions


def check(devices: Obj, path: str, expressions: Expressions) -> Iterator[FieldError]:
    """The derived attributes in ``spec.devices`` of a claim; ``path`` is its field path."""
    constraints = devices.get("constraints") or []
    for name, wanted, inner in _wanted(devices, path):
        for index, derived in enumerate(wanted.get("derivedAttributes") or []):
            place = f"{inner}.derivedAttributes[{index}]"
            attribute = derived.get("name")
            if attribute and not any(_uses(item, attribute, name) for item in constraints):
                detail = (
                    "must be referenced by at least one matchAttribute or distinctAttribute "
                    "constraint targeting this request"
                )
                yield invalid(f"{place}.name", attribute, detail)
            if derived.get("expression"):
                where = f"{place}.expression"
                yield from expressions.check(derived["expression"], where, derived=True)


def _wanted(devices: Obj, path: str) -> Iterator[tuple[str, Obj, str]]:
    """What is asked for: name (``request/subrequest`` for alternatives), the wish, its path."""
    for index, request in enumerate(devices.get("requests") or []):
        inner = f"{path}.requests[{index}]"
        name = request.get("name") or ""
        if request.get("exactly") is not None:
            yield name, request["exactly"], f"{inner}.exactly"
        for number, wanted in enumerate(request.get("firstAvailable") or []):
            full = f"{name}/{wanted.get('name') or ''}"
            yield full, wanted, f"{inner}.firstAvailable[{number}]"


def _uses(constraint: Any, attribute: str, request: str) -> bool:
    match = constraint.get("matchAttribute")
    named = constraint.get("distinctAttribute") if match is None else match
    targets = constraint.get("requests") or []
    concerned = not targets or request in targets or request.partition("/")[0] in targets
    return bool(named == attribute and concerned)
