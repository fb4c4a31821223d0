"""How a mutation reaches a part of the reference: by replacing one of its methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from conformance.targets.reference.world import World

Mutation = Callable[[World], None]
"""Puts a defect into a reference that is running."""

Defects = Mapping[str, Mutation]
"""Name of a defect in the kill matrix, for example ``double-allocation``, and what puts it in."""

P = TypeVar("P")


def replace(part: object, method: str, new: Callable[..., Any]) -> None:
    """Replace a method of one object.

    Args:
        part: whose method it is.
        method: its name; there must be such a method.
        new: called with the method as it was, then with the arguments of the call.
    """
    original = getattr(part, method)

    def replaced(*args: Any, **kwargs: Any) -> Any:
        return new(original, *args, **kwargs)

    setattr(part, method, replaced)


def part(world: World, kind: type[P]) -> P:
    """The controller of a kind."""
    return next(item for item in world.controllers if isinstance(item, kind))
