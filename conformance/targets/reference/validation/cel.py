"""Checks of CEL expressions: what does not compile is refused before it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conformance.targets.reference.validation.errors import FieldError, invalid, too_long

_MAX_LENGTH: Final = 10 * 1024


def check_expression(expression: str, path: str) -> Iterator[FieldError]:
    """A selector's expression."""
    # CEL's compiler is only needed where there are selectors.
    from reference_allocator.cel import CelCompileError, compile_selector

    if len(expression) > _MAX_LENGTH:
        yield too_long(path, _MAX_LENGTH)
        return
    try:
        compile_selector(expression)
    except CelCompileError as error:
        yield invalid(path, expression, str(error))
