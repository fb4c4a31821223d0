"""Checks of what a claim says of its requests together: constraints and derived attributes.

Sources: pkg/apis/resource/validation/validation.go, validateDeviceConstraint,
validateDeviceDerivedAttribute and isAttributeUsedByConstraint (derived attributes: KEP-6080).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kube.values import Obj
from kubesim.validation import names
from kubesim.validation.errors import (
    FieldError,
    accept_any,
    check_each,
    check_fields,
    check_unique,
    invalid,
    require,
    required,
)
from reference_allocator.api.limits import DERIVED_ATTRIBUTES_MAX, REQUESTS_MAX
from reference_allocator.gates import MINORS

if TYPE_CHECKING:
    from reference_allocator.cel import CelFeatures


@dataclass(frozen=True)
class Expressions:
    """What an API server is to validation: what a new expression may use on it, and its rules.

    ``kubernetes``: its minor, for example ``1.37``.
    """

    kubernetes: str
    gates: Mapping[str, bool]

    @cached_property
    def minor(self) -> int:
        """Return 37 for 1.37."""
        return int(self.kubernetes.partition(".")[2])

    @cached_property
    def since_1_38(self) -> bool:
        """Return whether the server is of 1.38 or later."""
        return MINORS.index(self.kubernetes) >= MINORS.index("1.38")

    @cached_property
    def with_declared_rules(self) -> bool:
        """Return whether the server's rules are declared in part, as `declared` has them."""
        return MINORS.index(self.kubernetes) >= MINORS.index("1.37")

    @cached_property
    def with_fractional_ranges(self) -> bool:
        """Return whether ranges of capacities are counted in thousandths."""
        return self.gates.get("DRAFractionalCapacityRange", False)

    def check(self, expression: str, path: str, *, derived: bool = False) -> Iterator[FieldError]:
        """Check the expression of a selector, or of a derived attribute."""
        # CEL's compiler is only needed where there are expressions.
        from reference_allocator.cel import validate_new_expression

        for problem in validate_new_expression(expression, self._features, derived=derived):
            yield FieldError(path, problem.reason, problem.message)

    def check_together(self, devices: Mapping[str, Any], path: str) -> Iterator[FieldError]:
        """Check all derived attributes of a claim, whose ``spec.devices`` is at ``path``."""
        from reference_allocator.rules.derived_cost import derived_cost_problem

        problem = derived_cost_problem(devices, self._features)
        if problem is not None:
            yield FieldError(path, problem.reason, problem.message)

    @cached_property
    def _features(self) -> CelFeatures:
        from reference_allocator.cel import CelFeatures

        return CelFeatures(
            consumable_capacity=self.gates.get("DRAConsumableCapacity", False),
            list_type_attributes=self.gates.get("DRAListTypeAttributes", False),
            stored=False,
            kubernetes=self.kubernetes,
        )


def check_constraint(
    constraint: Obj, path: str, subrequests: dict[str, set[str]]
) -> Iterator[FieldError]:
    """Check one constraint of a claim; ``subrequests``: request -> its alternatives."""
    yield from check_references(constraint.get("requests") or [], f"{path}.requests", subrequests)
    match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    if match is not None:
        yield from names.check_fully_qualified_name(match, f"{path}.matchAttribute")
    if distinct is not None:
        yield from names.check_fully_qualified_name(distinct, f"{path}.distinctAttribute")
    if match is None and distinct is None:
        # The text speaks of multiple fields although none is set; so does the API server.
        yield required(
            path,
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
            "fields are set",
        )


def request_names(requests: Sequence[Obj]) -> dict[str, set[str]]:
    """Return request -> the names of its alternatives."""
    return {
        request.get("name") or "": {
            alternative.get("name") or "" for alternative in request.get("firstAvailable") or []
        }
        for request in requests
    }


def check_references(
    references: Sequence[str], path: str, subrequests: dict[str, set[str]]
) -> Iterator[FieldError]:
    """Check references to requests, ``request`` or ``request/subrequest``."""

    def check(reference: str, inner: str) -> Iterator[FieldError]:
        request, _, alternative = reference.partition("/")
        if "/" not in alternative:
            for segment in reference.split("/"):
                yield from names.check_label(segment, inner)
            if request in subrequests and (
                "/" not in reference or alternative in subrequests[request]
            ):
                return
        yield invalid(
            inner,
            reference,
            "must be the name of a request in the claim or the name of a request and a "
            "subrequest separated by '/'",
        )

    yield from check_unique(references, REQUESTS_MAX, check, path, by=str)


def check_derived(
    derived: Sequence[Obj],
    path: str,
    request: str,
    constraints: Sequence[Obj],
    expressions: Expressions,
) -> Iterator[FieldError]:
    """Check the derived attributes of a request, or of an alternative (``request/alternative``).

    ``constraints``: of the claim.
    """

    def check(attribute: Obj, inner: str) -> Iterator[FieldError]:
        name, expression = attribute.get("name"), attribute.get("expression")
        if name and not any(_uses_attribute(item, name, request) for item in constraints):
            detail = (
                "must be referenced by at least one matchAttribute or distinctAttribute "
                "constraint targeting this request"
            )
            yield invalid(f"{inner}.name", name, detail)
        if expression:
            yield from expressions.check(expression, f"{inner}.expression", derived=True)

    # How many there may be is a declared rule alone, which does not end this one.
    yield from check_unique(derived, len(derived), check, path)
    yield from check_each(derived, DERIVED_ATTRIBUTES_MAX, _check_derived_form, path)


def _check_derived_form(attribute: Obj, path: str) -> Iterator[FieldError]:
    checks = {
        "name": require(names.check_fully_qualified_name),
        "expression": require(accept_any),
    }
    yield from check_fields(attribute, path, checks)


def list_device_requests(devices: Obj, path: str) -> Iterator[tuple[str, Obj, str]]:
    """Yield the alternatives of all requests: ``request/subrequest``, content, field path."""
    for index, request in enumerate(devices.get("requests") or []):
        inner = f"{path}.requests[{index}]"
        name = request.get("name") or ""
        if request.get("exactly") is not None:
            yield name, request["exactly"], f"{inner}.exactly"
        for number, subrequest in enumerate(request.get("firstAvailable") or []):
            full = f"{name}/{subrequest.get('name') or ''}"
            yield full, subrequest, f"{inner}.firstAvailable[{number}]"


def _uses_attribute(constraint: Any, attribute: str, request: str) -> bool:
    match = constraint.get("matchAttribute")
    named = constraint.get("distinctAttribute") if match is None else match
    targets = constraint.get("requests") or []
    concerned = not targets or request in targets or request.partition("/")[0] in targets
    return bool(named == attribute and concerned)
