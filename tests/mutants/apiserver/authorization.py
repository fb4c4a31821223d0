"""Defects of who may do what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed

from kube.values import User
from kubesim.apiserver.authorization import Attributes, Authorizer
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead, replace

Allows = Callable[..., bool]


def check_nothing(world: World) -> None:
    replace(world.handler.authorizer.check, lambda *_: None)


def allows_subresource(subresource: str) -> Mutation:
    """Who may write the status may do what needs a subresource of its own, too."""

    @instead(Authorizer.allows)
    def mutate(_: World, original: Allows, user: User, wanted: Attributes, **how: bool) -> bool:
        return wanted.subresource == subresource or original(user, wanted, **how)

    return mutate


@instead(Authorizer.allows)
def every_node_is_associated(
    _: World, original: Allows, user: User, wanted: Attributes, **how: bool
) -> bool:
    verb = wanted.verb.replace("arbitrary-node:", "associated-node:")
    return original(user, wanted, **how) or original(user, changed(wanted, verb=verb), **how)


DEFECTS: Defects = {
    "authorizes-every-account": check_nothing,
    "authorizes-every-binding": allows_subresource("binding"),
    "authorizes-every-node": every_node_is_associated,
}
