"""Whether a Kubernetes object has only fields that exist, each of the right type.

Whether something is too large is a question of its own (`reference_allocator.api.limits`).
"""

from __future__ import annotations

from typing import Final

from reference_allocator.api.reading import InputError, describe
from reference_allocator.api.schema import LIST, MAP, UnknownField, mistakes, types

_EXPECTED: Final = {
    "bool": "true or false",
    "int32": "an integer",
    "int64": "an integer",
    "quantity": "a quantity",
    "string": "a string",
    "time": "a time",
}


def check_form(value: object, shape: str) -> None:
    """Checks a value against a shape of the table (`reference_allocator.api.schema`).

    Args:
        value: decoded JSON.
        shape: for example ``resource/v1.ResourceSlice``.

    Raises:
        InputError: an unknown field, a wrong type, or something that is nested too deeply;
            names the path.
    """
    if value is None:
        raise InputError(f"expected {_expected(shape)}, got null")
    for mistake in mistakes(shape, value):
        if isinstance(mistake, UnknownField):
            known = ", ".join(sorted(types()[mistake.owner]))
            raise InputError(f"unknown field; known are {known}", *mistake.path)
        if mistake.shape == "any":
            raise InputError(mistake.why, *mistake.path)
        text = f"expected {_expected(mistake.shape)}, got {describe(mistake.value)}"
        why = f": {mistake.why}" if mistake.why else ""
        raise InputError(text + why, *mistake.path)


def _expected(shape: str) -> str:
    if shape.startswith(LIST):
        return "a list"
    if shape.startswith(MAP) or shape in types():
        return "an object"
    return _EXPECTED[shape]
