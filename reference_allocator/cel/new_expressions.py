"""What the API server says of an expression that is being written.

Stored expressions are not looked at again, whatever has changed since; new and changed ones are
compiled with what the cluster's gates allow and must not be able to cost too much. Source:
``pkg/apis/resource/validation/validation.go``, ``validateCELExpression``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from reference_allocator.api.quoting import go_quote
from reference_allocator.cel.compile import MAX_LENGTH
from reference_allocator.cel.environment.declarations import CelFeatures
from reference_allocator.cel.errors import CelCompileError
from reference_allocator.cel.selector import COST_LIMIT, compile_derived, compile_selector

_INTERNAL: Final = "program instantiation failed: "


class ExpressionProblem(NamedTuple):
    """Why an expression is refused.

    Attributes:
        reason: of the cause in the API's Status: FieldValueTooLong, FieldValueInvalid,
            FieldValueForbidden or InternalError.
        message: what follows the field's path.
    """

    reason: str
    message: str


def validate_new_expression(
    expression: str, features: CelFeatures | None = None, *, derived: bool = False
) -> list[ExpressionProblem]:
    """Why the API server refuses an expression that is written; empty if it does not.

    Args:
        expression: of a device selector, or of a derived attribute.
        features: the cluster's minor and gates (``stored`` is ignored); by default everything on.
        derived: it is the expression of a derived attribute. (The limit of all derived attributes
            of a claim together is for the caller, who knows them all.)
    """
    features = replace(features or CelFeatures(), stored=False)
    if len(expression.encode(errors="surrogatepass")) > MAX_LENGTH:
        return [
            ExpressionProblem(
                "FieldValueTooLong", f"Too long: may not be more than {MAX_LENGTH} bytes"
            )
        ]
    try:
        compiled = (compile_derived if derived else compile_selector)(expression, features=features)
    except CelCompileError as error:
        text = str(error)
        if text.startswith(_INTERNAL):
            return [ExpressionProblem("InternalError", f"Internal error: {text}")]
        invalid = f"Invalid value: {go_quote(expression)}: {text}"
        return [ExpressionProblem("FieldValueInvalid", invalid)]
    if compiled.max_cost > COST_LIMIT:
        return [
            ExpressionProblem("FieldValueForbidden", "Forbidden: too complex, exceeds cost limit")
        ]
    return []
