"""Defects of server-side apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed

from kube.values import FieldManager, Obj, Request
from kubesim.world import World
from tests.mutants.replacing import Defects, replace


def applies_over_changes(world: World) -> None:
    """Only what another manager has applied is a conflict."""
    fields = world.handler.fields
    managers: dict[str, set[str]] = {}

    def change(original: Callable[..., Callable[[Obj], Obj]], request: Request) -> object:
        assert request.manager is not None
        known = managers.setdefault(str(request.ref), set())
        known.add(request.manager.name)
        alone = FieldManager(request.manager.name, request.manager.force or len(known) == 1)
        return original(changed(request, manager=alone))

    replace(fields.change, change)


def applies_without_memory(world: World) -> None:
    """What a manager has applied earlier is not known when it applies again."""
    fields = world.handler.fields
    replace(fields.own_applied, lambda *_: lambda *_: [])


DEFECTS: Defects = {
    "applies-over-changes-of-others": applies_over_changes,
    "applies-without-memory": applies_without_memory,
}
