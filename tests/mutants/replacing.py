"""How a mutation reaches a part of the reference: by replacing one of its methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, TypeVar

from kubesim.world import World

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


def instead(path: str) -> Callable[[Callable[..., Any]], Mutation]:
    """Of a function, the mutation that puts it in the place of a method.

    Args:
        path: the method, from the world: ``scheduler.filter.allocate``. A controller goes by its
            class, ``ClaimController.make``; ``kubelets``, ``managers`` (of their claims) and
            ``drivers`` stand for each of them.

    The function is called with the world (or the kubelet, manager, driver), the method as it was,
    then with the arguments of the call.
    """
    first, *rest, method = path.split(".")

    def put_in(new: Callable[..., Any]) -> Mutation:
        def mutate(world: World) -> None:
            every: dict[str, list[Any]] = {
                "kubelets": [*world.kubelets],
                "managers": [kubelet.dra_manager for kubelet in world.kubelets],
                "drivers": [kubelet.driver for kubelet in world.kubelets if kubelet.driver],
            }
            for one in every.get(first, [world]):
                within = one if first in every else _first(world, first)
                replace(reduce(getattr, rest, within), method, partial(new, one))

        return mutate

    return put_in


def _first(world: World, name: str) -> Any:
    """A part of the world, or a controller by its class."""
    named = [item for item in world.controllers if type(item).__name__ == name]
    return named[0] if named else getattr(world, name)


def part(world: World, kind: type[P]) -> P:
    """The controller of a kind."""
    return next(item for item in world.controllers if isinstance(item, kind))
