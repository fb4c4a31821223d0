"""A second opinion on a selector: cel-python evaluates it, with no code of this package.

cel-python checks no types and knows neither semantic versions, quantities, optional values nor
Kubernetes' functions. Where an expression comes to one of these, or ends in an error, there is no
opinion.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from reference_allocator.cel.device import CelDevice


class _Unknown:
    """A value that cel-python has no type for; comparing it is an error."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("cel-python has no such type")


def second_opinion(expression: str, device: CelDevice) -> bool | None:
    """Return whether cel-python selects the device, or None where it cannot say."""
    import celpy  # Takes a tenth of a second, and few ask.

    limit = sys.getrecursionlimit()  # An environment of cel-python raises it for the whole process.
    try:
        environment = celpy.Environment()
        program = environment.program(environment.compile(expression))
        selected = program.evaluate({"device": _convert(device.as_map)})
    except (
        *(celpy.CELParseError, celpy.CELEvalError, TypeError, ValueError),
        *(ArithmeticError, LookupError, RecursionError),
    ):
        return None
    finally:
        sys.setrecursionlimit(limit)
    return bool(selected) if isinstance(selected, celpy.celtypes.BoolType) else None


@cache
def _domains() -> Any:
    """Return the type of attributes and capacity: a domain that is not there is an empty map."""
    from celpy import celtypes

    class Domains(celtypes.MapType):  # type: ignore[misc]
        def __missing__(self, _: object) -> Any:
            return celtypes.MapType()

    return Domains


def _convert(value: Any) -> Any:
    from celpy import celtypes

    simple = {bool: celtypes.BoolType, int: celtypes.IntType, str: celtypes.StringType}
    if type(value) in simple:
        return simple[type(value)](value)
    if isinstance(value, list):
        return celtypes.ListType([_convert(item) for item in value])
    if isinstance(value, dict):
        kind = _domains() if hasattr(value, "__missing__") else celtypes.MapType
        return kind({_convert(key): _convert(item) for key, item in value.items()})
    return _Unknown()
