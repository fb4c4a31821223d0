"""JSON patches (RFC 6902), as far as scenarios write them: add, remove, replace and test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from conformance.targets.base import ApiError, Obj
from conformance.targets.reference.store import clone


def apply(operations: Sequence[Obj]) -> Callable[[Obj], Obj]:
    """The change that a patch makes of an object.

    The change raises:
        ApiError: 422, a path is not there or a test failed.
    """

    def change(obj: Obj) -> Obj:
        changed = clone(obj)
        for operation in operations:
            try:
                _operate(changed, operation)
            except (KeyError, IndexError, ValueError, TypeError):
                text = "the server rejected our request due to an error in our request"
                raise ApiError(422, "Invalid", text) from None
        return changed

    return change


def _operate(obj: Any, operation: Obj) -> None:
    *parents, last = (
        part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
    )
    for part in parents:
        obj = obj[int(part)] if isinstance(obj, list) else obj[part]
    kind, value = operation["op"], operation.get("value")
    if isinstance(obj, list):
        place = len(obj) if last == "-" and kind == "add" else int(last)
        if kind == "add":
            if place > len(obj):
                raise IndexError(place)
            obj.insert(place, value)
            return
        found = obj[place]
    else:
        place = last
        if kind == "add":
            obj[place] = value
            return
        found = obj.get(place) if kind == "test" else obj[place]
    if kind == "remove":
        del obj[place]
    elif kind == "replace":
        obj[place] = value
    elif found != value:
        raise ValueError(value)
