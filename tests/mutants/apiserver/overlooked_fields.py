"""The API server does not look at something, or refuses what is valid: how that is put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver.server import ApiServer
from kubesim.resources import Kind
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, replace

When = Callable[[Obj], bool]
Rule = Callable[..., None]

CLAIM, TEMPLATE, CLASS, SLICE = (
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceClass",
    "ResourceSlice",
)
NEW, CHANGED = ApiServer.validate_new, ApiServer.validate_change


def overlooks(
    pattern: str,
    *kinds: str,
    at: tuple[Rule, ...] = (NEW, CHANGED),
    when: When = lambda _: True,
) -> Mutation:
    """Overlook errors of objects of these kinds, by default claims.

    Args:
        pattern: found in ``FIELD: MESSAGE`` of each cause.
        at: in new objects, in changed ones and their status, or in both.
        when: of which objects.
    """

    def check(original: Rule, kind: Kind, obj: Obj, *args: Any, **how: Any) -> None:
        try:
            original(kind, obj, *args, **how)
        except ApiError as error:
            causes = [f"{cause.field}: {cause.message}" for cause in error.causes]
            expected = kind.name in (kinds or (CLAIM,)) and when(obj) and causes
            if not expected or not all(re.search(pattern, cause, re.DOTALL) for cause in causes):
                raise

    return validates(at, check)


def table(kind_name: str, rows: Mapping[str, tuple[str, str]]) -> Defects:
    """Return defects by name, from a pattern of the field and part of the message of each."""
    return {
        name: overlooks(re.sub(r"\$$", ":", field) + ".*" + re.escape(message), kind_name)
        for name, (field, message) in rows.items()
    }


def refuses(wrong: When, *kinds: str, at: tuple[Rule, ...] = (NEW,)) -> Mutation:
    """Refuse objects of these kinds, by default claims, that are valid."""

    def check(original: Rule, kind: Kind, obj: Obj, *args: Any, **how: Any) -> None:
        if kind.name in (kinds or (CLAIM,)) and wrong(obj):
            raise ApiError(422, "Invalid", "is invalid: refused by a defect")
        original(kind, obj, *args, **how)

    return validates(at, check)


def validates(at: tuple[Rule, ...], check: Callable[..., None]) -> Mutation:
    """Put a check in the place of validations."""

    def mutate(world: World) -> None:
        for rule in at:
            replace(getattr(world.api, rule.__name__), check)

    return mutate
