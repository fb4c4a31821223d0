"""How a mutation reaches a part of the reference: by replacing one of its methods.

A hook is the method itself, so that a rename is seen by mypy, by editors and when the module is
imported (decision 0046).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce, wraps
from types import MethodType
from typing import Any, TypeVar, cast

from kubesim.controllers.eviction import EvictionController
from kubesim.nodes.dra_manager import DRAManager
from kubesim.nodes.driver import NodeDriver
from kubesim.nodes.kubelet import Kubelet
from kubesim.nodes.podstatus import PodResources
from kubesim.world import World

Mutation = Callable[[World], None]
"""Puts a defect into a reference that is running."""

Defects = Mapping[str, Mutation]
"""Name of a defect in the kill matrix, for example ``double-allocation``, and what puts it in."""

Method = Callable[..., Any]
"""A method of a class, for example ``Filter.allocate``, or a function."""

Original = Callable[..., Any]
"""A method as it was, bound to its object."""

P = TypeVar("P")


def replace(method: Method, new: Callable[..., Any]) -> None:
    """Replace a method of one object.

    Args:
        method: as the object has it, for example ``world.api.create``.
        new: called with the method as it was, then with the arguments of the call.
    """
    bound = cast("MethodType", method)

    @wraps(method)
    def replaced(_: object, *args: Any, **kwargs: Any) -> Any:
        return new(method, *args, **kwargs)

    # bound, so that the next defect finds whose method it is
    setattr(bound.__self__, bound.__name__, MethodType(replaced, bound.__self__))


def instead(method: Method) -> Callable[[Callable[..., Any]], Mutation]:
    """Return what makes a mutation of a function: it takes the place of a method.

    Args:
        method: of the class that defines it, for example ``Filter.allocate``.

    The function is called with the world, the method as it was, then with the arguments of the
    call. A method of what a node has (kubelet, DRA manager, pod resources, driver) is replaced on
    each node, and its function called with whose it is instead of the world.
    """

    def put_in(new: Callable[..., Any]) -> Mutation:
        def mutate(world: World) -> None:
            kind = class_of(method)
            if issubclass(kind, _OF_A_NODE):
                for owner in _parts_of_nodes(world, kind):
                    replace(getattr(owner, method.__name__), partial(new, owner))
            else:
                replace(getattr(part(world, kind), method.__name__), partial(new, world))

        return mutate

    return put_in


def class_of(method: Method) -> Any:
    """Return the class that defines a method; of a function, its module."""
    path = method.__qualname__.split(".")[:-1]
    return reduce(getattr, path, sys.modules[method.__module__])


def part(world: World, kind: type[P]) -> P:
    """Return the part of the control plane that is of a class, of the default scheduler."""
    scheduler = world.scheduler
    parts = (
        *world.controllers,
        *(item.reporter for item in world.controllers if isinstance(item, EvictionController)),
        world.cluster,
        world.cluster.counts,
        world.api,
        world.api.quotas,
        world.handler,
        world.handler.authorizer,
        world.handler.authorizer.kubelets,
        world.handler.fields,
        scheduler.filter,
        scheduler.filter.listers,
        scheduler.binder,
        scheduler.groups,
        scheduler.conditions,
        scheduler.preemption,
        scheduler.waiting,
    )
    return next(item for item in parts if isinstance(item, kind))


_OF_A_NODE = (Kubelet, DRAManager, PodResources, NodeDriver)


def _parts_of_nodes(world: World, kind: type[P]) -> Iterator[P]:
    for kubelet in world.kubelets:
        for item in (kubelet, kubelet.dra_manager, kubelet.pod_resources, kubelet.driver):
            if isinstance(item, kind):
                yield item
