"""CEL as Kubernetes evaluates it for device selectors, without Go.

Usage::

    selector = compile_selector('device.attributes["gpu.example.com"].model == "a100"')
    selector.matches(CelDevice.from_api("gpu.example.com", device))
"""

from reference_allocator.cel.declarations import CelFeatures
from reference_allocator.cel.device import CelDevice
from reference_allocator.cel.errors import CelCompileError, CelRuntimeError
from reference_allocator.cel.program import (
    COST_LIMIT,
    DYN,
    DerivedAttribute,
    Program,
    Selector,
    compile_derived,
    compile_expression,
    compile_selector,
)

__all__ = [
    "COST_LIMIT",
    "DYN",
    "CelCompileError",
    "CelDevice",
    "CelFeatures",
    "CelRuntimeError",
    "DerivedAttribute",
    "Program",
    "Selector",
    "compile_derived",
    "compile_expression",
    "compile_selector",
]
