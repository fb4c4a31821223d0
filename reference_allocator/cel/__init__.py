"""CEL as Kubernetes evaluates it for device selectors, without Go.

Usage::

    selector = compile_selector('device.attributes["gpu.example.com"].model == "a100"')
    selector.matches(CelDevice.from_api("gpu.example.com", device))
"""

from reference_allocator.cel.compile import (
    COST_LIMIT,
    DYN,
    DerivedAttribute,
    ExpressionProblem,
    Program,
    Selector,
    compile_derived,
    compile_expression,
    compile_selector,
    validate_new_expression,
)
from reference_allocator.cel.device import CelDevice
from reference_allocator.cel.environment.declarations import CelFeatures
from reference_allocator.cel.errors import (
    CelCompileError,
    CelCostError,
    CelInterruptedError,
    CelRuntimeError,
    CelUnsupportedError,
)

__all__ = [
    "COST_LIMIT",
    "DYN",
    "CelCompileError",
    "CelCostError",
    "CelDevice",
    "CelFeatures",
    "CelInterruptedError",
    "CelRuntimeError",
    "CelUnsupportedError",
    "DerivedAttribute",
    "ExpressionProblem",
    "Program",
    "Selector",
    "compile_derived",
    "compile_expression",
    "compile_selector",
    "validate_new_expression",
]
