"""The API server does not look at something: how such a defect is put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kube.errors import ApiError
from kube.values import Obj
from kubesim.resources import Kind
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, replace

When = Callable[[Obj], bool]


def overlooks_field(
    kind_name: str,
    field: str,
    message: str = "",
    *,
    new: bool = True,
    changed: bool = True,
    when: When = lambda _: True,
) -> Mutation:
    """What is wrong with a field of a kind's objects is not looked at.

    Args:
        field: a pattern that is found in the cause's field.
        message: what the cause's message contains.
        new: in new objects.
        changed: in objects that are changed, and in their status.
        when: of which objects.
    """

    def check(original: Callable[..., None], kind: Kind, obj: Obj, *args: Any, **how: Any) -> None:
        try:
            original(kind, obj, *args, **how)
        except ApiError as error:
            left = [
                c for c in error.causes if not (re.search(field, c.field) and message in c.message)
            ]
            if kind.name != kind_name or left or not error.causes or not when(obj):
                raise

    def mutate(world: World) -> None:
        if new:
            replace(world.api.validate_new, check)
        if changed:
            replace(world.api.validate_change, check)

    return mutate


def table(kind_name: str, rows: Mapping[str, tuple[str, str]]) -> Defects:
    """Name of a defect -> pattern of the field and part of the message that are overlooked."""
    return {name: overlooks_field(kind_name, *row) for name, row in rows.items()}


def refuses(kind_name: str, what: When, why: str = "too much") -> Mutation:
    """Objects of a kind that are valid are refused, new and changed ones."""

    def check(original: Callable[..., None], kind: Kind, obj: Obj, *args: Any, **how: Any) -> None:
        original(kind, obj, *args, **how)
        if kind.name == kind_name and what(obj):
            raise ApiError(422, "Invalid", why)

    def mutate(world: World) -> None:
        replace(world.api.validate_new, check)
        replace(world.api.validate_change, check)

    return mutate
