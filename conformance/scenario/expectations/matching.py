"""Partial match of an object: what a scenario says of it must be there, the rest is free.

Mappings are compared by the keys that are given. Lists are compared element by element and must be
equally long, because in the Kubernetes API their order mostly has a meaning; for "contains" there
is CEL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.text import cut


def differences(expected: Any, found: Any, path: str = "$") -> Iterator[str]:
    """Yield one line for each place where ``found`` is not as ``expected`` says."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            yield f"{path}: expected an object, found {short(found)}"
            return
        for key, value in expected.items():
            if key not in found:
                yield f"{path}.{key}: expected {short(value)}, found nothing"
            else:
                yield from differences(value, found[key], f"{path}.{key}")
    elif isinstance(expected, list):
        if not isinstance(found, list):
            yield f"{path}: expected a list, found {short(found)}"
            return
        if len(expected) != len(found):
            yield f"{path}: expected {len(expected)} elements, found {len(found)}: {short(found)}"
            return
        for index, (left, right) in enumerate(zip(expected, found, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif expected != found or isinstance(expected, bool) != isinstance(found, bool):
        yield f"{path}: expected {short(expected)}, found {short(found)}"


def short(value: Any, limit: int = 160) -> str:
    """A value as text, cut off where it is long."""
    return cut(repr(value), limit)
