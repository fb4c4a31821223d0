"""The API server's limit on a claim's derived attributes as a whole: they share one budget.

Each expression has a limit of its own (`reference_allocator.cel.validate_new_expression`); as the
scheduler may evaluate all of them for each device, their estimates are added up as well. Source:
``pkg/apis/resource/validation/validation.go``, ``validateDeviceClaim`` and
``validateCELExpression``; KEP-6080.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from reference_allocator.cel import CelCompileError, CelFeatures, ExpressionProblem, compile_derived
from reference_allocator.environment import derived_environment

DERIVED_COST_LIMIT: Final = 1_000_000
"""The most that all derived attributes of a claim may cost together.

Source: v1 DeviceClaimDerivedAttributeCELMaxCost.
"""

_UINT64: Final = 2**64


def derived_cost(devices: Mapping[str, Any], features: CelFeatures) -> int:
    """Add up what evaluating each derived attribute of a claim once can cost at most.

    Args:
        devices: `spec.devices` of a v1 ResourceClaim; all requests and alternatives count.
        features: the API server's minor and gates (``stored`` is ignored).
    """
    expressions = [*_list_expressions(devices)]
    if not expressions:
        return 0
    environment = derived_environment(replace(features, stored=False))
    total = 0
    for expression in expressions:
        try:
            total += compile_derived(expression, features=environment).max_cost
        except CelCompileError:
            continue  # That is an error of its own.
    return total % _UINT64  # As Go adds; an estimate that large is refused by itself.


def derived_cost_problem(
    devices: Mapping[str, Any], features: CelFeatures
) -> ExpressionProblem | None:
    """Return why the API server refuses a claim for its derived attributes together, or None.

    Args:
        devices: as `derived_cost` takes them; the problem is one of this field.
        features: the API server's minor and gates.
    """
    if derived_cost(devices, features) <= DERIVED_COST_LIMIT:
        return None
    return ExpressionProblem(
        "FieldValueForbidden",
        "Forbidden: too complex, total cost of derived attribute CEL expressions in the claim"
        " exceeds cost limit",
    )


def _list_expressions(devices: Mapping[str, Any]) -> Iterator[str]:
    for request in devices.get("requests") or ():
        exactly = request.get("exactly")
        for spec in request.get("firstAvailable") or ((exactly,) if exactly else ()):
            for derived in spec.get("derivedAttributes") or ():
                if derived.get("expression"):
                    yield derived["expression"]
